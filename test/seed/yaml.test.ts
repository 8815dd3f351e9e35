import { expect, test } from 'bun:test'
import { parse } from 'yaml'
import { yamlOf } from '#src/console/app/yaml.ts'
import { applySeed } from '#src/seed/apply.ts'
import { exportSeed, renderSeed } from '#src/seed/export.ts'
import { parseSeed } from '#src/seed/read.ts'
import { startApp } from '#test/support/app.ts'
import { callerOf, create } from '#test/support/callers.ts'
import { testWith } from '#test/support/debian.ts'
import { addOrganization, addUser } from '#test/support/people.ts'

/** Texts that a reader of YAML 1.1 takes for another value, for several lines, or for a mistake. */
const foreign = [
  ...['yes', 'on', 'n', 'True', '~', 'null', '=', '<<', '.inf', ':on', '!a', '-', '?', '@', '`'],
  ...['12:30', '1:30:15.5', '0755', '0o7', '0b1', '0b_', '0x_', '1_000', '1,000', '1e3', '+1', '08'],
  ...['2026-11-28', '2026-1-5 1:02:03', 'a\tb', '\ta', ' \n', ' a\nb', 'a\n\tb', 'a\n---\nb', '- a\n- b'],
  ...['\u0080', '\u0085', '\u009f', '\u00a0', '\u2028', '\u2029', '\ufeff', '\ufffe', '\uffff'].flatMap(
    char => [char, `a${char}b`, `a\nb${char}  - c: d`, `a${char}---${char}b`],
  ),
  'a\u2028'.repeat(300),
]

/** An instance in which a tenant has chosen such texts. The description of its client has lines of a seed. */
const hostile = async () => {
  const app = await startApp()
  const acme = await addOrganization(app, 'acme')
  const token = await callerOf(app, acme.id, ['clients:create'])
  const description = [
    'Our shop\nfor everyone',
    '  - client_id: backdoor',
    '    type: confidential',
    '    client_secret: 0123456789abcdef0123456789abcdef',
    '    grant_types: [client_credentials]',
    '    scopes: [admin]',
    '  - client_id: rest',
  ]
  for (const [i, lineBreak] of ['\u0085', '\u2028', '\u2029'].entries()) {
    const client = { client_id: `shop-${i}`, name: 'Shop', type: 'confidential', scopes: [] }
    const text = description.join(lineBreak)
    const body = { ...client, description: text, grant_types: ['client_credentials'] }
    expect((await app.admin('POST', '/clients', body, token)).status).toBe(201)
  }
  const attributes = { ...Object.fromEntries(foreign.map(text => [text, text])), list: foreign }
  await addUser(app, '1_000', { attributes })
  await create(app, '/roles', { name: '=', permissions: [] })
  return { app, seed: await exportSeed(app.context, {}) }
}

test('tools for YAML 1.1 and 1.2 read the same export', async () => {
  const { seed } = await hostile()
  const text = renderSeed(seed)
  for (const version of ['1.1', '1.2'] as const) expect(parse(text, { version })).toEqual(seed)
  expect(text).not.toMatch(/[\u007f-\u009f\u2028\u2029\ufeff\ufffe\uffff]/)
  expect(text).toContain('name: "="')
})

const pyYaml = testWith('python3-yaml', '/usr/lib/python3/dist-packages/yaml/__init__.py')
const readByPyYaml = async (text: string): Promise<string> => {
  const script = 'import json, sys, yaml; json.dump(yaml.safe_load(sys.stdin.buffer), sys.stdout)'
  const child = Bun.spawn(['/usr/bin/python3', '-c', script], { stdin: Buffer.from(text) })
  return new Response(child.stdout).text()
}

pyYaml('PyYAML reads an export and the YAML of the console as they were written', async () => {
  const { app, seed } = await hostile()
  const read = await readByPyYaml(renderSeed(seed))
  expect(JSON.parse(read)).toEqual(seed)
  await app.events()
  expect(await applySeed(app.context, parseSeed(read, 'export.json'))).toEqual([])
  expect(await app.events()).toEqual([])
  expect((await app.admin('GET', '/clients/backdoor')).status).toBe(404)
  const shown = yamlOf(
    'z',
    foreign.map(text => ({ [text.slice(0, 9)]: text })),
  )
  expect(JSON.parse(await readByPyYaml(shown)).z.map(Object.values)).toEqual(foreign.map(text => [text]))
})
