import type { SQL } from 'bun'
import type { Topic } from '#src/storage/store.ts'

const CHANNEL = 'gatehouse'
/** After so many beats without an echo the connection is taken for dead. */
const SILENT_FOR = 10
/** How often the way that notices take is tried, ms: what was missed on it is stale no longer than three times this. */
const HEARTBEAT = 1_000

/**
 * What other copies have committed. A transaction sends its topics with its commit; every copy listens on a connection
 * of its own, which Bun opens again when it is closed. A beat of ours that does not come back says that notices may be lost:
 * then everything may have changed, until it does.
 */
export const postgresChanges = async (
  connect: () => SQL,
  self: string,
  tell: (topics?: ReadonlySet<Topic>) => void,
) => {
  let beat = 0
  let heard = 0
  let missed = 0
  let sending = false
  let ears = connect()

  const listen = () =>
    ears.listen(
      CHANNEL,
      payload => {
        const [origin, topics = ''] = payload.split(' ')
        // Our own commits have been told of already.
        if (origin !== self) {
          if (!topics.startsWith('#')) tell(new Set(topics.split(',') as Topic[]))
        } else if (topics.startsWith('#')) heard = Number(topics.slice(1))
      },
      () => tell(),
    )
  const listenAnew = () => {
    ears.close({ timeout: 0 }).catch(() => {})
    ears = connect()
    listen().catch(() => {})
  }
  const send = async (): Promise<void> => {
    if (sending) return
    sending = true
    // Without waiting for the disk: nothing is lost with it.
    await ears
      .unsafe(
        `BEGIN; SET LOCAL synchronous_commit TO off; SELECT pg_notify('${CHANNEL}', '${self} #${++beat}'); COMMIT`,
      )
      .catch(() => {})
    sending = false
  }

  try {
    await listen()
  } catch (error) {
    await ears.close({ timeout: 0 }).catch(() => {})
    throw error
  }
  const timer = setInterval(() => {
    missed = heard < beat ? missed + 1 : 0
    // One that is late may be held up by our own work.
    if (missed > 1) tell()
    if (missed > 0 && missed % SILENT_FOR === 0) listenAnew()
    void send()
  }, HEARTBEAT)
  timer.unref()
  return {
    /** The statement that sends topics when its transaction commits. */
    notice: (topics: ReadonlySet<Topic>): string =>
      `SELECT pg_notify('${CHANNEL}', '${self} ${[...topics].join(',')}')`,
    close: async (): Promise<void> => {
      clearInterval(timer)
      await ears.close({ timeout: 0 }).catch(() => {})
    },
  }
}
