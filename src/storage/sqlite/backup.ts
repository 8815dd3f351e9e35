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
import { isAlive } from '#src/lib/program.ts'
import { giveToOwner, requireNoLog, sync } from '#src/storage/data-dir.ts'
import { failureText, isBusy, StorageError } from '#src/storage/errors.ts'
import { inspect, isDamage } from './inspect.ts'
import { migrate, requireOurs } from './migrate.ts'
import { openUntrusted } from './schema-check.ts'

/** Called with a description of the next stage of a long command. */
export type OnProgress = (text: string) => void

/** Result of a verified copy. */
export interface Copied {
  bytes: number
  /** Rows by table. */
  rows: Record<string, number>
}

const remove = (path: string): void => {
  for (const suffix of ['', '-journal', '-wal', '-shm']) rmSync(path + suffix, { force: true })
}

/**
 * Returns the temporary name for `target`. The name contains the process id, so that two processes do not
 * write to one file.
 */
const partialOf = (target: string): string => `${target}.partial-${process.pid}`

/** Removes temporary files of `target` that ended processes have left. */
const removeRemains = (target: string): void => {
  const folder = dirname(target)
  for (const name of readdirSync(folder)) {
    const pid = name.startsWith(`${basename(target)}.partial-`) && /\.partial-(\d+)/.exec(name)?.[1]
    if (pid && (Number(pid) === process.pid || !isAlive(Number(pid)))) remove(join(folder, name))
  }
}

/** Removes a temporary file. Errors are ignored, so that they do not hide an earlier error. */
const discard = (path: string): void => {
  try {
    remove(path)
  } catch {}
}

/**
 * Returns the result of `use` on the database at `path`. Other processes can write to the database meanwhile.
 *
 * @param options options of bun:sqlite
 * @throws StorageError when the database cannot be read, or SQLite's error when it is damaged
 */
export const withReadOnly = <T>(
  path: string,
  use: (db: Database) => T,
  options: object = { readonly: true },
): T => {
  try {
    using db = openUntrusted(path, options)
    db.run('PRAGMA busy_timeout = 5000')
    return use(db)
  } catch (error) {
    if (error instanceof StorageError || isDamage(error)) throw error
    throw new StorageError(`${path} cannot be read: ${failureText(error)}.`, isBusy(error) ? 75 : 78)
  }
}

/**
 * Checks a database file and returns its size and rows.
 *
 * @throws StorageError when the file is damaged, or is not a Gatehouse database of this or an older version
 */
export const verify = (path: string, onProgress?: OnProgress): Copied => {
  const { findings, rows } = withReadOnly(path, db => inspect(db, onProgress), { readwrite: true })
  if (findings.length > 0) throw new StorageError(`${path} is damaged: ${findings[0]}.`)
  return { bytes: statSync(path).size, rows }
}

/**
 * Creates the database file `target`, which only its owner can read. `fill` writes the file under a temporary
 * name. The file is verified and then renamed, so a file with the name `target` is always complete.
 *
 * @throws StorageError when `target` exists or cannot be written, or when the written file is damaged
 */
export const makeFile = async (
  target: string,
  fill: (partial: string) => Promise<void>,
  onProgress?: OnProgress,
): Promise<Copied> => {
  if (existsSync(target)) throw new StorageError(`${target} already exists. Choose another name.`, 1)
  requireNoLog(target)
  const partial = partialOf(target)
  try {
    removeRemains(target)
    closeSync(openSync(partial, 'wx', 0o600))
    await fill(partial)
    const copied = verify(partial, onProgress)
    sync(partial)
    if (existsSync(target))
      throw new StorageError(`${target} was created by another process in the meantime.`, 1)
    renameSync(partial, target)
    sync(dirname(target))
    return copied
  } catch (error) {
    discard(partial)
    if (error instanceof StorageError) throw error
    throw new StorageError(`${target} cannot be written: ${failureText(error)}.`, 1)
  }
}

/**
 * Copies one consistent state of the database at `source`. Servers can write to the database meanwhile:
 * VACUUM INTO reads in one transaction, which makes no write wait.
 *
 * @throws StorageError when `source` is damaged or cannot be read, or when `target` cannot be written
 */
export const backUp = (source: string, target: string, onProgress?: OnProgress): Promise<Copied> => {
  const copy = async (partial: string): Promise<void> => {
    try {
      withReadOnly(source, requireOurs)
      using db = openUntrusted(source, { readonly: true })
      db.run('PRAGMA busy_timeout = 5000')
      db.run('VACUUM INTO ?', [partial])
    } catch (error) {
      if (!isDamage(error)) throw error
      throw new StorageError(`${source} is damaged: ${failureText(error)}. Restore a backup.`)
    }
  }
  return makeFile(target, copy, onProgress)
}

/**
 * Returns about the number of bytes that {@link backUp} writes for the database at `source`. A backup has no
 * free pages.
 */
export const backupSize = (source: string): number =>
  withReadOnly(source, db => {
    const number = (name: string) => Number(db.query(`PRAGMA ${name}`).values()[0]?.[0])
    return (number('page_count') - number('freelist_count')) * number('page_size')
  })

/**
 * Checks that the file is a backup. A database that has a log beside it is no backup: it is in use, or its
 * server was killed. A copy of the file alone would lack the content of the log.
 *
 * @throws StorageError when the file does not exist or has a log beside it
 */
const requireBackup = (path: string): void => {
  if (!statSync(path, { throwIfNoEntry: false })?.isFile())
    throw new StorageError(`${path}: there is no such file.`, 1)
  // SQLite keeps the log beside the file itself and not beside a link to the file.
  if (existsSync(`${realpathSync(path)}-wal`))
    throw new StorageError(
      `${path} is a database with a log beside it. Make a copy with \`gatehouse backup\`.`,
      1,
    )
}

/**
 * Refuses a database that a command has open, because the command would write into the replaced file. Moves
 * all commits from the log into the database file, so that the log can be removed. Other failures are
 * ignored, because a backup replaces even a damaged database.
 *
 * @throws StorageError while another process has the database open
 */
export const requireUnused = (path: string): void => {
  try {
    using db = openUntrusted(path, { readwrite: true })
    db.run('PRAGMA busy_timeout = 5000')
    db.run('PRAGMA locking_mode = EXCLUSIVE')
    db.run('BEGIN EXCLUSIVE')
    db.run('COMMIT')
    db.run('PRAGMA wal_checkpoint(TRUNCATE)')
  } catch (error) {
    if (isBusy(error))
      throw new StorageError(
        `${path} is in use by a Gatehouse command. Wait until the command has ended.`,
        75,
      )
  }
}

/**
 * Copies the backup `source` to `partial`, verifies the copy and migrates it to this version. Then runs `use`
 * with the copy, and removes the copy at the end.
 *
 * @throws StorageError when `source` is not a backup, is damaged or cannot be copied, and when `use` throws
 */
export const withBackup = async <T>(
  source: string,
  partial: string,
  use: (copied: Copied) => Promise<T>,
  onProgress?: OnProgress,
): Promise<T> => {
  try {
    requireBackup(source)
    remove(partial)
    // From the first byte on only the owner can read the copy, even if other users can read the backup.
    await pipeline(createReadStream(source), createWriteStream(partial, { flags: 'wx', mode: 0o600 }))
    const copied = verify(partial, onProgress)
    {
      using db = openUntrusted(partial, { readwrite: true })
      migrate(db)
    }
    giveToOwner(partial)
    return await use(copied)
  } catch (error) {
    if (!(error instanceof StorageError)) throw new StorageError(`${source}: ${failureText(error)}.`, 1)
    throw new StorageError(error.message.replaceAll(partial, source), error.exit_code)
  } finally {
    discard(partial)
  }
}

/**
 * Replaces the database at `target` with a copy of the backup `source`. Before this, `accept` inspects the
 * copy and throws to refuse it. The caller must hold the instance lock.
 *
 * @throws StorageError when `source` is not a usable backup, when `accept` refuses the copy, or when `target`
 *   is in use or cannot be replaced
 */
export const restoreBackup = async (
  source: string,
  target: string,
  accept: (path: string) => Promise<void>,
  onProgress?: OnProgress,
): Promise<Copied> => {
  if (existsSync(target) && realpathSync(source) === realpathSync(target))
    throw new StorageError(`${source} is the database itself. Choose a backup of it.`, 1)
  const partial = `${target}.partial`
  const replace = async (copied: Copied): Promise<Copied> => {
    await accept(partial)
    sync(partial)
    if (existsSync(target)) requireUnused(target)
    for (const suffix of ['-journal', '-wal', '-shm']) rmSync(target + suffix, { force: true })
    renameSync(partial, target)
    sync(dirname(target))
    return copied
  }
  return withBackup(source, partial, replace, onProgress)
}
