import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { pino } from 'pino'
import { ConfigError, loadConfig } from '#src/config.ts'
import type { Context } from '#src/context.ts'
import { iso } from '#src/lib/text.ts'
import { changeMasterKey } from '#src/operations/instance-key.ts'
import { exportKey, importKey } from '#src/tokens/key-import.ts'
import { listKeys } from '#src/tokens/key-store.ts'
import { revokeKey, rotateKeys } from '#src/tokens/rotation.ts'
import {
  finishChange,
  MASTER_KEY_FILE,
  makeMasterKey,
  NEXT_MASTER_KEY_FILE,
  openExisting,
  openMasterKey,
  readMasterKey,
} from './instance.ts'

interface Options {
  config?: string
}

/** Beside a running server, which takes up the change within a quarter of a second. */
const withInstance = async <T>(
  options: Options,
  work: (instance: Omit<Context, 'ports'>) => Promise<T>,
): Promise<T> => {
  const { config } = loadConfig(process.env, options.config)
  const instance = await openExisting(config, pino({ level: 'silent' }))
  try {
    return await work(instance)
  } finally {
    await instance.store.close()
  }
}

const show = async ({ store, clock }: Pick<Context, 'store' | 'clock'>): Promise<void> => {
  const now = clock.now()
  const keys = await store.read(listKeys)
  const signing = new Map(keys.filter(key => key.active_at <= now).map(({ alg, id }) => [alg, id]))
  for (const { id, alg, active_at, expires_at } of keys) {
    const state = active_at > now ? 'next' : signing.get(alg) === id ? 'signing' : 'retired'
    const until = expires_at === null ? '' : `  published until ${iso(expires_at)}`
    console.log(`${id}  ${alg}  ${state.padEnd(7)}  signs from ${iso(active_at)}${until}`)
  }
}

export const keysList = (options: Options): Promise<void> => withInstance(options, show)

export const keysRotate = (options: Options): Promise<void> =>
  withInstance(options, async instance => {
    await rotateKeys(instance)
    await show(instance)
  })

export const keysRevoke = (id: string, options: Options): Promise<void> =>
  withInstance(options, async instance => {
    await revokeKey(instance, id)
    await show(instance)
  })

export const keysImport = (file: string, options: Options & { alg?: string }): Promise<void> =>
  withInstance(options, async instance => {
    console.log(await importKey(instance, read(file), options.alg))
  })

/** To standard output: whoever asks decides where a private key goes. */
export const keysExport = (id: string, options: Options): Promise<void> =>
  withInstance(options, async instance => void (await Bun.write(Bun.stdout, await exportKey(instance, id))))

const read = (file: string): string => {
  try {
    return readFileSync(file, 'utf8')
  } catch (error) {
    throw new Error(`${file} cannot be read (${(error as NodeJS.ErrnoException).code})`)
  }
}

/**
 * Another master key. Running servers go on; later starts need the new one. Where the key is a file in the data directory a
 * new one is made; where the settings hold it, they have to follow. The new key is on the disk before anything depends on it.
 */
export const keysRekey = (options: Options & { newKeyFile?: string }): Promise<void> =>
  withInstance(options, async instance => {
    const { config } = instance
    const next = options.newKeyFile ?? join(config.data_dir, NEXT_MASTER_KEY_FILE)
    if (config.master_key && !options.newKeyFile)
      throw new ConfigError('GATEHOUSE_MASTER_KEY holds the key: name the new one with --new-key-file.')
    makeMasterKey(next)
    await changeMasterKey(instance, openMasterKey(config), readMasterKey(next))
    if (options.newKeyFile)
      console.log(`The next start needs the key of ${next} (GATEHOUSE_MASTER_KEY_FILE=${next}).`)
    else {
      finishChange(config)
      console.log('A new master.key lies in the data directory. Backups made before need the old one.')
      if (config.database_url)
        console.log(
          `Other copies with a file of their own need it before their next start: copy ${join(config.data_dir, MASTER_KEY_FILE)} there.`,
        )
    }
  })
