import { randomBytes } from 'node:crypto'
import type { SQL } from 'bun'
import type { Topic } from '#src/storage/store.ts'

const CHANNEL = 'gatehouse'
/**
 * Number of heartbeats without an echo after which the connection is opened again. A failover takes some
 * seconds.
 */
const MAX_MISSED = 10
/** Heartbeat interval in ms. Caches are stale for at most three intervals after a lost notification. */
const HEARTBEAT = 1_000

const newId = (): string => randomBytes(8).toString('hex')

/**
 * Calls `notify` when another copy has committed a change. Each transaction sends its topics to all copies
 * when it commits. Each copy listens on a connection of its own, which Bun reopens after a loss. A copy that
 * gets no echo of its heartbeat for two intervals may have lost notifications. It then drops all caches at
 * each interval until an echo arrives.
 */
export const postgresChanges = async (connect: () => SQL, notify: (topics?: ReadonlySet<Topic>) => void) => {
  /** Identifies this copy in its notices. */
  let self = newId()
  let sent = 0
  let received = 0
  let missed = 0
  let sending = false
  let listener = connect()

  const listen = () =>
    listener.listen(
      CHANNEL,
      payload => {
        const [origin, topics = ''] = payload.split(' ')
        // `notify` was already called for this copy's own commits.
        if (origin !== self) {
          if (!topics.startsWith('#')) notify(new Set(topics.split(',') as Topic[]))
        } else if (topics.startsWith('#')) received = Number(topics.slice(1))
      },
      () => notify(),
    )
  const reconnect = () => {
    listener.close({ timeout: 0 }).catch(() => {})
    listener = connect()
    listen().catch(() => {})
  }
  const send = async (): Promise<void> => {
    if (sending) return
    sending = true
    // The commit of a heartbeat does not wait for the disk, because a lost heartbeat does no harm.
    await listener
      .unsafe(
        `BEGIN; SET LOCAL synchronous_commit TO off; SELECT pg_notify('${CHANNEL}', '${self} #${++sent}'); COMMIT`,
      )
      .catch(() => {})
    sending = false
  }

  try {
    await listen()
  } catch (error) {
    await listener.close({ timeout: 0 }).catch(() => {})
    throw error
  }
  const timer = setInterval(() => {
    missed = received < sent ? missed + 1 : 0
    // A single late heartbeat may only mean that this process is busy.
    if (missed > 1) notify()
    if (missed > 0 && missed % MAX_MISSED === 0) reconnect()
    void send()
  }, HEARTBEAT)
  timer.unref()
  return {
    /**
     * Returns the statement with which a transaction notifies all copies. PostgreSQL sends the topics at the
     * commit.
     */
    notice: (topics: ReadonlySet<Topic>): string =>
      `SELECT pg_notify('${CHANNEL}', '${self} ${[...topics].join(',')}')`,
    /**
     * To be called when a commit of this copy may still happen. Its notice then counts as one of another
     * copy, because the copy has a new id.
     */
    unsure: (): void => {
      self = newId()
    },
    close: async (): Promise<void> => {
      clearInterval(timer)
      await listener.close({ timeout: 0 }).catch(() => {})
    },
  }
}
