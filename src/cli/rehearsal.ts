import { existsSync, mkdtempSync, readdirSync, rmdirSync, rmSync, statSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Config } from '#src/config.ts'
import { HOUR } from '#src/lib/duration.ts'
import { silentLog } from '#src/lib/log.ts'
import { isAlive } from '#src/lib/program.ts'
import { createInstance } from '#src/operations/first-start.ts'
import { applySeed, type SeedOptions } from '#src/seed/apply.ts'
import type { ReadSeed } from '#src/seed/read.ts'
import { makeDataDir } from '#src/storage/data-dir.ts'
import { openInstance } from './instance.ts'

/** Prefix of the name of a rehearsal's folder. The id of the process and random characters follow. */
const PREFIX = '.rehearsal-'

/**
 * Applies a seed to a temporary instance. Callers rehearse before they create the real instance, so that a
 * refused seed leaves no half-made instance. If the rehearsal creates the data directory, it removes the
 * directory again.
 *
 * @throws SeedError with the mistakes of the file; ConfigError for settings that `createInstance` refuses
 */
export const rehearse = async (config: Config, seed: ReadSeed, options: SeedOptions = {}): Promise<void> => {
  const isNew = !existsSync(config.data_dir)
  const data_dir = makeFolder(config)
  try {
    const instance = await openInstance({ ...config, data_dir, database_url: undefined }, silentLog)
    try {
      await createInstance(instance)
      await applySeed(instance, seed, { ...options, dry_run: true })
    } finally {
      await instance.store.close()
    }
  } finally {
    rmSync(data_dir, { recursive: true, force: true })
    if (isNew) removeIfEmpty(config.data_dir)
  }
}

/**
 * Creates the folder of a rehearsal in the data directory, because a service may have no other writable
 * folder. A server on PostgreSQL may have no data directory. The rehearsal's folder is then in the system's
 * temporary folder or, if this is not writable, in shared memory.
 */
const makeFolder = ({ data_dir, database_url }: Config): string => {
  const makeIn = (parent: string): string => mkdtempSync(join(parent, `${PREFIX}${process.pid}-`))
  try {
    makeDataDir(data_dir)
    removeRemains(data_dir)
    return makeIn(data_dir)
  } catch (error) {
    for (const parent of database_url ? [tmpdir(), '/dev/shm'] : [])
      try {
        return makeIn(parent)
      } catch {}
    throw error
  }
}

/**
 * Removes the folders that killed rehearsals left. A folder with the id of this process is also removed,
 * because in a restarted container this process may have the id of the killed process. A folder that changed
 * in the last hour stays, because it may belong to a container that shares the data directory and has the
 * same process ids. No rehearsal takes an hour.
 */
const removeRemains = (data_dir: string): void => {
  for (const name of readdirSync(data_dir).filter(name => name.startsWith(PREFIX))) {
    const folder = join(data_dir, name)
    const pid = Number.parseInt(name.slice(PREFIX.length), 10)
    const changed_at = statSync(folder, { throwIfNoEntry: false })?.mtimeMs ?? 0
    if (pid && changed_at < Date.now() - HOUR && (pid === process.pid || !isAlive(pid)))
      rmSync(folder, { recursive: true, force: true })
  }
}

/** Removes a folder. A folder that another process has begun to use is not empty, so it stays. */
const removeIfEmpty = (path: string): void => {
  try {
    rmdirSync(path)
  } catch {}
}
