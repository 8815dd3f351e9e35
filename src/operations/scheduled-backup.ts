import type { Context } from '#src/context.ts'
import { HOUR, parseDuration } from '#src/lib/duration.ts'
import { backupName, backupNames, failedAt, makeBackup } from './backups.ts'
import { readSettings } from './settings.ts'

/**
 * Milliseconds from a failed backup to the next attempt. An hour is also the shortest interval that the
 * settings allow. The pause is needed, because a failing backup may read the whole database.
 */
const RETRY_AFTER = HOUR

/**
 * Makes a backup if one is due, and then removes old backups until `backup_keep` remain.
 *
 * @throws Error when the backup fails; the next attempt follows after an hour
 */
export const scheduledBackup = async (context: Context): Promise<void> => {
  const { config, store, clock, backups } = context
  const { backup_interval, backup_keep } = await store.read(readSettings)
  if (backup_interval === null || backups.size > 0) return
  const now = clock.now()
  // A failure with a time in the future is ignored. It was noted while the clock was ahead.
  const failed_at = failedAt(config)
  if (failed_at <= now && now < failed_at + RETRY_AFTER) return
  const due = backupName(now - (parseDuration(backup_interval) ?? 0))
  // A backup whose name has a future time was made while the clock was ahead. Such a backup is ignored,
  // because it would otherwise prevent new backups until that time.
  if (backupNames(config).some(name => name > due && name <= backupName(now))) return
  await makeBackup(context, backup_keep)
}
