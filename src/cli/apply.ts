import { loadConfig } from '#src/config.ts'
import { silentLog } from '#src/lib/log.ts'
import { checkNames, createInstance } from '#src/operations/first-start.ts'
import { applySeed } from '#src/seed/apply.ts'
import { hasInstance, openInstance } from './instance.ts'
import { requireServersEngine } from './last-start.ts'
import { print } from './print.ts'
import { rehearse } from './rehearsal.ts'
import { readSeedFile, renderChanges } from './seed-file.ts'

/** Applies a seed file. A running server sees the changes within 250 ms. */
export const apply = async (file: string, options: { config?: string; prune?: boolean }): Promise<void> => {
  const { config } = loadConfig(process.env, options.config)
  requireServersEngine(config)
  const seed = readSeedFile(file)
  await checkNames(config)
  const exists = await hasInstance(config)
  if (!exists) await rehearse(config, seed, options)
  const instance = await openInstance(config, silentLog, { migrate: !exists })
  try {
    await createInstance(instance)
    print(renderChanges(await applySeed(instance, seed, options), true))
  } finally {
    await instance.store.close()
  }
}
