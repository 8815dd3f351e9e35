import { existsSync, lstatSync, readdirSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { MINUTE } from '#src/lib/duration.ts'
import { isLocked, LOCK_FILE } from '#src/storage/sqlite/lock.ts'

/** Prefix of the temporary directory of a development server, before six random letters. */
export const TEMPORARY_PREFIX = 'gatehouse-dev-'

/**
 * Removes the directories of development servers that were killed. Directories that cannot be read belong to
 * other users.
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
 * True for a directory of this user that no process holds. A directory without a lock may be about to get
 * one, so it has to be a minute old; symbolic links are left alone.
 */
const isLeftover = (path: string): boolean => {
  const found = lstatSync(path)
  if (!found.isDirectory() || found.uid !== process.getuid?.()) return false
  return existsSync(join(path, LOCK_FILE)) ? !isLocked(path) : found.mtimeMs < Date.now() - MINUTE
}
