import { existsSync, lstatSync, mkdtempSync, readdirSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { MINUTE } from '#src/lib/duration.ts'
import { StorageError } from '#src/storage/errors.ts'
import { isLocked, LOCK_FILE } from '#src/storage/sqlite/lock.ts'

/** Prefix of the temporary directory of a development server; six random characters follow it. */
export const TEMPORARY_PREFIX = 'gatehouse-dev-'

/**
 * Runs `use` with a new temporary directory. The directory is removed when `use` throws.
 *
 * @throws StorageError when the folder of temporary files cannot be read or written, or the disk is full
 */
export const inTemporaryDir = async <T>(use: (dir: string) => Promise<T>): Promise<T> => {
  const parent = tmpdir()
  let dir: string | undefined
  try {
    removeLeftovers(parent)
    dir = mkdtempSync(join(parent, TEMPORARY_PREFIX))
    return await use(dir)
  } catch (error) {
    if (dir) rmSync(dir, { recursive: true, force: true })
    const { code } = error as NodeJS.ErrnoException
    if (dir && code !== 'ENOSPC') throw error
    throw new StorageError(
      `${parent}: a temporary directory cannot be created or written (${code}). Set TMPDIR to a writable directory with free space, or choose a data directory with --data-dir.`,
    )
  }
}

/**
 * Removes the directories of development servers that were killed. The directory of a server that still runs
 * stays, even if the process that started the server has ended. A directory that cannot be read belongs to
 * another user and stays.
 */
export const removeLeftovers = (parent = tmpdir()): void => {
  for (const name of readdirSync(parent)) {
    if (!name.startsWith(TEMPORARY_PREFIX)) continue
    try {
      const path = join(parent, name)
      if (isLeftover(path)) rmSync(path, { recursive: true, force: true })
    } catch {}
  }
}

/**
 * True for a directory of this user that has not changed for a minute and that no process has locked. A
 * directory that changed later may belong to a server that has not yet taken the lock, and this check takes
 * the lock for a moment. A symbolic link is never a leftover.
 */
const isLeftover = (path: string): boolean => {
  const found = lstatSync(path)
  if (!found.isDirectory() || found.uid !== process.getuid?.()) return false
  if (found.mtimeMs > Date.now() - MINUTE) return false
  return !existsSync(join(path, LOCK_FILE)) || !isLocked(path)
}
