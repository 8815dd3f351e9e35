import { randomBytes } from 'node:crypto'
import {
  accessSync,
  closeSync,
  constants,
  existsSync,
  fstatSync,
  linkSync,
  openSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs'
import { dirname, join, resolve } from 'node:path'
import type { Config } from '#src/config.ts'
import type { Core } from '#src/context.ts'
import { openXmlReader } from '#src/directory/identity-providers/xml-reader.ts'
import { lateOutbound } from '#src/http/late-outbound.ts'
import type { Logger } from '#src/lib/log.ts'
import { MASTER_KEY_FILE, type MasterKey, masterKey } from '#src/lib/master-key.ts'
import { iso } from '#src/lib/text.ts'
import { smtpTransport } from '#src/mail/smtp.ts'
import { openCore } from '#src/operations/core.ts'
import { checkBeforeUpgrade, isNewInstance, openInstanceKey } from '#src/operations/instance-key.ts'
import { giveToOwner, makeDataDir, sync } from '#src/storage/data-dir.ts'
import { NotMigrated, StorageError } from '#src/storage/errors.ts'
import { DATABASE_FILE, openStore } from '#src/storage/open.ts'
import type { Store } from '#src/storage/store.ts'
import { hasDatabase, requireServersEngine } from './last-start.ts'

/** File of the next master key while `gatehouse keys rekey` runs. */
export const NEXT_MASTER_KEY_FILE = 'master.key.next'

/**
 * Returns the master key of the settings or of the data directory.
 *
 * @param make creates the key file if it is missing
 * @throws StorageError when there is no valid key
 */
export const openMasterKey = (config: Config, make = false): MasterKey => {
  if (config.master_key) return masterKey(Buffer.from(config.master_key, 'base64'))
  const file = join(config.data_dir, MASTER_KEY_FILE)
  if (!existsSync(file) && !make)
    throw new StorageError(
      `${file}: there is no master key. Copy the key of this database to that path, or set GATEHOUSE_MASTER_KEY.`,
    )
  makeDataDir(config.data_dir)
  makeMasterKey(file, config)
  return readMasterKey(file)
}

/**
 * Creates a master key file atomically and syncs it to the disk. An existing file is kept. In the data
 * directory the file gets the owner of that directory. Elsewhere it belongs to the user who makes it, because
 * the owner of another folder must not get the key.
 *
 * @throws StorageError when the file cannot be written
 */
export const makeMasterKey = (file: string, { data_dir }: Pick<Config, 'data_dir'>): void => {
  if (existsSync(file)) return
  const partial = `${file}.${randomBytes(4).toString('hex')}`
  try {
    writeFileSync(partial, `${randomBytes(32).toString('base64')}\n`, {
      mode: 0o600,
      flag: 'wx',
      flush: true,
    })
    if (resolve(dirname(file)) === resolve(data_dir)) giveToOwner(partial)
    // A hard link never replaces a file, so the second of two processes uses the key that the first one made.
    linkSync(partial, file)
    sync(dirname(file))
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException
    if (code !== 'EEXIST') throw new StorageError(`${file}: cannot be created (${code}).`)
  } finally {
    rmSync(partial, { force: true })
  }
}

/** @throws StorageError when the file cannot be read, or does not contain 32 bytes in base64 */
export const readMasterKey = (file: string): MasterKey => {
  let bytes: Buffer
  try {
    bytes = Buffer.from(readFileSync(file, 'utf8'), 'base64')
  } catch (error) {
    throw new StorageError(`${file}: cannot be read (${(error as NodeJS.ErrnoException).code}).`)
  }
  if (bytes.length !== 32) throw new StorageError(`${file}: not a master key (32 bytes in base64).`)
  return masterKey(bytes)
}

/**
 * Returns the master keys to try. There are two keys only while `gatehouse keys rekey` runs or after it was
 * interrupted.
 */
const candidates = (config: Config, make = false): MasterKey[] => {
  const next = join(config.data_dir, NEXT_MASTER_KEY_FILE)
  const first = openMasterKey(config, make)
  return config.master_key || !existsSync(next) ? [first] : [first, readMasterKey(next)]
}

/**
 * Opens the database and the master key for a command or the server. `withInstance` (user.ts) explains why
 * commands open the database themselves, without a login.
 */
export const openInstance = async (
  config: Config,
  log: Logger,
  options: { migrate?: boolean } = {},
): Promise<Core> => {
  // A key file is created only with a new database, because a new key cannot open an existing database.
  const file_keys = config.database_url
    ? undefined
    : candidates(config, !existsSync(join(config.data_dir, DATABASE_FILE)))
  const store = await openStore(config, {
    ...options,
    beforeUpgrade: q => checkBeforeUpgrade(q, () => file_keys ?? candidates(config)),
  })
  const clock = { now: () => Date.now() }
  const file = join(config.data_dir, MASTER_KEY_FILE)
  const existed = existsSync(file)
  try {
    const isNew = await isNewInstance(store)
    // With `migrate: false` the command needs an existing instance and creates none. An empty database, such
    // as the target of `migrate-to`, then stays empty.
    if (isNew && options.migrate === false) throw await noInstance(config)
    const masters = file_keys ?? candidates(config, isNew)
    const { key, master } = await openInstanceKey(store, masters, clock.now()).catch(error => {
      // The new key file is deleted only after a StorageError, which shows that the instance has another key.
      // After any other error the new key may be in use.
      if (existed || !existsSync(file) || !(error instanceof StorageError)) throw error
      rmSync(file)
      throw new StorageError(
        `${file}: another server has created the instance with its own key. Copy that key here, or set GATEHOUSE_MASTER_KEY on all servers.`,
      )
    })
    if (master !== masters[0]) finishChange(config)
    return openCore({
      config,
      store,
      clock,
      log,
      fetch: lateOutbound(config),
      xml: openXmlReader(),
      master: key,
      mail: smtpTransport(config),
    })
  } catch (error) {
    await store.close()
    throw error
  }
}

/** @throws StorageError when the store has no instance, or no configured master key opens the instance */
export const requireMasterKey = async (config: Config, store: Store): Promise<void> => {
  if (await isNewInstance(store))
    throw new StorageError('The backup was made before the database had an instance.')
  await openInstanceKey(store, candidates(config), Date.now())
}

/**
 * Copies a key in the data directory. The owner of the directory gets the copy only if this owner has the key
 * already. `file` may be a link to a key of another user.
 */
const copyKey = (file: string, copy: string): void => {
  const opened = openSync(file, 'r')
  try {
    writeFileSync(copy, readFileSync(opened), { mode: 0o600, flag: 'wx', flush: true })
    if (fstatSync(opened).uid === statSync(dirname(file)).uid) giveToOwner(copy)
  } finally {
    closeSync(opened)
  }
}

/**
 * Puts the new master key in the place of the old one. The old key stays under another name, because the
 * backups that were made before the change need it. Returns the path of the old key. Returns undefined when
 * another process finishes the change.
 */
export const finishChange = ({ data_dir }: Config): string | undefined => {
  const file = join(data_dir, MASTER_KEY_FILE)
  const old = `${file}.until-${iso(Date.now()).replaceAll(':', '')}`
  // The old key is copied, not renamed, so that `file` contains a key at all times, even after a crash.
  try {
    copyKey(file, old)
    renameSync(join(data_dir, NEXT_MASTER_KEY_FILE), file)
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException
    // EEXIST: another process made the copy `old` in the same millisecond, and finishes the change.
    if (code === 'EEXIST') return
    if (code !== 'ENOENT') throw error
    // ENOENT: another process has already put the new key into `file`, so `old` may be a copy of the new key.
    rmSync(old, { force: true })
    return
  }
  sync(data_dir)
  return old
}

/**
 * True when the store has an instance. The check changes nothing, because a server may be running. A database
 * of an older version is therefore not migrated, and counts as an instance.
 */
export const hasInstance = async (config: Config): Promise<boolean> => {
  if (!hasDatabase(config)) return false
  try {
    const store = await openStore(config, { migrate: false })
    try {
      return !(await isNewInstance(store))
    } finally {
      await store.close()
    }
  } catch (error) {
    if (error instanceof NotMigrated) return !error.is_empty
    throw error
  }
}

/** Like {@link openInstance}, for commands that need an existing instance. */
export const openExisting = async (config: Config, log: Logger): Promise<Core> => {
  if (!config.database_url) requireDatabase(config)
  return openInstance(config, log, { migrate: false })
}

/**
 * Returns the error for a database that has tables but no instance, such as after an interrupted start or
 * copy.
 */
const noInstance = async ({ data_dir, database_url }: Config): Promise<StorageError> => {
  const where = database_url
    ? (await import('#src/storage/postgres/connect.ts')).parseUrl(database_url).where
    : join(data_dir, DATABASE_FILE)
  return new StorageError(`${where}: this database has no instance yet. Create one with \`gatehouse serve\`.`)
}

/**
 * Returns the path of the database file.
 *
 * @throws StorageError when the last server used PostgreSQL, the file does not exist, or this user may not
 *   read it
 */
export const requireDatabase = (config: Config): string => {
  requireServersEngine(config)
  const { data_dir } = config
  const path = join(data_dir, DATABASE_FILE)
  try {
    accessSync(path, constants.R_OK)
    return path
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'EACCES')
      throw new StorageError(
        `${path}: this user may not read it. Run the command as the user that runs the server.`,
      )
  }
  throw new StorageError(
    `${data_dir}: there is no instance here. Set GATEHOUSE_DATA_DIR to the directory of the instance, or create an instance with \`gatehouse serve\` or \`gatehouse apply\`.`,
  )
}
