import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { ConfigError, loadConfig } from '#src/config.ts'
import type { Core } from '#src/context.ts'
import { AppError } from '#src/lib/app-error.ts'
import { silentLog } from '#src/lib/log.ts'
import { MASTER_KEY_FILE } from '#src/lib/master-key.ts'
import { changeMasterKey } from '#src/operations/instance-key.ts'
import { exportKey, importKey } from '#src/tokens/key-import.ts'
import { keyStates } from '#src/tokens/manual-keys.ts'
import { revokeKey, rotateKeys } from '#src/tokens/rotation.ts'
import {
  finishChange,
  makeMasterKey,
  NEXT_MASTER_KEY_FILE,
  openExisting,
  openMasterKey,
  readMasterKey,
} from './instance.ts'
import { print, write } from './print.ts'

interface Options {
  config?: string
}

/** Runs `work` on the instance. A running server uses changed keys within 250 ms. */
const withInstance = async <T>(options: Options, work: (instance: Core) => Promise<T>): Promise<T> => {
  const { config } = loadConfig(process.env, options.config)
  const instance = await openExisting(config, silentLog)
  try {
    return await work(instance)
  } finally {
    await instance.store.close()
  }
}

const show = async (instance: Core): Promise<void> => {
  for (const { kid, alg, state, signs_from, published_until } of await keyStates(instance, 'any')) {
    const until = published_until === null ? '' : `  published until ${published_until}`
    print(`${kid}  ${alg}  ${state.padEnd(7)}  signs from ${signs_from}${until}`)
  }
}

/**
 * Lists the keys with their states and times. Keys that are no longer published are included. Until
 * such a key is revoked, the server accepts an `id_token_hint` that the key has signed.
 */
export const keysList = (options: Options): Promise<void> => withInstance(options, show)

/** Publishes the next key of each algorithm that has a key, unless the next key is published already. */
export const keysRotate = (options: Options): Promise<void> =>
  withInstance(options, async instance => {
    await rotateKeys(instance)
    await show(instance)
  })

const orNoSuchKey = (error: unknown): never => {
  if (!(error instanceof AppError) || error.code !== 'not_found') throw error
  throw new Error('no such key: `gatehouse keys list` prints all keys')
}

/** Withdraws a key at once. Tokens that the key has signed become invalid. */
export const keysRevoke = (id: string, options: Options): Promise<void> =>
  withInstance(options, async instance => {
    await revokeKey(instance, id).catch(orNoSuchKey)
    await show(instance)
  })

/** Imports a private key from a file. */
export const keysImport = (file: string, options: Options & { alg?: string }): Promise<void> =>
  withInstance(options, async instance => {
    print(await importKey(instance, read(file), options.alg))
  })

/** Prints the private key to standard output and writes no file. */
export const keysExport = (id: string, options: Options): Promise<void> =>
  withInstance(options, async instance => {
    write(await exportKey(instance, id).catch(orNoSuchKey))
  })

const read = (file: string): string => {
  try {
    return readFileSync(file, 'utf8')
  } catch (error) {
    throw new Error(`${file} cannot be read (${(error as NodeJS.ErrnoException).code})`)
  }
}

/**
 * Changes the master key. A running server continues, because it keeps the instance key in memory. The master
 * key encrypts the stored instance key, so later starts need the new master key. Without `--new-key-file` the
 * command replaces the key file in the data directory and keeps the old file under another name. With
 * `--new-key-file` the operator has to name the new file in the settings before the next start. The new
 * master key is written to the disk before the instance key is encrypted with it.
 */
export const keysRekey = (options: Options & { newKeyFile?: string }): Promise<void> =>
  withInstance(options, async instance => {
    const { config } = instance
    const next = options.newKeyFile ?? join(config.data_dir, NEXT_MASTER_KEY_FILE)
    if (config.master_key && !options.newKeyFile)
      throw new ConfigError(
        'The settings set the master key (GATEHOUSE_MASTER_KEY or GATEHOUSE_MASTER_KEY_FILE): name a file for the new key with --new-key-file.',
      )
    makeMasterKey(next, config)
    await changeMasterKey(instance, openMasterKey(config), readMasterKey(next))
    if (options.newKeyFile) print(`Set GATEHOUSE_MASTER_KEY_FILE=${next} before the next start.`)
    else {
      const old = finishChange(config) ?? join(config.data_dir, `${MASTER_KEY_FILE}.until-TIME`)
      print(`The data directory has a new ${MASTER_KEY_FILE}. Earlier backups need the old one: ${old}`)
      if (config.database_url)
        print(
          `Copy ${join(config.data_dir, MASTER_KEY_FILE)} to the other servers of this database before their next start.`,
        )
    }
  })
