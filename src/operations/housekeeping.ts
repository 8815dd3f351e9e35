import { sweepEvents } from '#src/audit/retention.ts'
import type { Context } from '#src/context.ts'
import { MINUTE, parseDuration } from '#src/lib/duration.ts'
import { startMailDelivery } from '#src/links/mail-delivery.ts'
import { rotateDueKeys } from '#src/tokens/rotation.ts'
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

/** A backup has a turn of its own: it may take minutes, and each copy that keeps backups makes one. */
const turns: Record<string, Jobs> = {
  housekeeping: { sweep, purge, rotate, events: sweepEvents },
  backup: { backup: scheduledBackup },
}

/** Has the jobs done one after the other, once a minute: of all copies of the server by one at a time, which is whose turn it is. */
const everyMinute = (context: Context, turn: string, jobs: Jobs): Timer => {
  let running = false
  const round = async (): Promise<void> => {
    if (running) return
    running = true
    const failed = (job: string) => (error: unknown) =>
      context.log.error({ event: 'housekeeping', job, err: error }, 'a round failed and will be tried again')
    await context.store
      .exclusively(turn, async () => {
        for (const [name, job] of Object.entries(jobs)) await job(context).catch(failed(name))
      })
      .catch(failed('all'))
    running = false
  }
  return setInterval(round, MINUTE).unref()
}

/** What nobody asks for but time: expired rows, remains of what was deleted, keys that are due, backups; the post; and the watch on the event loop. */
export const startHousekeeping = (context: Context): (() => void) => {
  const timers = Object.entries(turns).map(([turn, jobs]) => everyMinute(context, turn, jobs))
  const stops = [startMailDelivery(context), watchEventLoop()]
  return () => {
    for (const stop of stops) stop()
    for (const timer of timers) clearInterval(timer)
  }
}
