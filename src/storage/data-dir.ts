import {
  accessSync,
  closeSync,
  constants,
  existsSync,
  fchownSync,
  fstatSync,
  fsyncSync,
  lstatSync,
  mkdirSync,
  openSync,
  statSync,
} from 'node:fs'
import { dirname } from 'node:path'
import { StorageError } from './errors.ts'

/**
 * Creates the data directory if it is missing, with the mode 0700, because it contains keys and hashes of
 * passwords.
 *
 * @throws StorageError when it cannot be used
 */
export const makeDataDir = (data_dir: string): void => {
  try {
    mkdirSync(data_dir, { recursive: true, mode: 0o700 })
    accessSync(data_dir, constants.W_OK)
  } catch (error) {
    const code = (error as NodeJS.ErrnoException).code ?? 'unknown error'
    throw new StorageError(
      `${data_dir}: cannot be used as the data directory (${code}). Set GATEHOUSE_DATA_DIR to a writable directory.`,
    )
  }
}

/**
 * Returns the name of the lock under which backups are made in a data directory. Workers and containers that
 * share the directory get the same name. Copies with directories of their own get different ones, although
 * the paths may be equal.
 */
export const backupLock = (data_dir: string): string => {
  const found = statSync(data_dir, { throwIfNoEntry: false })
  return `backup ${found?.ino} ${found?.birthtimeMs}`
}

/**
 * Gives a new file in the data directory to the owner of that directory, if the process runs as root. A
 * command that root runs beside a service would otherwise leave a file that the user of the service cannot
 * read.
 */
export const giveToOwner = (path: string): void => {
  if (process.geteuid?.() !== 0) return
  try {
    const { uid, gid } = statSync(dirname(path))
    // The owner of the directory may have put a link to another file in the place of this file. `O_NOFOLLOW`
    // refuses a symbolic link. A file with a single name that is this path is no hard link to another file.
    const file = openSync(path, constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK)
    try {
      const opened = fstatSync(file)
      const { dev, ino, nlink } = lstatSync(path)
      if (nlink === 1 && dev === opened.dev && ino === opened.ino) fchownSync(file, uid, gid)
    } finally {
      closeSync(file)
    }
  } catch {
    // In a container or on a network drive, root may lack the right to change the owner. The file then still
    // belongs to root.
  }
}

/**
 * Creates a file readable only by its owner (mode 0600) if it is missing. Root follows only links that root
 * has made: a link that the owner of the data directory has made may lead to any file.
 *
 * @throws StorageError when it cannot be written
 */
export const touch = (path: string): void => {
  try {
    const isNew = !existsSync(path)
    const mayFollow = process.geteuid?.() !== 0 || lstatSync(path, { throwIfNoEntry: false })?.uid === 0
    const flags = constants.O_WRONLY | constants.O_CREAT | (mayFollow ? 0 : constants.O_NOFOLLOW)
    closeSync(openSync(path, flags, 0o600))
    if (isNew) giveToOwner(path)
  } catch (error) {
    throw new StorageError(`${path}: cannot be written to (${(error as NodeJS.ErrnoException).code}).`)
  }
}

/**
 * Checks that an earlier database with the name `path` has left no log. SQLite finds a log by its name, and
 * would apply the old log to the new database.
 *
 * @throws StorageError when there is such a log
 */
export const requireNoLog = (path: string): void => {
  for (const log of [`${path}-wal`, `${path}-journal`])
    if (statSync(log, { throwIfNoEntry: false })?.size)
      throw new StorageError(
        `${log} belongs to a database that is missing. Move the log to that database's folder, then retry.`,
      )
}

/** Forces a file, or the entries of a folder, to the disk, so that they survive a power failure. */
export const sync = (path: string): void => {
  // Windows can sync neither folders nor files open for reading.
  if (process.platform === 'win32') return
  const file = openSync(path, 'r')
  try {
    fsyncSync(file)
  } finally {
    closeSync(file)
  }
}
