import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Config } from '#src/config.ts'
import { silentLog } from '#src/lib/log.ts'
import { createInstance } from '#src/operations/first-start.ts'
import { applySeed, type SeedOptions } from '#src/seed/apply.ts'
import type { ReadSeed } from '#src/seed/read.ts'
import { openInstance } from './instance.ts'

/**
 * Applies a seed to a temporary instance. Callers do so before they create an instance, so that a refused
 * seed leaves no half-made one.
 *
 * @throws SeedError with the mistakes of the file
 */
export const rehearse = async (config: Config, seed: ReadSeed, options: SeedOptions = {}): Promise<void> => {
  const data_dir = mkdtempSync(join(tmpdir(), 'gatehouse-rehearsal-'))
  try {
    const instance = await openInstance({ ...config, data_dir, database_url: undefined }, silentLog)
    try {
      await createInstance(instance)
      await applySeed(instance, seed, { ...options, dry_run: true })
    } finally {
      await instance.store.close()
    }
  } finally {
    rmSync(data_dir, { recursive: true, force: true })
  }
}
