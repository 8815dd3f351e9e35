import { existsSync, lstatSync, readdirSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { MINUTE } from '#src/lib/duration.ts'
import { isLocked, LOCK_FILE } from '#src/storage/sqlite/lock.ts'

/** Prefix of the temporary directory of a development server; six random characters follow it. */
export const TEMPORARY_PREFIX = 'gatehouse-dev-'

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
 * True for a directory of this user that no process holds. A new directory has no lock file for a moment, so
 * a directory without a lock file counts only after a minute. Symbolic links do not count.
 */
const isLeftover = (path: string): boolean => {
  const found = lstatSync(path)
  if (!found.isDirectory() || found.uid !== process.getuid?.()) return false
  return existsSync(join(path, LOCK_FILE)) ? !isLocked(path) : found.mtimeMs < Date.now() - MINUTE
}
