import { writeFileSync } from 'node:fs'
import { pino } from 'pino'
import { loadConfig } from '#src/config.ts'
import { exportSeed, renderSeed } from '#src/operations/seed/export.ts'
import { openExisting } from './instance.ts'

/** Writes the file that `apply` takes. With secrets it is for its owner's eyes. */
export const exportInstance = async (
  file: string | undefined,
  options: { config?: string; secrets?: boolean },
): Promise<void> => {
  const { config } = loadConfig(process.env, options.config)
  const instance = await openExisting(config, pino({ level: 'silent' }))
  try {
    const text = renderSeed(await exportSeed(instance, { secrets: options.secrets ?? false }))
    if (file === undefined) await Bun.write(Bun.stdout, text)
    else writeFileSync(file, text, { mode: options.secrets ? 0o600 : 0o644 })
  } finally {
    await instance.store.close()
  }
}
