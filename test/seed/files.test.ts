import { afterAll, describe, expect, test } from 'bun:test'
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { loadConfig } from '#src/config.ts'
import { applySeed } from '#src/seed/apply.ts'
import { parseSeed, requireSound, type SeedError } from '#src/seed/read.ts'
import { secretFields, seedJsonSchema, seedSections } from '#src/seed/schema.ts'
import { type Json, startApp } from '#test/support/app.ts'
import { gatehouse, serveExecutable, stop } from '#test/support/executable.ts'

const folder = mkdtempSync(join(tmpdir(), 'gatehouse-test-'))
afterAll(() => rmSync(folder, { recursive: true, force: true }))

let files = 0
const file = (content: string): string => {
  const path = join(folder, `${++files}.yaml`)
  writeFileSync(path, content)
  return path
}

/** Each alias expands to nine of the previous alias, so a few hundred bytes become 9^9 values. */
const BOMB = ['a: &a [x, x, x, x, x, x, x, x, x]']
  .concat(
    [...'bcdefghi'].map((name, i) => `${name}: &${name} [${Array(9).fill(`*${'abcdefgh'[i]}`).join(', ')}]`),
  )
  .join('\n')

const manyKeys = (count: number): string =>
  Array.from({ length: count }, (_, i) => `k${i.toString(36)}:`).join('\n')

/**
 * Each of these texts is refused in a seed file and in a settings file. The table has the line and the reason
 * of the refusal.
 */
const bad: [about: string, text: string, line: number | undefined, reason: string][] = [
  ['an alias bomb', BOMB, undefined, 'More than 10000 uses of anchors.'],
  ['a list in itself', 'users: &a [*a]', undefined, 'an alias within its own anchor'],
  ['a table in itself', 'users: &a { password: *a }', undefined, 'an alias within its own anchor'],
  ['an anchor that is not there', 'users: *none', undefined, 'Unresolved alias'],
  ['a deep list', `${'['.repeat(200)}${']'.repeat(200)}`, undefined, 'Nested deeper than 100 levels'],
  ['a list deeper than the stack', '['.repeat(30_000), 1, 'Nested deeper than 100 levels'],
  ['no YAML', 'users:\n  - { username: x\nz', 3, 'Flow map'],
  ['a key twice', 'users: []\nclients: []\nusers: []', 3, 'Map keys must be unique.'],
  ['a key twice in a deeper table', 'users:\n  - { a: [{ b: 1, "b": 2 }] }', 2, 'Map keys must be unique.'],
  ['a table of too many keys', manyKeys(10_001), 10_001, 'More than 10000 keys in a mapping.'],
  ['two documents', 'users: []\n---\nusers: []', 2, 'multiple documents'],
]

describe('a file that cannot be read', () => {
  test.each(bad)('H-52 %s as seed: the file, the line and the reason', (_, text, line, reason) => {
    let refused: unknown
    try {
      parseSeed(text, 'seed.yaml')
    } catch (error) {
      refused = error
    }
    const { message, exit_code } = refused as SeedError
    expect(exit_code).toBe(2)
    expect(message.split('\n')).toEqual([
      'seed.yaml has a mistake; nothing was applied.',
      expect.stringContaining(reason),
    ])
    expect(message).toContain(`\n  ${['seed.yaml', line].filter(Boolean).join(':')}: `)
  })

  test.each(bad)('H-52 %s as settings: the file, the line and the reason', (_, text, line, reason) => {
    const path = file(text)
    const message = expect.stringContaining(reason)
    expect(() => loadConfig({}, path)).toThrow(expect.objectContaining({ exit_code: 2, message }))
    expect(() => loadConfig({}, path)).toThrow(`${[path, line].filter(Boolean).join(':')}: `)
  })

  test('H-52 a mapping of 100,000 keys is refused without comparing each with all others', () => {
    const text = manyKeys(100_000)
    const started = performance.now()
    expect(() => parseSeed(text, 'seed.yaml')).toThrow('seed.yaml:10001: More than 10000 keys in a mapping.')
    expect(performance.now() - started).toBeLessThan(20_000)
  })

  test('H-52 settings over 64 KiB are refused, and smaller settings are read', () => {
    const filled = (bytes: number) => file(`port: 9000\n#${'x'.repeat(bytes - 12)}`)
    expect(loadConfig({}, filled(64 * 1024)).config.port).toBe(9000)
    const over = filled(64 * 1024 + 1)
    expect(() => loadConfig({}, over)).toThrow(`${over}: Larger than 64 KiB.`)
  })

  test('H-52 a mistake in the settings names its line', () => {
    const path = file('port: 9000\nlog_level: loud\n')
    expect(() => loadConfig({}, path)).toThrow(`(${path}:2)`)
    const nested = file('port: 9000\n\nhost: { a: 1 }\n')
    expect(() => loadConfig({}, nested)).toThrow(`(${nested}:3)`)
  })

  test('hand-written aliases are read', () => {
    const users = Array.from(
      { length: 2_000 },
      (_, i) => `  - { username: user-${i}, email: u${i}@example.com, roles: *r }`,
    )
    const seed = parseSeed(
      `roles:\n  - { name: a, permissions: &r [user] }\nusers:\n${users.join('\n')}`.replace('[user]', '[]'),
      'seed.yaml',
    )
    expect(seed.entries.users).toHaveLength(2_000)
  })
})

describe('H-52 environment variables are substituted in secrets only', () => {
  const env = { VISIBLE: 'a-secret-of-the-machine' }

  test('H-52 only fields that the schema marks as secret accept an environment variable', () => {
    const isReference = (schema: Json): boolean =>
      [schema, ...(schema.anyOf ?? [])].some(({ properties }) => properties?.env)
    const { properties } = seedJsonSchema() as Json
    const found = seedSections.flatMap(section => {
      const { items } = properties[section]
      return [items, ...(items.anyOf ?? []), ...(items.oneOf ?? [])].flatMap((entry: Json) =>
        Object.entries(entry.properties ?? {}).flatMap(([name, schema]) =>
          isReference(schema as Json) ? [`${section}.${name}`] : [],
        ),
      )
    })
    expect([...new Set(found)]).toEqual(Object.entries(secretFields).map(parts => parts.join('.')))
  })

  test.each([
    ['organizations[0].display_name', 'organizations: [{ slug: acme, display_name: { env: VISIBLE } }]'],
    [
      'organizations[0].settings.custom_css',
      'organizations: [{ slug: acme, settings: { custom_css: { env: VISIBLE } } }]',
    ],
    ['users[0].first_name', 'users: [{ username: bob, email: b@example.com, first_name: { env: VISIBLE } }]'],
    ['users[0].roles[0]', 'users: [{ username: bob, email: b@example.com, roles: [{ env: VISIBLE }] }]'],
    [
      'clients[0].name',
      'clients: [{ client_id: shop, type: confidential, grant_types: [client_credentials], scopes: [], name: { env: VISIBLE } }]',
    ],
  ])('H-52 none is substituted at %s', (path, text) => {
    let refused: unknown
    try {
      requireSound(parseSeed(text, 'seed.yaml', env))
    } catch (error) {
      refused = error
    }
    const { mistakes, message } = refused as SeedError
    expect(mistakes).toHaveLength(1)
    expect(mistakes[0]?.path).toBe(path)
    expect(mistakes[0]?.message).toEndWith('{ env: NAME } is allowed for secrets only.')
    expect(message).not.toContain(env.VISIBLE)
  })

  test('H-52 a secret is substituted; an object in free attributes is left as it is', async () => {
    const app = await startApp()
    const text = `clients:
  - { client_id: shop, type: confidential, grant_types: [client_credentials], scopes: [], client_secret: { env: VISIBLE } }
users:
  - { username: bob, email: b@example.com, attributes: { shown: { env: VISIBLE } } }`
    await applySeed(app.context, parseSeed(text, 'seed.yaml', env))
    expect(await app.tokenOf('shop', env.VISIBLE)).toBeString()
    const { body } = await app.admin('GET', '/users?search=bob')
    expect(body.data.map(({ attributes }: Json) => attributes)).toEqual([{ shown: { env: 'VISIBLE' } }])
  })
})

test('H-52 plan, apply and export exit with 2, name file and line, and change nothing', async () => {
  const data_dir = mkdtempSync(join(folder, 'data-'))
  await stop(await serveExecutable({}, data_dir))
  const env = { GATEHOUSE_DATA_DIR: data_dir }
  const before = (await gatehouse(['export'], env)).stdout
  const cases: [content: string, at: string][] = [
    [BOMB, ''],
    ['users: &a [*a]', ''],
    ['users:\n  - username: x\n    email: x@example.com', ':2'],
    ['users: []\nusers: []', ':2'],
  ]
  for (const command of ['plan', 'apply'])
    for (const [content, at] of cases) {
      const path = file(content)
      const { code, stdout, stderr } = await gatehouse([command, path], env)
      expect([command, content, code, stdout]).toEqual([command, content, 2, ''])
      expect(stderr).toContain(`  ${path}${at}: `)
    }
  const large = file(`#${'x'.repeat(16 * 1024 * 1024)}`)
  const settings = file('port: [\n')
  const nowhere = join(folder, 'nowhere', 'out.yaml')
  for (const [args, reason] of [
    [['apply', large], `${large}: Larger than 16384 KiB.`],
    [['plan', folder], `${folder}: cannot be read (EISDIR)`],
    [['apply', join(folder, 'none.yaml')], `cannot be read (ENOENT)`],
    [['--config', settings, 'export'], `${settings}:`],
    [['--config', settings, 'plan', large], `${settings}:`],
    [['export', nowhere], `${nowhere}: cannot be written: `],
    [['export', folder], `${folder}: cannot be written: `],
  ] as const) {
    const { code, stderr } = await gatehouse([...args], env)
    expect([args, code, stderr]).toEqual([args, 2, expect.stringContaining(reason)])
  }
  expect((await gatehouse(['export'], env)).stdout).toBe(before)
  expect(readFileSync(large).length).toBe(16 * 1024 * 1024 + 1)
}, 60_000)
