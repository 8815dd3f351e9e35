import type { Database } from 'bun:sqlite'
import {
  closeSync,
  createReadStream,
  createWriteStream,
  existsSync,
  openSync,
  readdirSync,
  realpathSync,
  renameSync,
  rmSync,
  statSync,
} from 'node:fs'
import { basename, dirname, join } from 'node:path'
import { pipeline } from 'node:stream/promises'
import { requireNoLog, sync } from '#src/storage/data-dir.ts'
import { isBusy, StorageError } from '#src/storage/errors.ts'
import { inspect, isDamage } from './inspect.ts'
import { migrate, requireOurs } from './migrate.ts'
import { openUntrusted } from './schema-check.ts'

/** What has been copied and verified. */
export interface Copied {
  bytes: number
  /** Rows by table. */
  rows: Record<string, number>
}

const reasonOf = (error: unknown): string => (error instanceof Error ? error.message : String(error))

const remove = (path: string): void => {
  for (const suffix of ['', '-journal', '-wal', '-shm']) rmSync(path + suffix, { force: true })
}

/** The name under which this process makes `target`: two that make the same do not meet in one file. */
const partialOf = (target: string): string => `${target}.partial-${process.pid}`

/** Removes what processes have left that died while they made `target`. */
const removeRemains = (target: string): void => {
  const folder = dirname(target)
  for (const name of readdirSync(folder)) {
    const pid = name.startsWith(`${basename(target)}.partial-`) && /\.partial-(\d+)/.exec(name)?.[1]
    if (pid && (Number(pid) === process.pid || !isAlive(Number(pid)))) remove(join(folder, name))
  }
}

const isAlive = (pid: number): boolean => {
  try {
    return process.kill(pid, 0)
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === 'EPERM'
  }
}

/** Where nothing can be removed, nothing was made: what went wrong before has been said, or is thrown on. */
const discard = (path: string): void => {
  try {
    remove(path)
  } catch {}
}

/**
 * What `look` finds in the database at `path`, beside those who write to it. Throws StorageError where it cannot be read,
 * and SQLite's own error where it is damaged.
 */
export const reading = <T>(
  path: string,
  look: (db: Database) => T,
  options: object = { readonly: true },
): T => {
  try {
    using db = openUntrusted(path, options)
    db.run('PRAGMA busy_timeout = 5000')
    return look(db)
  } catch (error) {
    if (error instanceof StorageError || isDamage(error)) throw error
    throw new StorageError(`${path} cannot be read: ${reasonOf(error)}.`, isBusy(error) ? 75 : 78)
  }
}

/** Opens, reads and judges a database file; throws a StorageError when it is no whole one of ours. */
export const verify = (path: string): Copied => {
  const { findings, rows } = reading(path, inspect, { readwrite: true })
  if (findings.length > 0) throw new StorageError(`${path} is damaged: ${findings[0]}.`)
  return { bytes: statSync(path).size, rows }
}

/**
 * Makes the database file `target`, which nobody but its owner reads at any moment: `fill` writes it under another name,
 * and it appears under its own once it is verified and whole. Throws StorageError.
 */
export const makeFile = async (target: string, fill: (partial: string) => Promise<void>): Promise<Copied> => {
  if (existsSync(target)) throw new StorageError(`${target} exists: choose another name.`, 1)
  requireNoLog(target)
  const partial = partialOf(target)
  try {
    removeRemains(target)
    closeSync(openSync(partial, 'wx', 0o600))
    await fill(partial)
    const copied = verify(partial)
    sync(partial)
    if (existsSync(target)) throw new StorageError(`${target} was made by another process meanwhile.`, 1)
    renameSync(partial, target)
    sync(dirname(target))
    return copied
  } catch (error) {
    discard(partial)
    if (error instanceof StorageError) throw error
    throw new StorageError(`${target} cannot be written: ${reasonOf(error)}.`, 1)
  }
}

/** Copies the database at `source` while others write to it: one state, with all that was committed before. Throws StorageError. */
export const backUp = (source: string, target: string): Promise<Copied> =>
  makeFile(target, async partial => {
    try {
      reading(source, requireOurs)
      using db = openUntrusted(source, { readonly: true })
      db.run('PRAGMA busy_timeout = 5000')
      db.run('VACUUM INTO ?', [partial])
    } catch (error) {
      if (!isDamage(error)) throw error
      throw new StorageError(`${source} is damaged: ${reasonOf(error)}. Restore a backup.`)
    }
  })

/** A file beside which a log lies is a database in use, or one that was not stopped: a copy of it alone would lack what is in the log. */
const requireBackup = (path: string): void => {
  if (!statSync(path, { throwIfNoEntry: false })?.isFile())
    throw new StorageError(`${path}: there is no such file.`, 1)
  if (existsSync(`${path}-wal`))
    throw new StorageError(
      `${path} is a database, with its log beside it: \`gatehouse backup\` makes a copy of it.`,
      1,
    )
}

/** All that is committed goes into the file itself, so that its log can be removed. A damaged one is lost anyway. */
const settle = (path: string): void => {
  try {
    using db = openUntrusted(path, { readwrite: true })
    db.run('PRAGMA wal_checkpoint(TRUNCATE)')
  } catch {}
}

/**
 * A verified copy at `partial` of the backup `source`, brought up to this version, for as long as `use` runs. Throws
 * StorageError.
 */
export const withBackup = async <T>(
  source: string,
  partial: string,
  use: (copied: Copied) => Promise<T>,
): Promise<T> => {
  try {
    requireBackup(source)
    remove(partial)
    // Others may read the backup: what is made of it is its owner's alone from the first byte on.
    await pipeline(createReadStream(source), createWriteStream(partial, { flags: 'wx', mode: 0o600 }))
    const copied = verify(partial)
    {
      using db = openUntrusted(partial, { readwrite: true })
      migrate(db)
    }
    return await use(copied)
  } catch (error) {
    if (!(error instanceof StorageError)) throw new StorageError(`${source}: ${reasonOf(error)}.`, 1)
    throw new StorageError(error.message.replaceAll(partial, source), error.exit_code)
  } finally {
    discard(partial)
  }
}

/**
 * Puts the copy `source` in the place of the database at `target`. `accept` sees the copy before anything is replaced, and
 * throws when it must not be. Callers hold the instance lock. Throws StorageError.
 */
export const restore = async (
  source: string,
  target: string,
  accept: (path: string) => Promise<void>,
): Promise<Copied> => {
  if (existsSync(target) && realpathSync(source) === realpathSync(target))
    throw new StorageError(`${source} is the database itself: name a backup of it.`, 1)
  const partial = `${target}.partial`
  return withBackup(source, partial, async copied => {
    await accept(partial)
    sync(partial)
    if (existsSync(target)) settle(target)
    for (const suffix of ['-journal', '-wal', '-shm']) rmSync(target + suffix, { force: true })
    renameSync(partial, target)
    sync(dirname(target))
    return copied
  })
}
