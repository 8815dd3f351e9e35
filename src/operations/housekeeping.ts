import { startPost } from '#src/account/post.ts'
import { sweepEvents } from '#src/audit/retention.ts'
import type { Context } from '#src/context.ts'
import { MINUTE, parseDuration } from '#src/lib/duration.ts'
import { rotateDueKeys } from '#src/tokens/rotation.ts'
import { purge } from './purge.ts'
import { scheduledBackup } from './scheduled-backup.ts'
import { readSettings } from './settings.ts'
import { sweep } from './sweep.ts'

const rotate = async (context: Context): Promise<void> => {
  const { key_rotation_interval } = await context.store.read(readSettings)
  await rotateDueKeys(context, parseDuration(key_rotation_interval))
}

const jobs = { sweep, purge, rotate, events: sweepEvents, backup: scheduledBackup }

/**
 * What nobody asks for but time: expired rows, remains of what was deleted, keys that are due; and the post. Never two
 * rounds at once, of all copies of the server.
 */
export const startHousekeeping = (context: Context): (() => void) => {
  let running = false
  const round = async (): Promise<void> => {
    if (running) return
    running = true
    const failed = (job: string) => (error: unknown) =>
      context.log.error({ event: 'housekeeping', job, err: error }, 'a round failed and will be tried again')
    await context.store
      .exclusively('housekeeping', async () => {
        for (const [name, job] of Object.entries(jobs)) await job(context).catch(failed(name))
      })
      .catch(failed('all'))
    running = false
  }
  const timer = setInterval(round, MINUTE)
  timer.unref()
  const stopPost = startPost(context)
  return () => {
    stopPost()
    clearInterval(timer)
  }
}
