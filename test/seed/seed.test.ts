import { describe, expect, test } from 'bun:test'
import { applySeed } from '#src/seed/apply.ts'
import { exportSeed, renderSeed } from '#src/seed/export.ts'
import { parseSeed, readSeed } from '#src/seed/read.ts'
import { type SeedInput, seedJsonSchema } from '#src/seed/schema.ts'
import { type Json, startApp, type TestApp } from '#test/support/app.ts'
import { openBrowser } from '#test/support/browser.ts'
import { addUser, signIn } from '#test/support/people.ts'

const UUID = '0192d3a4-5b6c-7d8e-9f00-112233445566'

const settings: NonNullable<NonNullable<SeedInput['organizations']>[number]['settings']> = {
  session_ttl: '12h',
  client_registration: 'initial_access_token',
  client_metadata_documents: 'allowlist',
  allowed_metadata_documents: ['https://agent.example/client.json'],
  blocked_clients: ['https://agent.example/other.json'],
}
const whole: SeedInput = {
  organizations: [{ id: `org_${UUID}`, slug: 'acme', name: 'Acme', settings }],
  roles: [
    { id: `role_${UUID}`, organization: 'acme', name: 'editor', permissions: ['users:read'] },
    { name: 'reader', description: 'Reads', permissions: [] },
  ],
  users: [
    {
      id: `usr_${UUID}`,
      organization: 'acme',
      username: 'alice',
      email: 'alice@acme.example',
      first_name: 'Alice',
      email_code: false,
      roles: ['user', 'editor'],
      attributes: { team: 'red', env: { env: 'HOME' } },
      password: 'Correct-horse-7',
    },
    { username: 'bob', email: 'bob@example.com' },
  ],
  groups: [{ organization: 'acme', name: 'staff', roles: ['editor'], members: ['alice'] }],
  clients: [
    {
      client_id: 'shop',
      type: 'public',
      grant_types: ['authorization_code'],
      scopes: ['openid'],
      redirect_uris: ['http://127.0.0.1/callback'],
    },
    {
      client_id: 'orders',
      organization: 'acme',
      type: 'confidential',
      client_secret: 'a-secret-from-the-file',
      grant_types: ['client_credentials'],
      scopes: ['orders:read'],
    },
  ],
  identity_providers: [
    {
      alias: 'github',
      name: 'GitHub',
      type: 'oauth2',
      preset: 'github',
      client_id: 'ours',
      client_secret: 'ours-there',
      organization: 'acme',
    },
  ],
}

const apply = (app: TestApp, seed: Json, options = {}) => applySeed(app.context, readSeed(seed), options)

describe('the objects of a file are created', () => {
  test('RUN-26 under their chosen ids, through the services, with one event each and no others', async () => {
    const app = await startApp()
    await app.events()
    const changes = await apply(app, whole)
    expect(changes.map(({ action, section, name }) => `${action} ${section} ${name}`)).toEqual([
      'create organizations acme',
      'create roles acme/editor',
      'create roles default/reader',
      'create users acme/alice',
      'create users default/bob',
      'create groups acme/staff',
      'create clients shop',
      'create clients orders',
      'create identity_providers github',
    ])
    const events = await app.events()
    expect(events.map(({ type }) => type)).toEqual([
      'organization.created',
      'role.created',
      'role.created',
      'user.created',
      'user.created',
      'group.created',
      'group.updated',
      'client.created',
      'client.created',
      'identity_provider.created',
    ])
    expect(new Set(events.map(({ actor_id }) => actor_id))).toEqual(new Set([null]))
    const alice = (await app.admin('GET', `/users/usr_${UUID}`)).body
    expect(alice).toMatchObject({
      organization_id: `org_${UUID}`,
      first_name: 'Alice',
      last_name: '',
      roles: ['editor', 'user'],
      attributes: { team: 'red', env: { env: 'HOME' } },
    })
    expect((await app.admin('GET', `/roles/role_${UUID}`)).body.permissions).toEqual(['users:read'])
    expect(await app.tokenOf('orders', 'a-secret-from-the-file')).toBeString()
    const password = await app.context.store.read(async q => q.select().from(q.tables.users))
    expect(password.map(({ password_hash }) => password_hash?.startsWith('$argon2id$') ?? false)).toEqual([
      true,
      false,
    ])
  })

  test('applying again changes and records nothing', async () => {
    const app = await startApp()
    await apply(app, whole)
    await app.events()
    expect(await apply(app, whole)).toEqual([])
    expect(await app.events()).toEqual([])
  })

  test('changed fields are updated, fields not in the file stay', async () => {
    const app = await startApp()
    await apply(app, whole)
    await app.events()
    const changes = await apply(app, {
      users: [{ username: 'BOB', email: 'bob@example.com', roles: ['reader'] }],
      groups: [{ organization: 'acme', name: 'staff', members: [] }],
      clients: [
        {
          client_id: 'orders',
          organization: 'acme',
          type: 'confidential',
          client_secret: 'another-secret',
          grant_types: ['client_credentials'],
          scopes: ['orders:read', 'orders:write'],
        },
      ],
    })
    expect(changes).toEqual([
      { action: 'update', section: 'users', name: 'default/BOB', fields: ['username', 'roles'] },
      { action: 'update', section: 'groups', name: 'acme/staff', fields: ['members'] },
      { action: 'update', section: 'clients', name: 'orders', fields: ['scopes', 'client_secret'] },
    ])
    expect((await app.events()).map(({ type }) => type)).toEqual([
      'user.updated',
      'group.updated',
      'client.updated',
      'client.secret_regenerated',
    ])
    expect((await app.admin('GET', '/clients/orders')).body.name).toBe('orders')
  })

  test('a password in the file never replaces an existing one', async () => {
    const app = await startApp()
    await apply(app, whole)
    const hash = async () =>
      (await app.context.store.read(async q => q.select().from(q.tables.users)))[0]?.password_hash
    const before = await hash()
    const [alice] = whole.users ?? []
    expect(await apply(app, { users: [{ ...alice, password: 'Another-horse-8' }] })).toEqual([])
    expect(await hash()).toBe(before)
  })

  test('pruning deletes what the sections of the file do not list, but nothing that an instance needs', async () => {
    const app = await startApp()
    await apply(app, whole)
    const kept = { ...whole, users: whole.users?.slice(0, 1), clients: [], roles: whole.roles?.slice(0, 1) }
    const { groups: _, ...seed } = kept
    expect((await apply(app, seed, { prune: true })).map(({ action, name }) => `${action} ${name}`)).toEqual([
      'delete default/reader',
      'delete default/bob',
      'delete orders',
      'delete shop',
    ])
    expect((await app.admin('GET', '/clients')).body.data).toHaveLength(1)
    expect((await app.admin('GET', '/groups')).body.data).toHaveLength(1)
    await apply(app, { organizations: [] }, { prune: true })
    expect((await app.admin('GET', '/organizations')).body.data.map(({ slug }: Json) => slug)).toEqual([
      'default',
    ])
    expect(await apply(app, { organizations: [], users: [], groups: [] }, { prune: true })).toEqual([])
  })

  test('pruning frees names of deleted objects for new ones', async () => {
    const app = await startApp()
    await apply(app, whole)
    const changes = await apply(
      app,
      { users: [{ username: 'robert', email: 'bob@example.com' }] },
      { prune: true },
    )
    expect(changes.map(({ action, name }) => `${action} ${name}`)).toEqual([
      'delete acme/alice',
      'delete default/bob',
      'create default/robert',
    ])
  })

  test('pruning deletes an object whose name an entry with an id takes, and keeps it for an unknown id', async () => {
    const app = await startApp()
    const github = { name: 'GitHub', type: 'oauth2', preset: 'github', client_id: 'a', client_secret: 'b' }
    const named: Json = {
      organizations: ['org', (slug: string) => ({ slug })],
      users: ['usr', (username: string) => ({ username, email: `${username}@example.com` })],
      groups: ['grp', (name: string) => ({ name })],
      identity_providers: ['idp', (alias: string) => ({ ...github, alias })],
      webhooks: ['hook', (name: string) => ({ name, url: 'https://siem.example/', events: ['user.*'] })],
    }
    const id = (prefix: string, digit: number) => `${prefix}_${UUID.slice(0, -1)}${digit}`
    for (const [section, [prefix, entry]] of Object.entries<Json>(named)) {
      const [first, second] = [1, 2].map(n => ({ id: id(prefix, n), ...entry(`name-${n}`) }))
      await apply(app, { [section]: [first, second] })
      const unknown = { [section]: [first, { ...second, id: id(prefix, 3) }] }
      await expect(apply(app, unknown, { prune: true })).rejects.toThrow(`${section}[1]`)
      await app.events()
      const changes = await apply(app, { [section]: [{ ...second, id: first.id }] }, { prune: true })
      expect(changes).toMatchObject([
        { action: 'delete', section, name: expect.stringContaining('name-2') },
        { action: 'update', section, name: expect.stringContaining('name-2') },
      ])
      const targets = (await app.events()).map(({ type, target_id }) => [type.split('.')[1], target_id])
      expect(targets).toEqual([
        ['deleted', second.id],
        ['updated', first.id],
      ])
      const { [section]: stored = [] } = await exportSeed(app.context, { secrets: true })
      expect(stored.filter(row => row.id !== 'org_default')).toMatchObject([{ ...second, id: first.id }])
    }
  })

  test('an object stays in its organization, and a file that names another one is refused', async () => {
    const app = await startApp()
    await apply(app, whole)
    await app.events()
    const before = await exportSeed(app.context, { secrets: true })
    for (const section of ['clients', 'identity_providers'] as const) {
      const { organization, ...entry }: Json = whole[section]?.at(-1) ?? {}
      await expect(apply(app, { [section]: [{ ...entry, organization: 'default' }] })).rejects.toThrow(
        `${section}[0]: The entry belongs to another organization.`,
      )
      // An entry without an organization is found by its name, which is unique among all organizations.
      expect([organization, await apply(app, { [section]: [entry] })]).toEqual(['acme', []])
    }
    expect([await app.events(), await exportSeed(app.context, { secrets: true })]).toEqual([[], before])
  })

  test('names that differ only in case belong to different objects, except names of users', async () => {
    const app = await startApp()
    const both = ['Editor', 'editor'].map(name => ({ name, permissions: [] }))
    const clients = ['Shop', 'shop'].map(client_id => ({ ...whole.clients?.[0], client_id }))
    await apply(app, { roles: both, clients })
    const exported = Bun.YAML.parse(renderSeed(await exportSeed(app.context, { secrets: false }))) as Json
    expect(await apply(app, exported, { prune: true })).toEqual([])
    const lower = { roles: both.slice(1), clients: clients.slice(1) }
    expect((await apply(app, lower, { prune: true })).map(({ name }) => name)).toEqual([
      'default/Editor',
      'Shop',
    ])
    const people = ['Ann', 'ann'].map(username => ({ username, email: `${username}@example.com` }))
    await expect(apply(app, { users: people })).rejects.toThrow('users[1]: users[0] has the same name.')
  })

  test('an object is found by id after its name changed', async () => {
    const app = await startApp()
    await apply(app, whole)
    const [acme] = whole.organizations ?? []
    expect(await apply(app, { organizations: [{ ...acme, slug: 'acme-corp' }] })).toEqual([
      { action: 'update', section: 'organizations', name: 'acme-corp', fields: ['slug'] },
    ])
  })
})

test('a plan reports the changes, and changes nothing', async () => {
  const app = await startApp()
  await app.events()
  const plan = await apply(app, whole, { dry_run: true })
  expect(plan).toHaveLength(9)
  expect(await app.events()).toEqual([])
  expect((await app.admin('GET', '/users')).body.data).toEqual([])
  expect(await apply(app, whole)).toEqual(plan)
})

test('MCD-09 an export applied to another instance makes it the same', async () => {
  const app = await startApp()
  await apply(app, { ...whole, clients: whole.clients?.slice(0, 1) })
  app.clock.advance(1)
  await apply(app, whole)
  const seed = await exportSeed(app.context, { secrets: true })
  expect(seed.users?.map(({ username, email_code }) => [username, email_code])).toEqual([
    ['alice', false],
    ['bob', undefined],
  ])
  const copy = await startApp()
  const changes = await applySeed(copy.context, parseSeed(renderSeed(seed), 'export.yaml'))
  expect(changes.filter(({ action }) => action === 'create')).toHaveLength(9)
  expect(await exportSeed(copy.context, { secrets: true })).toEqual(seed)
  expect(await copy.tokenOf('orders', 'a-secret-from-the-file')).toBeString()
  const text = renderSeed(await exportSeed(app.context, { secrets: false }))
  expect(text).not.toMatch(/argon2|secret(?!_basic)|ours-there/)
  expect(await apply(app, Bun.YAML.parse(text), { prune: true })).toEqual([])
})

test('USR-23 a temporary password stays temporary in an export with secrets', async () => {
  const app = await startApp()
  const { id } = await addUser(app, 'ann')
  const reset = { password: 'Help-desk-knows-1', temporary: true }
  await app.admin('POST', `/users/${id}/reset-password`, reset)
  const { users: [ann = {}] = [] } = await exportSeed(app.context, { secrets: true })
  expect(ann.password_temporary).toBe(true)
  const copy = await startApp()
  await apply(copy, { users: [ann] } as SeedInput)
  const browser = openBrowser(copy)
  const page = await signIn(browser, await browser.get('/account'), 'ann', reset.password)
  expect(page.heading).toBe('Choose a new password')
  const { users: [open = {}] = [] } = await exportSeed(app.context, { secrets: false })
  expect(open).not.toContainAnyKeys(['password_hash', 'password_temporary'])
  const { password_hash: _, ...rest } = ann
  await expect(apply(copy, { users: [rest] } as SeedInput)).rejects.toThrow(
    'users[0].password_temporary: Give password or password_hash, too.',
  )
  const user = await copy.context.store.read(async q => q.select().from(q.tables.users))
  expect(user).toMatchObject([{ username: 'ann', password_temporary: true }])
  expect(await apply(copy, { users: [{ ...ann, password_temporary: false }] } as SeedInput)).toEqual([])
})

test('secrets come from the environment where the file says so', async () => {
  const app = await startApp()
  const seed = (env: Record<string, string>) =>
    parseSeed(
      'clients: [{ client_id: one, type: confidential, client_secret: { env: ONE_SECRET }, grant_types: [client_credentials], scopes: [a] }]',
      'seed.yaml',
      env,
    )
  await app.events()
  await expect(applySeed(app.context, seed({ ONE_SECRET: '' }))).rejects.toThrow(
    'seed.yaml:1: clients[0].client_secret: The environment variable ONE_SECRET is not set, or is empty.',
  )
  expect(await app.events()).toEqual([])
  await applySeed(app.context, seed({ ONE_SECRET: 'from-the-environment' }))
  expect(await app.tokenOf('one', 'from-the-environment')).toBeString()
})

test('the file in the guide is valid', async () => {
  const page = await Bun.file('templates/guide/seed.md').text()
  const [, text = ''] = /```yaml\n(organizations:[\s\S]*?)```/.exec(page) ?? []
  const app = await startApp()
  const seed = parseSeed(text, 'seed.yaml', { STOCK_SECRET: 'a-secret' })
  expect(await applySeed(app.context, seed)).toHaveLength(5)
})

test('the published schema names every section and its fields', () => {
  const schema: Json = seedJsonSchema()
  expect(Object.keys(schema.properties)).toEqual([
    '$schema',
    'organizations',
    'roles',
    'users',
    'groups',
    'clients',
    'apis',
    'identity_providers',
    'webhooks',
  ])
  expect(schema.properties.users.items.required).toEqual(['username', 'email'])
  expect(schema.properties.users.items.additionalProperties).toBe(false)
})
