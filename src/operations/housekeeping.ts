import { endFollowing } from '#src/audit/tails.ts'
import type { Context } from '#src/context.ts'
import type { Stop } from '#src/delivery/queue.ts'
import { MINUTE, parseDuration, SECOND } from '#src/lib/duration.ts'
import { backupLock } from '#src/storage/data-dir.ts'
import type { Topic } from '#src/storage/store.ts'
import { watchEventLoop } from './event-loop.ts'
import { hasRows } from './start-store.ts'

/**
 * Milliseconds in which running requests and deliveries can finish when the server stops. The process ends
 * within 2 s after SIGTERM, so that a restart causes only a short pause.
 */
export const DRAIN_MS = 1_500

/** Milliseconds between two checks whether a delivery is needed. */
const LOOK = 5 * SECOND

const rotate = async (context: Context): Promise<void> => {
  const { rotateDueKeys } = await import('#src/tokens/rotation.ts')
  const { readSettings } = await import('./settings.ts')
  const { key_rotation_interval } = await context.store.read(readSettings)
  await rotateDueKeys(context, parseDuration(key_rotation_interval) ?? Number.POSITIVE_INFINITY)
}

type Job = (context: Context) => Promise<unknown>

interface Schedule {
  /** Returns the name of the lock under which the jobs run. */
  lock(context: Context): string
  jobs: Record<string, Job>
}

/**
 * Backups have a schedule of their own, because a backup can take minutes. The first round of a job loads the
 * code of the job.
 */
const schedules: Schedule[] = [
  {
    lock: () => 'housekeeping',
    jobs: {
      sweep: async context => (await import('./sweep.ts')).sweep(context),
      purge: async context => (await import('./purge.ts')).purge(context),
      rotate,
      events: async context => (await import('#src/audit/retention.ts')).sweepEvents(context),
    },
  },
  {
    lock: ({ config }) => backupLock(config.data_dir),
    jobs: { backup: async context => (await import('./scheduled-backup.ts')).scheduledBackup(context) },
  },
]

type Start = (context: Context) => Stop

interface Delivery {
  /** Topic of the commits that may add something to deliver. */
  topic: Topic
  isNeeded(context: Context): Promise<boolean>
  load(): Promise<Start>
}

const deliveries: Delivery[] = [
  {
    topic: 'mails',
    isNeeded: async ({ mail }) => mail !== undefined,
    load: async () => (await import('#src/links/mail-delivery.ts')).startMailDelivery,
  },
  {
    topic: 'logouts',
    isNeeded: ({ store }) => store.read(q => hasRows(q, 'logouts')),
    load: async () => (await import('#src/sessions/logout-delivery.ts')).startLogoutDelivery,
  },
  {
    topic: 'webhooks',
    isNeeded: ({ store }) => store.read(q => hasRows(q, 'webhooks')),
    load: async () => (await import('#src/webhooks/delivery.ts')).startWebhookDelivery,
  },
]

/**
 * Loads and starts a delivery when `isNeeded` returns true. Loading the code of every delivery would make
 * each start of the server slower. `isNeeded` is called one second after the start, right after each commit
 * with the topic, and every five seconds, because another process may commit.
 *
 * @returns a function that stops the delivery, and the calls of `isNeeded`
 */
const startWhenNeeded = (context: Context, { topic, isNeeded, load }: Delivery): Stop => {
  let stop: Stop | undefined
  let isStopped = false
  let isLooking = false
  const look = async (): Promise<void> => {
    if (isLooking || isStopped || stop) return
    isLooking = true
    try {
      const start = (await isNeeded(context)) ? await load() : undefined
      if (start && !isStopped) stop = start(context)
      if (stop) clearInterval(timer)
    } catch (error) {
      context.log.error({ event: topic, err: error }, 'a delivery cannot start and will be tried again')
    }
    isLooking = false
  }
  const first = setTimeout(look, SECOND).unref()
  const timer = setInterval(look, LOOK).unref()
  context.store.onChange(topics => {
    if (topics?.has(topic)) setTimeout(look)
  })
  return async () => {
    isStopped = true
    clearTimeout(first)
    clearInterval(timer)
    await stop?.()
  }
}

/**
 * Runs the jobs in sequence once a minute. Reads skip expired and deleted rows, so a row that no round has
 * removed yet cannot be used. The event of an expired session, and the logout at its client, come up to a
 * minute late. Backups and key rotations can also be a minute late. This does not matter, because backups are
 * at least an hour apart and rotations at least a day. Only one copy of the server runs the jobs of a
 * schedule at a time, because all copies would find the same work. Copies with different data directories
 * make separate backups.
 */
const everyMinute = (context: Context, { lock, jobs }: Schedule): Timer => {
  let running = false
  const round = async (): Promise<void> => {
    if (running) return
    running = true
    const failed = (job: string) => (error: unknown) =>
      context.log.error({ event: 'housekeeping', job, err: error }, 'a round failed and will be tried again')
    const runJobs = async (): Promise<void> => {
      for (const [name, job] of Object.entries(jobs)) await job(context).catch(failed(name))
    }
    await Promise.try(() => context.store.exclusively(lock(context), runJobs)).catch(failed('all'))
    running = false
  }
  return setInterval(round, MINUTE).unref()
}

/**
 * Starts the periodic work: the sweep of expired rows, purges, key rotation, retention of events, backups,
 * deliveries, and the measurement of the event loop.
 *
 * @returns a function that stops all periodic work and ends the open streams of the audit log. Its promise
 *   resolves when no delivery runs.
 */
export const startHousekeeping = (context: Context): Stop => {
  const timers = schedules.map(schedule => everyMinute(context, schedule))
  const stops = [
    ...deliveries.map(delivery => startWhenNeeded(context, delivery)),
    watchEventLoop(context.store.metrics),
    () => endFollowing(context),
  ]
  return async () => {
    for (const timer of timers) clearInterval(timer)
    await Promise.all(stops.map(stop => stop()))
  }
}
