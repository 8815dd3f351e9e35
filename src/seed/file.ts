import { statSync } from 'node:fs'
import { ConfigError } from '#src/config.ts'
import { readBounded, YamlError } from '#src/lib/yaml.ts'

/**
 * Maximum size of a seed file in bytes. A file of this size has about 120,000 users. Parsing the file takes
 * 1.4 GB of memory.
 */
export const MAX_SEED_BYTES = 16 * 1024 * 1024

/** Returns the error for a seed file with more than `MAX_SEED_BYTES` bytes. */
export const tooLargeSeed = (file: string): ConfigError =>
  new ConfigError(
    `${file}: Larger than ${MAX_SEED_BYTES / 1024} KiB. Split it into several files: entries that a file does not name stay unchanged.`,
  )

/**
 * Reads the text of a seed file. The name `-` means standard input.
 *
 * @throws ConfigError when the file cannot be read or is too large
 */
export const readSeedText = (file: string): string => {
  try {
    return readBounded(file, MAX_SEED_BYTES)
  } catch (error) {
    // `readBounded` throws YamlError only for a file that is too large.
    if (error instanceof YamlError) throw tooLargeSeed(file)
    throw new ConfigError(`${file}: cannot be read (${(error as NodeJS.ErrnoException).code}).`)
  }
}

/** True for standard input, a pipe or a device, which can be read only once. */
export const isStream = (file: string): boolean => {
  if (file === '-') return true
  try {
    const found = statSync(file)
    return !found.isFile() && !found.isDirectory()
  } catch {
    return false
  }
}
