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
  readlinkSync,
  realpathSync,
  statSync,
} from 'node:fs'
import { dirname, resolve } from 'node:path'
import { StorageError } from './errors.ts'

/**
 * Creates the data directory if it is missing. The directory has the mode 0700, because it contains keys and
 * hashes of passwords.
 *
 * @throws StorageError when the directory cannot be used
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
 * Returns the name of the lock for backups in a data directory. Workers and containers that share the
 * directory get the same name. Copies with separate directories get different names, even if the paths are
 * equal.
 */
export const backupLock = (data_dir: string): string => {
  const found = statSync(data_dir, { throwIfNoEntry: false })
  return `backup ${found?.ino} ${found?.birthtimeMs}`
}

/**
 * Gives a new file in the data directory to the owner of this directory, if the process runs as root.
 * Otherwise, when root runs a command, the user of the service could not read the new file.
 */
export const giveToOwner = (path: string): void => {
  if (process.geteuid?.() !== 0) return
  try {
    const { uid, gid } = statSync(dirname(path))
    // The owner of the directory could have replaced this file by a link to another file. `O_NOFOLLOW`
    // refuses a symbolic link. A file with a second name may be a hard link, so it keeps its owner.
    const file = openSync(path, constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK)
    try {
      const opened = fstatSync(file)
      const { dev, ino, nlink } = lstatSync(path)
      if (nlink === 1 && dev === opened.dev && ino === opened.ino) fchownSync(file, uid, gid)
    } finally {
      closeSync(file)
    }
  } catch {
    // In some containers and on some network drives, root is not allowed to change the owner. In this case
    // the file still belongs to root.
  }
}

/**
 * True unless root runs the process and the file at `path` is missing or belongs to another user: a link of
 * another user can lead to any file.
 */
const mayFollow = (path: string): boolean =>
  process.geteuid?.() !== 0 || lstatSync(path, { throwIfNoEntry: false })?.uid === 0

/**
 * Returns the path of the file to which a link leads, even while this file is missing. Returns any other path
 * unchanged.
 *
 * @throws StorageError for a link that root does not follow
 */
export const followed = (path: string): string => {
  if (!lstatSync(path, { throwIfNoEntry: false })?.isSymbolicLink()) return path
  if (!mayFollow(path))
    throw new StorageError(`${path} is a link of another user, which root does not follow.`)
  return existsSync(path) ? realpathSync(path) : resolve(realpathSync(dirname(path)), readlinkSync(path))
}

/**
 * Creates a file that only its owner can read (mode 0600), if the file is missing. Root follows no link of
 * another user.
 *
 * @throws StorageError when the file cannot be written
 */
export const touch = (path: string): void => {
  try {
    const isNew = !existsSync(path)
    const flags = constants.O_WRONLY | constants.O_CREAT | (mayFollow(path) ? 0 : constants.O_NOFOLLOW)
    closeSync(openSync(path, flags, 0o600))
    if (isNew) giveToOwner(path)
  } catch (error) {
    throw new StorageError(`${path}: cannot be written to (${(error as NodeJS.ErrnoException).code}).`)
  }
}

/**
 * Checks that an earlier database with the name `path` has left no log. SQLite finds a log by its name. It
 * would therefore apply the old log to the new database.
 *
 * @throws StorageError when an old log exists
 */
export const requireNoLog = (path: string): void => {
  for (const log of [`${path}-wal`, `${path}-journal`])
    if (statSync(log, { throwIfNoEntry: false })?.size)
      throw new StorageError(
        `${log} belongs to a database that is no longer in this folder. Move the log to the folder of that database, then retry.`,
      )
}

/** Forces the content of a file or folder to the disk, so that it survives a power failure. */
export const sync = (path: string): void => {
  // Windows cannot sync a folder, or a file that is open for reading.
  if (process.platform === 'win32') return
  const file = openSync(path, 'r')
  try {
    fsyncSync(file)
  } finally {
    closeSync(file)
  }
}
