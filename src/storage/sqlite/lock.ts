import { Database } from 'bun:sqlite'
import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { makeDataDir, touch } from '#src/storage/data-dir.ts'
import { isBusy, StorageError } from '#src/storage/errors.ts'

export const LOCK_FILE = 'gatehouse.lock'
/** File with the addresses of the last server that was started on a data directory. */
export const SERVER_FILE = 'server.json'

/** Keeps connections reachable, because garbage collection would close them and release the lock. */
const held = new Set<Database>()

/**
 * Locks the data directory for this process and returns the function that unlocks it. Without the lock two
 * servers would run the same periodic jobs at the same time. The lock is SQLite's lock on an empty file. The
 * operating system releases it when the process ends, even after a crash.
 *
 * @throws StorageError while another process holds it
 */
export const lockInstance = (data_dir: string): (() => void) => {
  makeDataDir(data_dir)
  const path = join(data_dir, LOCK_FILE)
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
  return () => {
    held.delete(db)
    db.close()
  }
}

/** Returns the public URL of the last server on this directory, in parentheses; empty when none is stored. */
const lastUrl = (data_dir: string): string => {
  try {
    const { url } = JSON.parse(readFileSync(join(data_dir, SERVER_FILE), 'utf8'))
    return typeof url === 'string' ? ` (${url})` : ''
  } catch {
    return ''
  }
}

/**
 * Runs `listen` and takes the lock. For a new directory `listen` comes first, so that a wrong address creates
 * no directory. For an existing directory the lock comes first, so that the error names the other server and
 * not the port that it occupies.
 */
export const lockAround = <T>(data_dir: string, listen: () => T): [opened: T, unlock: () => void] => {
  const early = existsSync(data_dir) ? lockInstance(data_dir) : undefined
  const opened = listen()
  return [opened, early ?? lockInstance(data_dir)]
}

/** True when a process, including this one, has locked the data directory. */
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
