import { accessSync, closeSync, constants, fsyncSync, mkdirSync, openSync, statSync } from 'node:fs'
import { StorageError } from './errors.ts'

/** Makes the data directory (mode 0700) where there is none, and says plainly when it can't be used. */
export const makeDataDir = (data_dir: string): void => {
  try {
    mkdirSync(data_dir, { recursive: true, mode: 0o700 })
    accessSync(data_dir, constants.W_OK)
  } catch (error) {
    const code = (error as NodeJS.ErrnoException).code ?? 'unknown error'
    throw new StorageError(
      `${data_dir}: can't be used as data directory (${code}). Set GATEHOUSE_DATA_DIR to one that is writable.`,
    )
  }
}

/** Makes a file for its owner alone (mode 0600) where there is none. Throws StorageError when it can't be written to. */
export const touch = (path: string): void => {
  try {
    closeSync(openSync(path, 'a', 0o600))
  } catch (error) {
    throw new StorageError(`${path}: can't be written to (${(error as NodeJS.ErrnoException).code}).`)
  }
}

/**
 * A database that is made at `path` would be given what SQLite's log of an earlier one says: their names are all that binds
 * them. Throws StorageError where such a log has been left behind.
 */
export const requireNoLog = (path: string): void => {
  for (const log of [`${path}-wal`, `${path}-journal`])
    if (statSync(log, { throwIfNoEntry: false })?.size)
      throw new StorageError(`${log} belongs to a database that is not here: move it to that one first.`)
}

/** File or folder: what was written, or renamed, outlives a power failure. */
export const sync = (path: string): void => {
  // Windows does so for neither folders nor what is open for reading.
  if (process.platform === 'win32') return
  const file = openSync(path, 'r')
  try {
    fsyncSync(file)
  } finally {
    closeSync(file)
  }
}
