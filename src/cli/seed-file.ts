import { ConfigError } from '#src/config.ts'
import type { Context } from '#src/context.ts'
import { readBounded, YamlError } from '#src/lib/yaml.ts'
import { applySeed, type Change, type SeedOptions } from '#src/seed/apply.ts'
import { parseSeed, type ReadSeed } from '#src/seed/read.ts'

/** In bytes: about 120,000 users. Their parse takes 1.4 GB of memory. */
const LARGEST = 16 * 1024 * 1024

/** `-` is standard input. */
export const readSeedFile = (file: string): ReadSeed => parseSeed(textOf(file), file, process.env)

const textOf = (file: string): string => {
  try {
    return readBounded(file, LARGEST)
  } catch (error) {
    if (error instanceof YamlError)
      throw new ConfigError(`${file}: ${error.message} Split it: what a file does not name stays as it is.`)
    throw new ConfigError(`${file}: can't be read (${(error as NodeJS.ErrnoException).code}).`)
  }
}

export const applySeedFile = (
  instance: Omit<Context, 'ports'>,
  file: string,
  options: SeedOptions = {},
): Promise<Change[]> => applySeed(instance, readSeedFile(file), options)

const signs = { create: '+', update: '~', delete: '-' }

/** A line for each change, and how many there are. */
export const renderChanges = (changes: Change[], done: boolean): string => {
  const lines = changes.map(({ action, section, name, fields }) =>
    [`${signs[action]} ${section.replaceAll('_', ' ').replace(/s$/, '')} ${name}`, fields?.join(', ')]
      .filter(Boolean)
      .join(': '),
  )
  const count = (action: Change['action']) => changes.filter(change => change.action === action).length
  const words = done ? ['created', 'changed', 'deleted'] : ['to create', 'to change', 'to delete']
  const counts = (['create', 'update', 'delete'] as const).map((action, i) => `${count(action)} ${words[i]}`)
  return [...lines, changes.length > 0 ? `${counts.join(', ')}.` : 'Everything is as the file says.'].join(
    '\n',
  )
}
