import { randomBytes } from 'node:crypto'
import { existsSync, linkSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import type { Logger } from 'pino'
import type { Config } from '#src/config.ts'
import type { Context } from '#src/context.ts'
import { xmlReader } from '#src/directory/identity-providers/xml-reader.ts'
import { outboundFetch } from '#src/http/outbound.ts'
import { type MasterKey, masterKey } from '#src/lib/master-key.ts'
import { smtpTransport } from '#src/mail/smtp.ts'
import { isNewInstance, openInstanceKey } from '#src/operations/instance-key.ts'
import { makeDataDir, sync } from '#src/storage/data-dir.ts'
import { StorageError } from '#src/storage/errors.ts'
import { DATABASE_FILE, openStore } from '#src/storage/open.ts'
import type { Store } from '#src/storage/store.ts'

export const MASTER_KEY_FILE = 'master.key'
export const NEXT_MASTER_KEY_FILE = 'master.key.next'

/** The master key of the settings, or the one in the data directory; at a first start it is made. Throws StorageError. */
export const openMasterKey = (config: Config, make = false): MasterKey => {
  if (config.master_key) return masterKey(Buffer.from(config.master_key, 'base64'))
  const file = join(config.data_dir, MASTER_KEY_FILE)
  if (!existsSync(file) && !make)
    throw new StorageError(
      `${file}: there is no master key. Put the one here that belongs to the database, or set GATEHOUSE_MASTER_KEY.`,
    )
  makeDataDir(config.data_dir)
  makeMasterKey(file)
  return readMasterKey(file)
}

/** A new key in `file`, whole and on the disk before it has that name. One that is there stays. Throws StorageError. */
export const makeMasterKey = (file: string): void => {
  if (existsSync(file)) return
  const partial = `${file}.${randomBytes(4).toString('hex')}`
  try {
    writeFileSync(partial, `${randomBytes(32).toString('base64')}\n`, {
      mode: 0o600,
      flag: 'wx',
      flush: true,
    })
    // A link replaces nothing: of two processes the second takes what the first has made.
    linkSync(partial, file)
    sync(dirname(file))
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException
    if (code !== 'EEXIST') throw new StorageError(`${file}: cannot be made (${code}).`)
  } finally {
    rmSync(partial, { force: true })
  }
}

/** Throws StorageError when the file has no 32 bytes in base64, or cannot be read. */
export const readMasterKey = (file: string): MasterKey => {
  let bytes: Buffer
  try {
    bytes = Buffer.from(readFileSync(file, 'utf8'), 'base64')
  } catch (error) {
    throw new StorageError(`${file}: cannot be read (${(error as NodeJS.ErrnoException).code}).`)
  }
  if (bytes.length !== 32) throw new StorageError(`${file}: is no master key (32 bytes in base64).`)
  return masterKey(bytes)
}

/**
 * The master keys to try: a change of the key that was cut short leaves the new one beside the old one. Nothing but
 * `gatehouse keys rekey` writes it.
 */
const candidates = (config: Config, make = false): MasterKey[] => {
  const next = join(config.data_dir, NEXT_MASTER_KEY_FILE)
  const first = openMasterKey(config, make)
  return config.master_key || !existsSync(next) ? [first] : [first, readMasterKey(next)]
}

/** Store, key and clock for a command: everything of the context but what app.ts adds. */
export const openInstance = async (
  config: Config,
  log: Logger,
  options: { migrate?: boolean } = {},
): Promise<Omit<Context, 'ports'>> => {
  // A database without its key is of no use: only together they are made.
  const ofFile = config.database_url
    ? undefined
    : candidates(config, !existsSync(join(config.data_dir, DATABASE_FILE)))
  const store = await openStore(config, options)
  const clock = { now: () => Date.now() }
  const file = join(config.data_dir, MASTER_KEY_FILE)
  const had = existsSync(file)
  try {
    const isNew = await isNewInstance(store)
    // Whoever looks must not make what later keeps another instance from being moved there.
    if (isNew && options.migrate === false) throw await noInstance(config)
    const masters = ofFile ?? candidates(config, isNew)
    const { key, master } = await openInstanceKey(store, masters, clock.now()).catch(error => {
      // Any other error may hide that this key is in use.
      if (had || !existsSync(file) || !(error instanceof StorageError)) throw error
      rmSync(file)
      throw new StorageError(
        `${file}: another copy was first and made the instance with its own. Copy that one here, or give all copies GATEHOUSE_MASTER_KEY.`,
      )
    })
    if (master !== masters[0]) finishChange(config)
    return {
      config,
      store,
      clock,
      log,
      fetch: outboundFetch(config),
      xml: xmlReader,
      master: key,
      mail: smtpTransport(config),
    }
  } catch (error) {
    await store.close()
    throw error
  }
}

/** Throws StorageError unless the store has an instance that can be opened with a master key of the settings. */
export const requireMasterKey = async (config: Config, store: Store): Promise<void> => {
  if (await isNewInstance(store))
    throw new StorageError('No instance had been made in this database when it was backed up.')
  await openInstanceKey(store, candidates(config), Date.now())
}

/** The new master key takes the place of the old one. */
export const finishChange = ({ data_dir }: Config): void => {
  renameSync(join(data_dir, NEXT_MASTER_KEY_FILE), join(data_dir, MASTER_KEY_FILE))
  sync(data_dir)
}

/** The same for commands that look at an instance and make none. */
export const openExisting = async (config: Config, log: Logger): Promise<Omit<Context, 'ports'>> => {
  if (!config.database_url) requireDatabase(config)
  return openInstance(config, log, { migrate: false })
}

/** A database that has its tables, from a start or a move that was cut short. */
const noInstance = async ({ data_dir, database_url }: Config): Promise<StorageError> => {
  const where = database_url
    ? (await import('#src/storage/postgres/connect.ts')).parseUrl(database_url).where
    : join(data_dir, DATABASE_FILE)
  return new StorageError(`${where}: there is no instance in it yet. Make one with \`gatehouse serve\`.`)
}

/** The path of the database file; throws StorageError when there is none. */
export const requireDatabase = ({ data_dir }: Config): string => {
  const path = join(data_dir, DATABASE_FILE)
  if (existsSync(path)) return path
  throw new StorageError(
    `${data_dir}: there is no instance here. Name its directory with GATEHOUSE_DATA_DIR, or make one with \`gatehouse serve\`.`,
  )
}
