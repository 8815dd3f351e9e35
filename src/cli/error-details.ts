import { join } from 'node:path'
import { loadConfig } from '#src/config.ts'
import { AppError } from '#src/lib/app-error.ts'
import { isBusy, isStorageFailure, StorageError } from '#src/storage/errors.ts'
import { DATABASE_FILE } from '#src/storage/open.ts'

/**
 * Returns an error whose message has the details that the message of an `AppError` lacks: the database and
 * the reason of a storage failure, or each refused field. Any other error is returned unchanged.
 */
export const withDetails = async (error: unknown, options: { config?: string }): Promise<unknown> => {
  if (!(error instanceof AppError)) return error
  if (!isStorageFailure(error.cause)) {
    const details = error.details?.map(({ field, message }) => `${field}: ${message}`).join(' ')
    return details ? new Error(details) : error
  }
  const { data_dir, database_url } = loadConfig(process.env, options.config).config
  if (database_url) {
    const { parseUrl, refusal } = await import('#src/storage/postgres/connect.ts')
    return refusal(error.cause, parseUrl(database_url).where)
  }
  const { message } = error.cause as Error
  return new StorageError(`${join(data_dir, DATABASE_FILE)}: ${message}.`, isBusy(error.cause) ? 75 : 78)
}
