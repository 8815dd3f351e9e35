import type { CommitMetrics } from './commit-metrics.ts'
import { putSetting, removeSetting } from './settings.ts'
import type { Store } from './store.ts'

/** Text to write. It is larger than a usual write, because even a full disk can have room for a page. */
const PROBE = '.'.repeat(65_536)

/**
 * Writes and deletes a large row, to find out whether writes succeed again after a failed write.
 *
 * @throws Error when writes still fail
 */
const probeWrites = async (write: Store['write']): Promise<void> => {
  await write(tx => putSetting(tx, 'probe', PROBE, 0))
  await write(tx => removeSetting(tx, 'probe'))
}

/**
 * Returns the counters of commits, and a function that probes writes after a failed commit. On PostgreSQL
 * only a probe shows that writes succeed again, because a write that changes no row is committed even while
 * the synchronous standby is away.
 */
export const openProbe = (engine: Store['engine'], { queued, committed }: CommitMetrics) => {
  let failing = false
  let probing: Promise<void> | undefined
  const metrics: CommitMetrics = {
    queued,
    committed: outcome => {
      if (outcome === 'failed') failing = true
      else if (outcome === 'done' && engine === 'sqlite') failing = false
      committed(outcome)
    },
  }
  /** Only one probe runs at a time, because a probe can wait for seconds. */
  const requireWrites = async (write: Store['write']): Promise<void> => {
    if (!failing) return
    probing ??= probeWrites(write)
      .then(() => {
        failing = false
      })
      .finally(() => {
        probing = undefined
      })
    await probing
  }
  return { metrics, requireWrites }
}
