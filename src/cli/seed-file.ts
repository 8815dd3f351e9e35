import { ConfigError } from '#src/config.ts'
import { readBounded, YamlError } from '#src/lib/yaml.ts'
import type { Change } from '#src/seed/apply.ts'
import { parseSeed, type ReadSeed } from '#src/seed/read.ts'

/** Maximum bytes of a seed file, enough for 120,000 users. Parsing such a file takes 1.4 GB of memory. */
const MAX_BYTES = 16 * 1024 * 1024

/**
 * Reads a seed file; `-` is standard input.
 *
 * @throws ConfigError when the file cannot be read, SeedError when it is not YAML
 */
export const readSeedFile = (file: string): ReadSeed => parseSeed(textOf(file), file, process.env)

const textOf = (file: string): string => {
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

const signs = { create: '+', update: '~', delete: '-' }

/** Returns a line for each change, and the number of changes. */
export const renderChanges = (changes: Change[], done: boolean): string => {
  const lines = changes.map(({ action, section, name, fields }) =>
    [`${signs[action]} ${section.replaceAll('_', ' ').replace(/s$/, '')} ${name}`, fields?.join(', ')]
      .filter(Boolean)
      .join(': '),
  )
  const count = (action: Change['action']) => changes.filter(change => change.action === action).length
  const words = done ? ['created', 'changed', 'deleted'] : ['to create', 'to change', 'to delete']
  const counts = (['create', 'update', 'delete'] as const).map((action, i) => `${count(action)} ${words[i]}`)
  return [
    ...lines,
    changes.length > 0 ? `${counts.join(', ')}.` : 'No changes: everything is as in the file.',
  ].join('\n')
}
