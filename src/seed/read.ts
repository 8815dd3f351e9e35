import { parseDocument } from 'yaml'
import type { z } from 'zod'
import { foldIdentifier } from '#src/lib/email.ts'
import { type Section, Seed, type SeedOf, sections, seedJsonSchema } from './schema.ts'

/** One thing that is wrong with a file: where in it, and what is allowed there. */
export interface Mistake {
  path: string
  message: string
}

/**
 * The file is refused, but for `applied` changes that were made before others came between. The command line shows
 * `message`: every mistake on a line of its own.
 */
export class SeedError extends Error {
  readonly exit_code = 2
  readonly mistakes: readonly Mistake[]

  constructor(file: string, mistakes: readonly Mistake[], applied = 0) {
    const lines = mistakes.map(
      ({ path, message }) => `  ${[file, path].filter(Boolean).join(': ')}: ${message}`,
    )
    const count = mistakes.length === 1 ? 'a mistake' : `${mistakes.length} mistakes`
    const kept =
      applied > 0 ? `its first ${applied} changes were applied, the others were not` : 'nothing was applied'
    super(`${file} has ${count}; ${kept}.\n${lines.join('\n')}`)
    this.mistakes = mistakes
  }
}

export interface Entry<S extends Section = Section> {
  value: SeedOf<S>
  /** The fields that the file names: an update touches no other. */
  given: ReadonlySet<string>
  path: string
}

export interface ReadSeed {
  file: string
  entries: { [S in Section]: Entry<S>[] }
  /** The sections that the file has: pruning looks at no other. */
  present: ReadonlySet<Section>
}

type Environment = Readonly<Record<string, string | undefined>>
type Json = Record<string, unknown>

const isObject = (value: unknown): value is Json =>
  typeof value === 'object' && value !== null && !Array.isArray(value)

/** YAML, of which JSON is a part. `file` names it in mistakes; `env` has the variables that `{ env: NAME }` means. */
export const parseSeed = (text: string, file: string, env: Environment = {}): ReadSeed => {
  const document = parseDocument(text)
  const [error] = document.errors
  if (error) throw new SeedError(file, [{ path: '', message: error.message.split('\n')[0] ?? 'No YAML.' }])
  return readSeed(document.toJS() ?? {}, file, env)
}

export const readSeed = (input: unknown, file = 'seed', env: Environment = {}): ReadSeed => {
  const raw = withSecrets(input, env)
  const result = Seed.safeParse(raw)
  if (!result.success)
    throw new SeedError(
      file,
      result.error.issues.flatMap(issue => mistakesOf(issue, raw)),
    )
  const entriesOf = <S extends Section>(section: S) =>
    (result.data[section] ?? []).map((value, i) => ({
      value,
      given: new Set(Object.keys((raw as Record<Section, Json[]>)[section][i] ?? {})),
      path: `${section}[${i}]`,
    }))
  const entries = Object.fromEntries(
    sections.map(section => [section, entriesOf(section)]),
  ) as unknown as ReadSeed['entries']
  const repeated = sections.flatMap(section => repetitions(section, entries[section]))
  if (repeated.length > 0) throw new SeedError(file, repeated)
  return { file, entries, present: new Set(sections.filter(section => result.data[section])) }
}

/** `{ env: NAME }` becomes the value of the variable; one that is not set stays and is refused. */
const withSecrets = (value: unknown, env: Environment): unknown => {
  if (Array.isArray(value)) return value.map(item => withSecrets(item, env))
  if (!isObject(value)) return value
  const { env: name } = value
  if (typeof name === 'string' && Object.keys(value).length === 1) return env[name] ?? value
  return Object.fromEntries(
    Object.entries(value).map(([key, item]) => [key, key === 'attributes' ? item : withSecrets(item, env)]),
  )
}

const pathOf = (path: readonly PropertyKey[]): string =>
  path.map((key, i) => (typeof key === 'number' ? `[${key}]` : `${i > 0 ? '.' : ''}${String(key)}`)).join('')

const mistakesOf = (issue: z.core.$ZodIssue, raw: unknown): Mistake[] => {
  if (issue.code !== 'unrecognized_keys') return [{ path: pathOf(issue.path), message: issue.message }]
  const known = namesAt(issue.path, raw).join(', ')
  return issue.keys.map(key => ({
    path: pathOf([...issue.path, key]),
    message: `There is no such field. Known are: ${known}.`,
  }))
}

interface JsonSchema {
  properties?: Record<string, JsonSchema & { const?: unknown }>
  items?: JsonSchema
  anyOf?: JsonSchema[]
  oneOf?: JsonSchema[]
}

/** The names that the published schema has at a path; of a union, those of the member whose `type` the file names. */
const namesAt = (path: readonly PropertyKey[], raw: unknown): string[] => {
  let schema = seedJsonSchema() as JsonSchema
  let value = raw
  for (const key of [...path, undefined]) {
    const { type } = isObject(value) ? value : {}
    const members = schema.oneOf ?? schema.anyOf ?? [schema]
    schema = members.find(member => member.properties?.type?.const === type && type) ?? members[0] ?? {}
    if (key === undefined) break
    schema = (typeof key === 'number' ? schema.items : schema.properties?.[String(key)]) ?? {}
    value = (value as Json | undefined)?.[key as string]
  }
  return Object.keys(schema.properties ?? {})
}

/** What tells the entries of a section apart. */
export const nameOf = {
  organizations: ({ slug }) => slug,
  roles: ({ organization, name }) => `${organization}/${name}`,
  users: ({ organization, username }) => `${organization}/${username}`,
  groups: ({ organization, name }) => `${organization}/${name}`,
  clients: ({ client_id }) => client_id,
  identity_providers: ({ alias }) => alias,
} as const satisfies { [S in Section]: (value: SeedOf<S>) => string }

const repetitions = (section: Section, entries: Entry[]): Mistake[] =>
  [
    (value: SeedOf<Section>) =>
      foldIdentifier((nameOf[section] as (value: SeedOf<Section>) => string)(value)),
    (value: SeedOf<Section>) => ('id' in value ? value.id : undefined),
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
