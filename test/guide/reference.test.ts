/** Tests that the tables of the guide list exactly the names that the code has. */
import { expect, test } from 'bun:test'
import { AuditEvent } from '#src/audit/schema.ts'
import { eventTypes } from '#src/audit/types.ts'
import { settings } from '#src/config.ts'
import { controls } from '#src/dev/controls.ts'
import { badTokenNames } from '#src/dev/mint-schema.ts'
import { CreateClient } from '#src/directory/clients/schema.ts'
import { Settings } from '#src/directory/organizations/schema.ts'
import { guideSections } from '#src/guide/pages.ts'
import { type Block, type Inline, plain } from '#src/guide/tree.ts'
import { expand, permissions } from '#src/lib/permission.ts'

const pages = guideSections.flatMap(section => section.pages)
const blocksOf = (subject: string): Block[] => pages.find(page => page.subject === subject)?.blocks ?? []

/** Returns the code spans of each cell, row by row, from the tables with this heading on a page. */
const tables = (subject: string, heading: string): string[][][] => {
  const codes = (cell: Inline[]) => cell.flatMap(part => (part.type === 'code' ? [part.text] : []))
  return blocksOf(subject).flatMap(block =>
    block.type === 'table' && plain(block.head[0] ?? []) === heading
      ? block.rows.map(row => row.map(codes))
      : [],
  )
}
const firsts = (subject: string, heading: string): string[] =>
  tables(subject, heading).flatMap(([first = []]) => first)

test('permissions', () => {
  const named = tables('roles', 'Permissions').flatMap(([names = []]) => {
    const [first = ''] = names
    return names.map(name => (name.startsWith(':') ? first.replace(/:.*/, name) : name))
  })
  expect(named.sort()).toEqual([...permissions, 'admin'].sort())
  for (const name of named) expect([name, expand([name]).size > 0]).toEqual([name, true])
})

test('each variable with the prefix of settings is a setting', () => {
  const known = new Set(['CONFIG', ...Object.keys(settings).map(name => name.toUpperCase())])
  const unknown = pages.flatMap(({ subject, blocks }) =>
    [...JSON.stringify(blocks).matchAll(/GATEHOUSE_([A-Z0-9_]*[A-Z0-9])/g)]
      .filter(([, name = '']) => !known.has(name) && !known.has(name.replace(/_FILE$/, '')))
      .map(([name]) => `${subject}: ${name}`),
  )
  expect(unknown).toEqual([])
})

test('event types', () => {
  const named = tables('events', 'Types').flatMap(([types = [], events = []]) =>
    types.flatMap(type => events.map(event => `${type}${event}`)),
  )
  expect(named.sort()).toEqual([...eventTypes].sort())
})

test('settings of an organization, with the password policy', () => {
  expect(firsts('organizations', 'Field').sort()).toEqual(Object.keys(Settings.shape).sort())
  const policy = Settings.shape.password_policy.unwrap().unwrap()
  expect(firsts('organizations', 'Rule').sort()).toEqual(Object.keys(policy.shape).sort())
})

test('fields of a client', () => {
  const own = ['client_id', 'name', 'description', 'organization_id']
  expect([...firsts('clients', 'Field'), ...own].sort()).toEqual(Object.keys(CreateClient.shape).sort())
})

test('fields of an event, in the example of a message', () => {
  const [message = ''] = blocksOf('webhooks').flatMap(block =>
    block.type === 'code' && block.language === 'http' ? [block.text] : [],
  )
  const { data, ...beside } = JSON.parse(message.slice(message.indexOf('{')))
  expect(Object.keys(beside)).toEqual(['type', 'timestamp'])
  expect(Object.keys(AuditEvent.omit({ type: true, timestamp: true }).shape)).toEqual(
    expect.arrayContaining(Object.keys(data)),
  )
})

test('metrics', async () => {
  const sources = [...new Bun.Glob('src/**/*.ts').scanSync()].map(path => Bun.file(path).text())
  const made = (await Promise.all(sources)).flatMap(text =>
    [...text.matchAll(/'(gatehouse_\w+)'/g)].map(([, name = '']) => name),
  )
  expect(firsts('monitoring', 'Metric').sort()).toEqual(made.sort())
})

test('bad tokens and controls of development mode', () => {
  const told = blocksOf('dev').find(
    block => block.type === 'paragraph' && plain(block.text).startsWith('--bad'),
  )
  const codes =
    told?.type === 'paragraph' ? told.text.flatMap(part => (part.type === 'code' ? [part.text] : [])) : []
  expect(codes).toEqual(['--bad', ...badTokenNames])
  const paths = new Set(Object.keys(controls).map(control => control.split(' ')[1] ?? ''))
  const named = tables('dev', 'Call')
    .flat(2)
    .flatMap(code => code.match(/\/dev\/\w+/g) ?? [])
  expect(new Set(named)).toEqual(paths)
})
