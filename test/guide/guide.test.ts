/** Checks that the guide documents each item on exactly one page and that its links resolve. */
import { describe, expect, test } from 'bun:test'
import { existsSync, readdirSync } from 'node:fs'
import { join } from 'node:path'
import { Option } from 'commander'
import { commands } from '#src/cli/commands.ts'
import { program } from '#src/cli/program.ts'
import { settings } from '#src/config.ts'
import { guideSections } from '#src/guide/pages.ts'
import { type Block, type Inline, plain, type Target } from '#src/guide/tree.ts'
import { accessTokenClaims } from '#src/protocol/oidc/claims.ts'

const root = join(import.meta.dir, '../..')
const pages = guideSections.flatMap(section => section.pages)

/** Returns the first column of each table that begins with this heading, in the order of the pages. */
const rowsOf = (heading: string): string[] =>
  pages.flatMap(({ blocks }) =>
    blocks.flatMap(block =>
      block.type === 'table' && plain(block.head[0] ?? []) === heading
        ? block.rows.map(([first = []]) => plain(first))
        : [],
    ),
  )
const pagesWith = (heading: string): string[] =>
  pages
    .filter(({ blocks }) =>
      blocks.some(block => block.type === 'table' && plain(block.head[0] ?? []) === heading),
    )
    .map(({ subject }) => subject)

const inlinesOf = (block: Block): Inline[] =>
  block.type === 'list'
    ? block.items.flat()
    : block.type === 'table'
      ? [...block.head.flat(), ...block.rows.flat(2)]
      : block.type === 'code'
        ? []
        : block.text
const linksOf = (parts: Inline[]): Target[] =>
  parts.flatMap(part => (part.type === 'link' ? [part.to] : part.type === 'strong' ? linksOf(part.text) : []))

const visible = commands.filter(({ run, hidden }) => run && !hidden)

describe('each is documented on exactly one page', () => {
  test('setting', () => {
    const names = Object.keys(settings).map(name => `GATEHOUSE_${name.toUpperCase()}`)
    expect(rowsOf('Setting').sort()).toEqual(names.sort())
    expect(pagesWith('Setting')).toEqual(['settings'])
  })

  test('command', () => {
    // Arguments follow the name: in capitals, in brackets or after --.
    const named = rowsOf('Command').map(cell =>
      cell.replace(/^gatehouse /, '').replace(/ (?:[A-Z[]|--).*$/, ''),
    )
    expect(named.sort()).toEqual(visible.map(({ name }) => name).sort())
    expect(pagesWith('Command')).toEqual(['commands'])
  })

  test('exit code', () => {
    let help = ''
    program()
      .configureOutput({ writeOut: text => (help += text) })
      .outputHelp()
    const [, told = ''] = /Exit codes:\n((?: {2}.*\n)+)/.exec(help) ?? []
    expect(rowsOf('Exit code')).toEqual(told.match(/\d+/g) ?? [])
    expect(pagesWith('Exit code')).toEqual(['exit-codes'])
  })
})

test('O-55 the page of the SDK lists exactly the claims of an access token', () => {
  const { blocks = [] } = pages.find(({ subject }) => subject === 'sdk') ?? {}
  const [table] = blocks.filter(block => block.type === 'table')
  const rows = table?.rows.map(row => row.map(plain)) ?? []
  const named = rows.flatMap(([names = '']) => names.split(', '))
  const user = {
    id: 'usr_a',
    organization_id: 'org_a',
    username: 'ada',
    email: 'ada@example.com',
    email_verified: true,
    first_name: '',
    last_name: '',
  }
  const issued = { issuer: 'https://id.example.com', issued_at: 0, expires_at: 1, jti: 'a', client_id: 'web' }
  const claims = accessTokenClaims({
    ...issued,
    scopes: [],
    user,
    roles: [],
    session_id: 'sess_a',
    auth_time: 0,
  })
  expect(named.sort()).toEqual(Object.keys(claims).sort())
  expect([claims.sub, claims.org_id, claims.sid]).toEqual(['a', 'a', 'a'])
  const told = new Map(rows.map(([name = '', text = '']) => [name, text]))
  for (const [name, prefix] of Object.entries({ sub: 'usr_', org_id: 'org_', sid: 'sess_' }))
    expect(told.get(name)).toContain(`without ${prefix}`)
})

test('the page of commands lists exactly the existing options', () => {
  const { blocks = [] } = pages.find(({ subject }) => subject === 'commands') ?? {}
  const text = blocks.map(block => plain(inlinesOf(block))).join('\n')
  const named = new Set(text.match(/--[a-z][a-z-]*/g))
  const known = visible.flatMap(({ options = [] }) =>
    options.map(option => /--[a-z-]+/.exec(option instanceof Option ? option.flags : option[0])?.[0] ?? ''),
  )
  expect([...named].sort()).toEqual([...new Set([...known, '--config'])].sort())
})

test('the table of contents lists every page once, with its title', async () => {
  const files = readdirSync(join(root, 'templates/guide')).filter(file => file !== 'README.md')
  expect(pages.map(({ subject }) => `${subject}.md`).sort()).toEqual(files.sort())
  for (const { subject, title, about, blocks } of pages) {
    const [first] = blocks
    expect([subject, first?.type === 'heading' && first.depth === 1 && plain(first.text)]).toEqual([
      subject,
      title,
    ])
    expect([subject, about.length > 10]).toEqual([subject, true])
  }
})

test('every link has a target', () => {
  const anchors = new Map(
    pages.map(({ subject, blocks }) => [
      subject,
      new Set(blocks.flatMap(block => (block.type === 'heading' ? [block.id] : []))),
    ]),
  )
  const targets = pages.flatMap(({ subject, blocks }) =>
    blocks.flatMap(block => linksOf(inlinesOf(block))).map(to => ({ subject, to })),
  )
  expect(targets.length).toBeGreaterThan(30)
  const dead = targets.filter(({ to }) => {
    if ('url' in to) return !to.url.startsWith('https://')
    if ('file' in to) return !existsSync(join(root, to.file))
    return to.id === '' ? !anchors.has(to.subject) : !anchors.get(to.subject)?.has(to.id)
  })
  expect(dead).toEqual([])
})
