import { Database } from 'bun:sqlite'
import { beforeEach, expect, test } from 'bun:test'
import type { IdentityProviderId, OrganizationId, UserId } from '#src/lib/ids.ts'
import { purge } from '#src/operations/purge.ts'
import { applySeed } from '#src/seed/apply.ts'
import { readSeed } from '#src/seed/read.ts'
import { inspectPostgres } from '#src/storage/postgres/inspect.ts'
import { inspect } from '#src/storage/sqlite/inspect.ts'
import { type Json, startApp, type TestApp } from '#test/support/app.ts'
import { freshStore, isPostgres } from '#test/support/store.ts'

const UUID = '0192d3a4-5b6c-7d8e-9f00-112233445566'
const file = {
  organizations: [{ id: `org_${UUID}`, slug: 'acme' }],
  roles: [{ id: `role_${UUID}`, organization: 'acme', name: 'editor', permissions: ['users:read'] }],
  users: [
    { id: `usr_${UUID}`, organization: 'acme', username: 'ann', email: 'a@acme.example', roles: ['editor'] },
  ],
  groups: [{ id: `grp_${UUID}`, organization: 'acme', name: 'Staff', roles: ['editor'], members: ['ann'] }],
  clients: [
    {
      client_id: 'shop',
      organization: 'acme',
      type: 'public',
      grant_types: ['authorization_code'],
      scopes: ['openid'],
      redirect_uris: ['http://127.0.0.1/callback'],
    },
  ],
  identity_providers: [
    {
      id: `idp_${UUID}`,
      organization: 'acme',
      alias: 'github',
      name: 'GitHub',
      type: 'oauth2',
      preset: 'github',
      client_id: 'ours',
      client_secret: 'ours-there',
    },
  ],
}

let app: TestApp
let path: string
const apply = (seed: Json, options = {}) => applySeed(app.context, readSeed(seed), options)
const listed = async (work: ReturnType<typeof apply>) =>
  (await work).map(({ action, section, name, fields = [] }) => [action, section, name, ...fields].join(' '))

/** Links the user at the provider, as a login through it does. */
const link = () =>
  app.context.store.write(tx =>
    tx.insert(tx.tables.external_accounts).values({
      provider_id: `idp_${UUID}` as IdentityProviderId,
      subject: 'ann-there',
      user_id: `usr_${UUID}` as UserId,
      organization_id: `org_${UUID}` as OrganizationId,
      label: 'Ann',
      created_at: app.context.clock.now(),
    }),
  )

/** Runs the purges, then expects the objects of the file as they were applied, and correct totals. */
const expectWhole = async (): Promise<void> => {
  await purge(app.context)
  expect(await apply(file)).toEqual([])
  expect((await app.admin('GET', `/users/usr_${UUID}`)).body.roles).toEqual(['editor'])
  expect((await app.admin('GET', `/roles/role_${UUID}`)).body.user_count).toBe(1)
  expect((await app.admin('GET', `/groups/grp_${UUID}`)).body.member_count).toBe(1)
  const found = isPostgres ? await inspectPostgres(path) : inspect(new Database(path, { readonly: true }))
  expect(found.findings).toEqual([])
}

beforeEach(async () => {
  const store = await freshStore()
  path = store.path
  app = await startApp({}, { store })
  await apply(file)
  await link()
})

test('a file restores deleted objects at once; the purges take nothing from them', async () => {
  await app.admin('DELETE', `/groups/grp_${UUID}`)
  await app.admin('DELETE', `/roles/role_${UUID}`)
  await app.admin('DELETE', `/identity-providers/idp_${UUID}`)
  const changes = [
    'create roles acme/editor',
    'update users acme/ann roles',
    'create groups acme/Staff',
    'create identity_providers github',
  ]
  expect(await listed(apply(file, { dry_run: true }))).toEqual(changes)
  expect(await listed(apply(file))).toEqual(changes)
  // The new provider is not linked by the accounts of the deleted one, and keeps those made since.
  expect(await app.context.store.read(q => q.$count(q.tables.external_accounts))).toBe(0)
  await link()
  await expectWhole()
  expect(await app.context.store.read(q => q.$count(q.tables.external_accounts))).toBe(1)
})

test('a file restores a deleted organization with its users', async () => {
  await app.admin('DELETE', `/organizations/org_${UUID}`)
  const changes = [
    'create organizations acme',
    'create roles acme/editor',
    'create users acme/ann',
    'create groups acme/Staff',
    'create clients shop',
    'create identity_providers github',
  ]
  expect(await listed(apply(file, { dry_run: true }))).toEqual(changes)
  expect(await listed(apply(file))).toEqual(changes)
  await expectWhole()
})

const message =
  'An object with this id was deleted, and rows of it remain. Try again in a minute. If this file deletes the organization of the object, apply the deletion alone first.'

test('ids of a deleted organization are refused in another one until its rows are purged', async () => {
  await app.admin('DELETE', `/organizations/org_${UUID}`)
  await app.events()
  const [user, group] = [
    { ...file.users[0], roles: [] },
    { ...file.groups[0], roles: [] },
  ]
  const moved = { ...file, organizations: [{ slug: 'acme' }], users: [user], groups: [group], clients: [] }
  const places = ['roles[0]', 'users[0]', 'groups[0]', 'identity_providers[0]']
  await expect(apply(moved)).rejects.toThrow(
    `nothing was applied.\n${places.map(place => `  seed: ${place}.id: ${message}`).join('\n')}`,
  )
  expect(await app.events()).toEqual([])
  await purge(app.context)
  expect(await apply(moved)).toHaveLength(5)
  expect((await app.admin('GET', `/roles/role_${UUID}`)).body.user_count).toBe(0)
  expect((await app.admin('GET', `/groups/grp_${UUID}`)).body.member_count).toBe(1)
})

test('an id is not moved by the file that deletes its organization, but by a later one', async () => {
  await app.events()
  const organizations = [{ slug: 'default' }]
  const moved = { organizations, roles: [{ ...file.roles[0], organization: 'default' }] }
  await expect(apply(moved, { prune: true })).rejects.toThrow(
    `nothing was applied.\n  seed: roles[0].id: ${message}`,
  )
  expect([await app.events(), await apply(file)]).toEqual([[], []])
  expect(await listed(apply({ organizations }, { prune: true }))).toEqual(['delete organizations acme'])
  await purge(app.context)
  expect(await listed(apply(moved))).toEqual(['create roles default/editor'])
})
