import { loadConfig } from '#src/config.ts'
import { silentLog } from '#src/lib/log.ts'
import { applySeed } from '#src/seed/apply.ts'
import { requireSound } from '#src/seed/read.ts'
import { openExisting } from './instance.ts'
import { print } from './print.ts'
import { readSeedFile, renderChanges } from './seed-file.ts'

/** Prints the changes that `apply` would make. */
export const plan = async (file: string, options: { config?: string; prune?: boolean }): Promise<void> => {
  const { config } = loadConfig(process.env, options.config)
  const seed = readSeedFile(file)
  const instance = await openExisting(config, silentLog).catch(error => {
    requireSound(seed)
    throw error
  })
  try {
    const changes = await applySeed(instance, seed, { ...options, dry_run: true })
    print(renderChanges(changes, false))
  } finally {
    await instance.store.close()
  }
}
