import { Database } from 'bun:sqlite'
import { join } from 'node:path'
import { makeDataDir, touch } from '#src/storage/data-dir.ts'
import { isBusy, StorageError } from '#src/storage/errors.ts'

export const LOCK_FILE = 'gatehouse.lock'

/** A connection that nobody refers to is closed when memory is cleaned up, and its lock with it. */
const held = new Set<Database>()

/**
 * Takes the data directory for this process; gives the function that lets go of it. The lock is SQLite's own, on an empty
 * file: the system drops it when the process dies, however it dies. Throws StorageError while another holds it.
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
      `${data_dir} is in use by another Gatehouse server: stop it or choose another GATEHOUSE_DATA_DIR.`,
      75,
    )
  }
  held.add(db)
  return () => {
    held.delete(db)
    db.close()
  }
}

/** Whether a process holds the directory, this one included. */
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
