import type { Context } from '#src/context.ts'
import { HOUR, parseDuration } from '#src/lib/duration.ts'
import { backupName, backupNames, failedAt, makeBackup } from './backups.ts'
import { readSettings } from './settings.ts'

/**
 * Milliseconds after a failed backup until the next one: the shortest interval of backups. A backup that
 * fails may have read the whole database.
 */
const RETRY_AFTER = HOUR

/**
 * Makes a backup if one is due, and then removes old backups until `backup_keep` remain.
 *
 * @throws Error when the backup fails; it is tried again after an hour
 */
export const scheduledBackup = async (context: Context): Promise<void> => {
  const { config, store, clock, backups } = context
  const { backup_interval, backup_keep } = await store.read(readSettings)
  if (backup_interval === null || backups.size > 0) return
  const now = clock.now()
  // A time in the future comes from a clock that was ahead.
  const failed_at = failedAt(config)
  if (failed_at <= now && now < failed_at + RETRY_AFTER) return
  const due = backupName(now - (parseDuration(backup_interval) ?? 0))
  // A backup whose name has a future time comes from a clock that was ahead. It is ignored, because it would
  // otherwise prevent backups until that time.
  if (backupNames(config).some(name => name > due && name <= backupName(now))) return
  await makeBackup(context, backup_keep)
}
