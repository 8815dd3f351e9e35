import { readSeedText } from '#src/seed/file.ts'
import { parseSeed, type ReadSeed } from '#src/seed/read.ts'
import type { Change } from '#src/seed/steps.ts'

/**
 * Reads a seed file. The name `-` means standard input.
 *
 * @throws ConfigError when the file cannot be read, SeedError when it is not YAML
 */
export const readSeedFile = (file: string): ReadSeed => parseSeed(readSeedText(file), file, process.env)

const signs = { create: '+', update: '~', delete: '-' }

/** Renders a line for each change. The last line has the numbers of new, changed and deleted entries. */
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
    changes.length > 0 ? `${counts.join(', ')}.` : 'No changes: the instance has every value in the file.',
  ].join('\n')
}
