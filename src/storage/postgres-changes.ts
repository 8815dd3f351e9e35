import type { SQL } from 'bun'
import type { Topic } from './store.ts'

const CHANNEL = 'gatehouse'
/** How often the way that notices take is tried, ms: what was missed on it is stale no longer than twice this. */
const BEAT = 1_000

/**
 * What other copies have committed. A transaction sends its topics with its commit; every copy listens on a connection
 * of its own (Bun's, which opens it again by itself). A beat of ours that does not come back says that notices may be lost:
 * then everything may have changed, until it does.
 */
export const postgresChanges = async (
  pool: SQL,
  self: string,
  tell: (topics?: ReadonlySet<Topic>) => void,
) => {
  let beat = 0
  let heard = 0
  let first = true
  const subscription = await pool.listen(
    CHANNEL,
    payload => {
      const [origin, topics = ''] = payload.split(' ')
      // Our own commits have been told of already.
      if (origin !== self) {
        if (!topics.startsWith('#')) tell(new Set(topics.split(',') as Topic[]))
      } else if (topics.startsWith('#')) heard = Number(topics.slice(1))
    },
    () => {
      if (!first) tell()
      first = false
    },
  )
  let sending = false
  const send = async (): Promise<void> => {
    if (sending) return
    sending = true
    // Without waiting for the disk: nothing is lost with it.
    await pool
      .unsafe(
        `BEGIN; SET LOCAL synchronous_commit TO off; SELECT pg_notify('${CHANNEL}', '${self} #${++beat}'); COMMIT`,
      )
      .catch(() => {})
    sending = false
  }
  const timer = setInterval(() => {
    if (heard < beat) tell()
    void send()
  }, BEAT)
  timer.unref()
  return {
    /** The statement that sends topics when its transaction commits. */
    notice: (topics: ReadonlySet<Topic>): string =>
      `SELECT pg_notify('${CHANNEL}', '${self} ${[...topics].join(',')}')`,
    close: async (): Promise<void> => {
      clearInterval(timer)
      await subscription.unlisten().catch(() => {})
    },
  }
}
