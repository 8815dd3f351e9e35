import { randomBytes } from 'node:crypto'
import { existsSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import type { Logger } from 'pino'
import type { Config } from '#src/config.ts'
import type { Context } from '#src/context.ts'
import { outboundFetch } from '#src/http/outbound.ts'
import { type MasterKey, masterKey } from '#src/lib/master-key.ts'
import { makeDataDir } from '#src/storage/data-dir.ts'
import { StorageError } from '#src/storage/errors.ts'
import { openStore } from '#src/storage/open.ts'
import type { Store } from '#src/storage/store.ts'

export const MASTER_KEY_FILE = 'master.key'

/** The master key of the settings, or the one in the data directory, made at first start. */
export const openMasterKey = (config: Config): MasterKey => {
  if (config.master_key) return masterKey(Buffer.from(config.master_key, 'base64'))
  makeDataDir(config.data_dir)
  const file = join(config.data_dir, MASTER_KEY_FILE)
  if (!existsSync(file))
    writeFileSync(file, `${randomBytes(32).toString('base64')}\n`, { mode: 0o600, flag: 'wx' })
  const bytes = Buffer.from(readFileSync(file, 'utf8'), 'base64')
  if (bytes.length !== 32) throw new StorageError(`${file}: is no master key (32 bytes in base64).`)
  return masterKey(bytes)
}

const CHECK = 'master_key_check'

/** Refuses to go on with another master key than the one that sealed what is stored: better than failing at the first signature. */
const checkMasterKey = async (store: Store, master: MasterKey, now: number): Promise<void> => {
  await store.write(async tx => {
    const { settings } = tx.tables
    const value = master.seal(Buffer.from(CHECK), CHECK).toString('base64')
    await tx.insert(settings).values({ name: CHECK, value, updated_at: now }).onConflictDoNothing()
  })
  const rows = await store.read(async q => q.select().from(q.tables.settings))
  const sealed = rows.find(row => row.name === CHECK)?.value
  try {
    master.open(Buffer.from(String(sealed), 'base64'), CHECK)
  } catch {
    throw new StorageError(
      `The master key is not the one that this database was made with. Give the right one (GATEHOUSE_MASTER_KEY or ${MASTER_KEY_FILE} in the data directory).`,
    )
  }
}

/** Store, master key and clock for a command: everything of the context but what app.ts adds. */
export const openInstance = async (config: Config, log: Logger): Promise<Omit<Context, 'ports'>> => {
  const master = openMasterKey(config)
  const store = await openStore(config)
  const clock = { now: () => Date.now() }
  await checkMasterKey(store, master, clock.now())
  return { config, store, clock, log, fetch: outboundFetch(config), master }
}

/** The same for commands that look at an instance and make none. */
export const openExisting = async (config: Config, log: Logger): Promise<Omit<Context, 'ports'>> => {
  if (!config.database_url && !existsSync(join(config.data_dir, 'gatehouse.db')))
    throw new StorageError(
      `${config.data_dir}: there is no instance here. Name its directory with GATEHOUSE_DATA_DIR, or make one with \`gatehouse serve\`.`,
    )
  return openInstance(config, log)
}
