import type { z } from 'zod'
import { foldIdentifier } from '#src/lib/email.ts'
import { isRecord } from '#src/lib/json.ts'
import { parseYaml, YamlError } from '#src/lib/yaml.ts'
import { Seed, type SeedOf, type SeedSection, secretFields, seedJsonSchema, seedSections } from './schema.ts'

/** A mistake in a file. The message says what is allowed. */
export interface Mistake {
  path: string
  message: string
  /** Line number, from 1. Default: the line of the path. */
  line?: number | undefined
}

/** A seed file: the name that messages show, and the line numbers of its entries. */
export interface Source {
  file: string
  /** Returns the line number of a path, from 1. */
  lineOf?(path: readonly PropertyKey[]): number | undefined
}

/**
 * Error that refuses a file. `message` has one line for each mistake. `applied` is the number of changes that
 * were committed before a concurrent change made a later change fail.
 */
export class SeedError extends Error {
  /**
   * The exit code is 75 for a file that was applied in part. All changes were rehearsed before, so a further
   * run can usually apply the missing changes.
   */
  readonly exit_code: number
  readonly mistakes: readonly Mistake[]
  /** Says how many changes were applied, or that nothing was applied. */
  readonly kept: string

  constructor({ file, lineOf }: Source, mistakes: readonly Mistake[], applied = 0) {
    const lines = mistakes.map(
      ({ path, message, line = lineOf?.(keysOf(path)) }) =>
        `  ${[[file, line].filter(Boolean).join(':'), path].filter(Boolean).join(': ')}: ${message}`,
    )
    const count = mistakes.length === 1 ? 'a mistake' : `${mistakes.length} mistakes`
    const first = applied === 1 ? 'its first change was' : `its first ${applied} changes were`
    const kept = applied > 0 ? `${first} applied, but not the others` : 'nothing was applied'
    super(`${file} has ${count}; ${kept}.\n${lines.join('\n')}`)
    this.exit_code = applied > 0 ? 75 : 2
    this.mistakes = mistakes
    this.kept = kept
  }
}

/** An entry of a seed with its path in the file. */
export interface Entry<S extends SeedSection = SeedSection> {
  value: SeedOf<S>
  /** Fields that the file names. An update leaves all other fields as they are. */
  given: ReadonlySet<string>
  path: string
}

/** The valid entries of a seed, and the mistakes of the invalid entries. */
export interface ReadSeed {
  source: Source
  mistakes: readonly Mistake[]
  entries: { [S in SeedSection]: Entry<S>[] }
  /** Sections that the file has. Only these sections are pruned. */
  present: ReadonlySet<SeedSection>
}

type Environment = Readonly<Record<string, string | undefined>>
type Json = Record<string, unknown>

/**
 * Parses a seed in YAML or JSON.
 *
 * @param file the name used in mistakes
 * @param env the variables for `{ env: NAME }`
 * @throws SeedError for text that is not YAML
 */
export const parseSeed = (text: string, file: string, env: Environment = {}): ReadSeed => {
  try {
    const { value, lineOf } = parseYaml(text)
    return readSeed(value ?? {}, { file, lineOf }, env)
  } catch (error) {
    if (!(error instanceof YamlError)) throw error
    throw new SeedError({ file }, [{ path: '', message: error.message, line: error.line }])
  }
}

/** Validates a parsed seed entry by entry, so that one run reports the mistakes of all entries. */
export const readSeed = (
  input: unknown,
  source: Source = { file: 'seed' },
  env: Environment = {},
): ReadSeed => {
  const raw = withSecrets(input, env)
  const whole = Seed.safeParse(raw)
  const issues = whole.error?.issues ?? []
  const wrong = new Set(issues.map(({ path }) => pathOf(path.slice(0, 2))))
  const sections = isRecord(raw) ? raw : {}
  const entriesOf = (section: SeedSection) => {
    const given = sections[section]
    const places = (Array.isArray(given) ? given : []).map((entry, i) => ({
      entry,
      path: `${section}[${i}]`,
    }))
    const sound = places.filter(({ path }) => !wrong.has(path))
    const parsed = whole.data ?? Seed.parse({ [section]: sound.map(({ entry }) => entry) })
    const values = parsed[section] ?? []
    return values.map((value, i) => {
      const { entry, path } = sound[i] as { entry: Json; path: string }
      return { value, given: new Set(Object.keys(entry)), path }
    })
  }
  const read = Object.fromEntries(seedSections.map(section => [section, entriesOf(section)]))
  const repeated = seedSections.flatMap(section => repetitions(section, read[section] as Entry[]))
  const again = new Set(repeated.map(({ path }) => path))
  const once = Object.entries(read).map(([name, all]) => [name, all.filter(({ path }) => !again.has(path))])
  return {
    source,
    mistakes: [...issues.flatMap(issue => mistakesOf(issue, raw)), ...repeated],
    entries: Object.fromEntries(once),
    present: new Set(seedSections.filter(section => sections[section] !== undefined)),
  }
}

/**
 * Returns the seed when its file has no mistakes.
 *
 * @throws SeedError with mistakes such as a wrong field. Mistakes that depend on the database, such as an
 *   unknown organization, are found later by `applySeed`
 */
export const requireSound = (seed: ReadSeed): ReadSeed => {
  if (seed.mistakes.length > 0) throw new SeedError(seed.source, seed.mistakes)
  return seed
}

/** True for `{ env: NAME }`. */
const isReference = (value: unknown): value is { env: string } =>
  isRecord(value) && typeof value.env === 'string' && Object.keys(value).length === 1

/**
 * Replaces `{ env: NAME }` in secret fields by the value of the variable. In other fields it is not allowed,
 * so that a reviewer can read their values in the file. A reference to a variable that is not set stays, and
 * the schema refuses it later. A CI system sets a missing secret as an empty variable.
 */
const withSecrets = (input: unknown, env: Environment): unknown => {
  if (!isRecord(input)) return input
  const filled = Object.entries(secretFields).map(([section, field]) => {
    const entries = input[section]
    const fill = (entry: unknown): unknown => {
      const given = isRecord(entry) ? entry[field] : undefined
      return isReference(given) ? { ...(entry as Json), [field]: env[given.env] || given } : entry
    }
    return [section, Array.isArray(entries) ? entries.map(fill) : entries]
  })
  return { ...input, ...Object.fromEntries(filled.filter(([, entries]) => entries !== undefined)) }
}

const pathOf = (path: readonly PropertyKey[]): string =>
  path.map((key, i) => (typeof key === 'number' ? `[${key}]` : `${i > 0 ? '.' : ''}${String(key)}`)).join('')

/** Returns the keys of a path that `pathOf` has made. */
const keysOf = (path: string): PropertyKey[] =>
  path
    .split(/[.[\]]+/)
    .filter(Boolean)
    .map(key => (/^\d+$/.test(key) ? Number(key) : key))

const valueAt = (path: readonly PropertyKey[], raw: unknown): unknown =>
  path.reduce<unknown>((value, key) => (value as Json | undefined)?.[key as string], raw)

const mistakesOf = (issue: z.core.$ZodIssue, raw: unknown): Mistake[] => {
  if (issue.code !== 'unrecognized_keys') {
    const isMisplaced = isReference(valueAt(issue.path, raw)) && !/environment variable/.test(issue.message)
    const hint = isMisplaced ? ' { env: NAME } is allowed for secrets only.' : ''
    return [{ path: pathOf(issue.path), message: issue.message + hint }]
  }
  const known = namesAt(issue.path, raw).join(', ')
  return issue.keys.map(key => ({
    path: pathOf([...issue.path, key]),
    message: `There is no such field. Fields: ${known}.`,
  }))
}

interface JsonSchema {
  $ref?: string
  $defs?: Record<string, JsonSchema>
  properties?: Record<string, JsonSchema & { const?: unknown }>
  items?: JsonSchema
  anyOf?: JsonSchema[]
  oneOf?: JsonSchema[]
}

/**
 * Lists the fields that the published schema allows at a path. In a union the `type` in the file determines
 * the member whose fields are listed.
 */
const namesAt = (path: readonly PropertyKey[], raw: unknown): string[] => {
  const root = seedJsonSchema() as JsonSchema
  const resolved = (part: JsonSchema): JsonSchema =>
    root.$defs?.[part.$ref?.slice('#/$defs/'.length) ?? ''] ?? part
  let schema = root
  let value = raw
  for (const key of [...path, undefined]) {
    const { type } = isRecord(value) ? value : {}
    const members = (schema.oneOf ?? schema.anyOf ?? [schema]).map(resolved)
    schema = members.find(member => member.properties?.type?.const === type && type) ?? members[0] ?? {}
    if (key === undefined) break
    schema = (typeof key === 'number' ? schema.items : schema.properties?.[String(key)]) ?? {}
    value = (value as Json | undefined)?.[key as string]
  }
  return Object.keys(schema.properties ?? {})
}

/** For each section, the function that returns the name of an entry. */
const entryNames = {
  organizations: ({ slug }) => slug,
  roles: ({ organization, name }) => `${organization}/${name}`,
  users: ({ organization, username }) => `${organization}/${username}`,
  groups: ({ organization, name }) => `${organization}/${name}`,
  clients: ({ client_id }) => client_id,
  apis: ({ identifier }) => identifier,
  identity_providers: ({ alias }) => alias,
  webhooks: ({ organization, name }) => `${organization}/${name}`,
} as const satisfies { [S in SeedSection]: (value: SeedOf<S>) => string }

/** Returns the name of an entry or of a stored object of the section. */
export const entryName = (section: SeedSection, value: object): string =>
  (entryNames[section] as (value: object) => string)(value)

/**
 * Returns the text that no two entries of the section share. User names that differ only in case count as
 * equal, other names do not. The database has the same rule.
 */
export const uniqueName = (section: SeedSection, value: object): string => {
  const name = entryName(section, value)
  return section === 'users' ? foldIdentifier(name) : name
}

const repetitions = (section: SeedSection, entries: Entry[]): Mistake[] =>
  [
    (value: SeedOf<SeedSection>) => uniqueName(section, value),
    (value: SeedOf<SeedSection>) => ('id' in value ? value.id : undefined),
  ].flatMap((keyOf, i) => {
    const groups = Map.groupBy(entries, ({ value }) => keyOf(value))
    return [...groups].flatMap(([key, [first, ...others]]) =>
      key === undefined
        ? []
        : others.map(({ path }) => ({
            path,
            message: `${first?.path} has the same ${i === 0 ? 'name' : 'id'}.`,
          })),
    )
  })
