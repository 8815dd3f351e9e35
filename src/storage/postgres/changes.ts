import { randomBytes } from 'node:crypto'
import type { SQL } from 'bun'
import type { Topic } from '#src/storage/store.ts'

const CHANNEL = 'gatehouse'
/**
 * Number of heartbeats without an echo after which a new connection is opened. Fewer would be too soon,
 * because a failover takes some seconds.
 */
const MAX_MISSED = 10
/**
 * Interval of the heartbeats in ms. After a lost notification, caches are stale for at most three intervals.
 */
const HEARTBEAT = 1_000

const newId = (): string => randomBytes(8).toString('hex')

/**
 * Calls `notify` when another copy has committed a change. Each transaction sends its topics to all copies
 * when it commits. Each copy listens on a separate connection, which Bun reopens after a loss. A copy that
 * gets no echo of its heartbeat for two intervals may have lost notifications. From then on it drops all
 * caches at each interval until an echo arrives.
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
        // For commits of this copy, `notify` was already called.
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
    // A single late heartbeat is ignored, because it usually means that this process is busy.
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
     * Must be called when this copy does not know the outcome of its commit. The copy gets a new id. If the
     * notice of this commit arrives, the copy then treats it like a notice of another copy.
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
