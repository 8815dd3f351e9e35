import { existsSync, lstatSync, readdirSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { MINUTE } from '#src/lib/duration.ts'
import { isLocked, LOCK_FILE } from '#src/storage/sqlite/lock.ts'

/** What the throw-away directory of a development server is called, before six random letters. */
export const THROW_AWAY = 'gatehouse-dev-'

/** Removes the directories of development servers that were killed. What cannot be looked at is somebody else's. */
export const removeLeftovers = (parent = tmpdir()): void => {
  for (const name of readdirSync(parent)) {
    if (!name.startsWith(THROW_AWAY)) continue
    try {
      const path = join(parent, name)
      if (isLeftover(path)) rmSync(path, { recursive: true, force: true })
    } catch {}
  }
}

/** Ours, no link to somewhere else, and held by no process. One without a lock may be about to get it. */
const isLeftover = (path: string): boolean => {
  const found = lstatSync(path)
  if (!found.isDirectory() || found.uid !== process.getuid?.()) return false
  return existsSync(join(path, LOCK_FILE)) ? !isLocked(path) : found.mtimeMs < Date.now() - MINUTE
}
