import { statSync } from 'node:fs'
import { ConfigError } from '#src/config.ts'
import { readBounded, YamlError } from '#src/lib/yaml.ts'

/** Maximum bytes of a seed file, enough for 120,000 users. Parsing such a file takes 1.4 GB of memory. */
const MAX_BYTES = 16 * 1024 * 1024

/**
 * Reads the text of a seed file; `-` is standard input.
 *
 * @throws ConfigError when the file cannot be read, or is too large
 */
export const readSeedText = (file: string): string => {
  try {
    return readBounded(file, MAX_BYTES)
  } catch (error) {
    if (error instanceof YamlError)
      throw new ConfigError(
        `${file}: ${error.message} Split it into several files: entries that a file does not name stay unchanged.`,
      )
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
