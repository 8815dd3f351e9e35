import { Database } from 'bun:sqlite'
import { existsSync, readdirSync, readFileSync, rmSync } from 'node:fs'
import { basename, dirname, join } from 'node:path'
import { followed, makeDataDir, touch } from '#src/storage/data-dir.ts'
import { isBusy, StorageError } from '#src/storage/errors.ts'
import { DATABASE_FILE } from '#src/storage/open.ts'

export const LOCK_FILE = 'gatehouse.lock'
/** File with the addresses of the last server that was started on a data directory. */
export const SERVER_FILE = 'server.json'
/** File in the data directory into which `restore` copies a backup for PostgreSQL. */
export const RESTORE_COPY = 'restore.partial'

/**
 * Connections that hold a lock. They must stay reachable, because garbage collection would close them and
 * release the lock.
 */
const held = new Set<Database>()

/**
 * Locks the data directory for this process. Returns the function that unlocks the directory. Without the
 * lock two servers would run the same periodic jobs at the same time. The lock is SQLite's lock on an empty
 * file. The operating system releases the lock when the process ends, even after a crash. The empty file is
 * beside the database itself, even if the data directory has only a link to the database, because another
 * data directory may have a link to the same database. Copies that a killed command has left are removed.
 *
 * @throws StorageError while another process holds the lock
 */
export const lockInstance = (data_dir: string): (() => void) => {
  makeDataDir(data_dir)
  // For a database in the data directory this is `LOCK_FILE`.
  const database = followed(join(data_dir, DATABASE_FILE))
  const path = database.replace(/(?:\.db)?$/, '.lock')
  touch(path)
  const db = new Database(path)
  try {
    db.run('BEGIN EXCLUSIVE')
  } catch (error) {
    db.close()
    if (!isBusy(error)) throw new StorageError(`${path}: ${(error as Error).message}.`)
    throw new StorageError(
      `${data_dir} is in use by another Gatehouse server${lastUrl(data_dir)} or command. Stop it, or set both GATEHOUSE_DATA_DIR and GATEHOUSE_PORT: another port alone is not enough.`,
      75,
    )
  }
  held.add(db)
  removeCopies(data_dir, RESTORE_COPY)
  removeCopies(dirname(database), `${basename(database)}.partial`)
  return () => {
    held.delete(db)
    db.close()
  }
}

/**
 * Removes the copies that a killed `restore` or `migrate-to` has left, because they contain people who were
 * deleted since. Both commands hold the lock, so neither is running.
 */
const removeCopies = (folder: string, prefix: string): void => {
  try {
    for (const name of readdirSync(folder))
      if (name.startsWith(prefix)) rmSync(join(folder, name), { force: true })
  } catch {
    // A copy that cannot be removed must not stop the server.
  }
}

/**
 * Removes the copies that a killed command has left, at the start of a server on PostgreSQL. A move from
 * PostgreSQL to SQLite leaves its copy there, too. Such a server does not call {@link lockInstance}, which
 * removes the copies for a server on SQLite. Changes nothing while a command holds the lock.
 */
export const removeRestoreCopy = (data_dir: string): void => {
  const isCopy = (name: string) =>
    name.startsWith(RESTORE_COPY) || name.startsWith(`${DATABASE_FILE}.partial`)
  try {
    if (readdirSync(data_dir).some(isCopy)) lockInstance(data_dir)()
  } catch {}
}

/**
 * Returns the public URL of the last server on this directory, in parentheses. Returns an empty text when no
 * URL is stored.
 */
const lastUrl = (data_dir: string): string => {
  try {
    const { url } = JSON.parse(readFileSync(join(data_dir, SERVER_FILE), 'utf8'))
    return typeof url === 'string' ? ` (${url})` : ''
  } catch {
    return ''
  }
}

/**
 * Runs `listen` and takes the lock. For a new directory `listen` runs first, so that a wrong address creates
 * no directory. For an existing directory the lock is taken first, so that the error names the other server
 * and not only the occupied port.
 */
export const lockAround = <T>(data_dir: string, listen: () => T): [opened: T, unlock: () => void] => {
  const early = existsSync(data_dir) ? lockInstance(data_dir) : undefined
  const opened = listen()
  return [opened, early ?? lockInstance(data_dir)]
}

/**
 * True when a process, including this one, has locked the data directory. The directory must contain the lock
 * file. It does not when its database is a link to a file elsewhere.
 */
export const isLocked = (data_dir: string): boolean => {
  const db = new Database(join(data_dir, LOCK_FILE), { readwrite: true, create: false })
  try {
    db.run('BEGIN EXCLUSIVE')
    return false
  } catch (error) {
    if (!isBusy(error)) throw error
    return true
  } finally {
    db.close()
  }
}
