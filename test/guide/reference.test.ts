/** Tests that the tables of the guide list exactly the names that the code has. */
import { expect, test } from 'bun:test'
import { join } from 'node:path'
import { adminRoutes } from '#src/admin/routes.ts'
import { AuditEvent } from '#src/audit/schema.ts'
import { eventTypes } from '#src/audit/types.ts'
import { PENDING_FOR } from '#src/authorize/flow.ts'
import { settings } from '#src/config.ts'
import { controls } from '#src/dev/controls.ts'
import { endpoints } from '#src/dev/endpoints.ts'
import { badTokenNames } from '#src/dev/mint-schema.ts'
import { CreateClient } from '#src/directory/clients/schema.ts'
import { CreateInvitation } from '#src/directory/invitations/schema.ts'
import { Settings } from '#src/directory/organizations/schema.ts'
import { guideSections } from '#src/guide/pages.ts'
import { type Block, type Inline, plain } from '#src/guide/tree.ts'
import { MINUTE } from '#src/lib/duration.ts'
import { expand, permissions } from '#src/lib/permission.ts'
import { LINK_LIFETIME } from '#src/mail/outbox.ts'
import { accessTokenClaims, userinfoClaims } from '#src/protocol/oidc/claims.ts'
import { MAX_SEED_BYTES } from '#src/seed/file.ts'
import { startApp } from '#test/support/app.ts'

const pages = guideSections.flatMap(section => section.pages)
const blocksOf = (subject: string): Block[] => pages.find(page => page.subject === subject)?.blocks ?? []

const codesOf = (parts: Inline[]): string[] =>
  parts.flatMap(part => (part.type === 'code' ? [part.text] : []))
/** Returns the paragraphs of a page, each with its code spans. */
const paragraphsOf = (subject: string) =>
  blocksOf(subject).flatMap(block =>
    block.type === 'paragraph' ? [{ text: plain(block.text), codes: codesOf(block.text) }] : [],
  )

/** Returns the rows of the tables with this heading on a page. Each cell is the list of its code spans. */
const tables = (subject: string, heading: string): string[][][] => {
  return blocksOf(subject).flatMap(block =>
    block.type === 'table' && plain(block.head[0] ?? []) === heading
      ? block.rows.map(row => row.map(codesOf))
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

test('each change of the server is recorded under a name that the page of events has', async () => {
  const sources = await Promise.all(
    [...new Bun.Glob('src/{operations,tokens}/**/*.ts').scanSync()].map(path => Bun.file(path).text()),
  )
  const recorded = sources.flatMap(text => text.match(/type: 'admin\.settings_changed'/g) ?? [])
  expect(firsts('events', 'target_id')).toHaveLength(recorded.length)
  const actions = sources
    .filter(text => text.includes("'admin.settings_changed'") || text.includes('recordKeyChange('))
    .flatMap(text => [...text.matchAll(/\{ action: '(\w+)'/g)].map(([, action = '']) => action))
  const named = tables('events', 'target_id').flatMap(([, codes = []]) => codes)
  expect(named.sort()).toEqual(['action', 'fields', ...actions].sort())
})

test('calls that need a recent login, besides deletions', async () => {
  const told = {
    createClient: 'show a secret',
    createInitialAccessToken: 'show a secret',
    regenerateClientSecret: 'show a secret',
    createWebhook: 'change a webhook',
    updateWebhook: 'change a webhook',
    rotateWebhookSecret: 'change a webhook',
    replayWebhook: 'change a webhook',
    resetUserPassword: 'the reset of a password',
    createSignInLink: 'a sign-in link',
    rotateKeys: 'the rotation of keys',
    startBackup: 'the start of a backup',
  }
  const fresh = adminRoutes((await startApp()).context)
    .filter(({ method, fresh }) => fresh && method !== 'DELETE')
    .map(({ id }) => id)
  expect(fresh.sort()).toEqual(Object.keys(told).sort())
  const text = paragraphsOf('console')
    .map(({ text }) => text)
    .join(' ')
  for (const words of Object.values(told)) expect(text.replace(/\s+/g, ' ')).toContain(words)
})

test('the claims of the user that each token has', () => {
  const user = {
    ...{ id: 'usr_a', organization_id: 'org_a', username: 'ada', email: 'ada@example.com' },
    ...{ email_verified: true, first_name: 'Ada', last_name: 'Doe', updated_at: 1, attributes: {} },
  }
  const issued = { issuer: 'https://id.example.com', issued_at: 0, expires_at: 1, client_id: 'web' }
  const claims = accessTokenClaims({ ...issued, jti: 'a', scopes: [], user, roles: [], session_id: 'sess_a' })
  const personal = Object.keys(userinfoClaims(user, ['profile', 'email'])).filter(
    name => name !== 'sub' && name in claims,
  )
  const scopes = ['profile', 'email', 'phone', 'address']
  const told = paragraphsOf('claims').find(({ text }) => text.startsWith(scopes.slice(0, 3).join(', ')))
  expect(told?.codes.sort()).toEqual([...scopes, ...personal].sort())
})

test('what a deletion of an organization takes with it', () => {
  for (const subject of ['organizations', 'events'])
    expect(paragraphsOf(subject).map(({ text }) => text)).toContainEqual(
      expect.stringMatching(/\bevents\b.* of a deleted organization/s),
    )
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

test('limits', async () => {
  const text = async (subject: string) =>
    (await Bun.file(join(import.meta.dir, `../../templates/guide/${subject}.md`)).text()).replace(/\s+/g, ' ')
  expect(await text('seed')).toContain(`at most ${MAX_SEED_BYTES / 1024 / 1024} MiB`)
  expect(await text('sessions')).toContain(`| unfinished login | ${PENDING_FOR / MINUTE} minutes `)
  expect(await text('mail')).toContain(`for a password reset ${LINK_LIFETIME / MINUTE} minutes`)
  const uses = CreateInvitation.shape.max_uses
  expect([uses.safeParse(1000).success, uses.safeParse(1001).success]).toEqual([true, false])
  expect(await text('users')).toContain('at most 1,000')
})

test('metrics', async () => {
  const sources = [...new Bun.Glob('src/**/*.ts').scanSync()].map(path => Bun.file(path).text())
  const made = (await Promise.all(sources)).flatMap(text =>
    [...text.matchAll(/'(gatehouse_\w+)'/g)].map(([, name = '']) => name),
  )
  expect(firsts('monitoring', 'Metric').sort()).toEqual(made.sort())
})

test('bad tokens and controls of development mode', () => {
  const told = paragraphsOf('dev').find(({ text }) => text.startsWith('--bad'))
  expect(told?.codes).toEqual(['--bad', ...badTokenNames])
  const faults = tables('dev', 'Call').find(([[call = ''] = []]) => call.includes('/dev/faults'))
  expect(faults?.flat()).toEqual(expect.arrayContaining(Object.keys(endpoints)))
  const paths = new Set(Object.keys(controls).map(control => control.split(' ')[1] ?? ''))
  const named = tables('dev', 'Call')
    .flat(2)
    .flatMap(code => code.match(/\/dev\/\w+/g) ?? [])
  expect(new Set(named)).toEqual(paths)
})
