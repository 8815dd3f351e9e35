import { pino } from 'pino'
import { loadConfig } from '#src/config.ts'
import { openExisting } from './instance.ts'
import { applySeedFile, renderChanges } from './seed-file.ts'

/** Prints the changes that `apply` would make. */
export const plan = async (file: string, options: { config?: string; prune?: boolean }): Promise<void> => {
  const { config } = loadConfig(process.env, options.config)
  const instance = await openExisting(config, pino({ level: 'silent' }))
  try {
    const changes = await applySeedFile(instance, file, { ...options, dry_run: true })
    console.log(renderChanges(changes, false))
  } finally {
    await instance.store.close()
  }
}
