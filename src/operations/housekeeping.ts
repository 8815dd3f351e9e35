import { endFollowing } from '#src/audit/follow.ts'
import { sweepEvents } from '#src/audit/retention.ts'
import type { Context } from '#src/context.ts'
import { MINUTE, parseDuration } from '#src/lib/duration.ts'
import { startMailDelivery } from '#src/links/mail-delivery.ts'
import { startLogoutDelivery } from '#src/sessions/logout-delivery.ts'
import { rotateDueKeys } from '#src/tokens/rotation.ts'
import { startWebhookDelivery } from '#src/webhooks/delivery.ts'
import { watchEventLoop } from './event-loop.ts'
import { purge } from './purge.ts'
import { scheduledBackup } from './scheduled-backup.ts'
import { readSettings } from './settings.ts'
import { sweep } from './sweep.ts'

const rotate = async (context: Context): Promise<void> => {
  const { key_rotation_interval } = await context.store.read(readSettings)
  await rotateDueKeys(context, parseDuration(key_rotation_interval))
}

type Jobs = Record<string, (context: Context) => Promise<unknown>>

/** Backups have a schedule of their own: they may take minutes. */
const schedules: Record<string, Jobs> = {
  housekeeping: { sweep, purge, rotate, events: sweepEvents },
  backup: { backup: scheduledBackup },
}

/**
 * Runs the jobs in sequence once a minute. Only one copy of the server runs the jobs of a schedule at a time.
 */
const everyMinute = (context: Context, lock: string, jobs: Jobs): Timer => {
  let running = false
  const round = async (): Promise<void> => {
    if (running) return
    running = true
    const failed = (job: string) => (error: unknown) =>
      context.log.error({ event: 'housekeeping', job, err: error }, 'a round failed and will be tried again')
    await context.store
      .exclusively(lock, async () => {
        for (const [name, job] of Object.entries(jobs)) await job(context).catch(failed(name))
      })
      .catch(failed('all'))
    running = false
  }
  return setInterval(round, MINUTE).unref()
}

/**
 * Starts the periodic work: expired rows, remains of deleted rows, due keys, backups, mail, and the
 * event-loop measurement.
 *
 * @returns a function that stops it
 */
export const startHousekeeping = (context: Context): (() => void) => {
  const timers = Object.entries(schedules).map(([lock, jobs]) => everyMinute(context, lock, jobs))
  const stops = [
    startMailDelivery(context),
    startLogoutDelivery(context),
    startWebhookDelivery(context),
    watchEventLoop(context.store.metrics),
    () => endFollowing(context),
  ]
  return () => {
    for (const stop of stops) stop()
    for (const timer of timers) clearInterval(timer)
  }
}
