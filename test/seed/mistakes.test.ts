import { describe, expect, test } from 'bun:test'
import { applySeed } from '#src/seed/apply.ts'
import { parseSeed, readSeed, requireSound, SeedError } from '#src/seed/read.ts'
import { type Json, startApp, type TestApp } from '#test/support/app.ts'

const UUID = '0192d3a4-5b6c-7d8e-9f00-112233445566'

const apply = (app: TestApp, seed: Json, options = {}) => applySeed(app.context, readSeed(seed), options)

const refusal = async (work: () => unknown): Promise<Json> => {
  try {
    await work()
  } catch (error) {
    expect(error).toBeInstanceOf(SeedError)
    return (error as SeedError).mistakes
  }
  throw new Error('it was not refused')
}

describe('a file with mistakes is refused completely', () => {
  test.each<[string, Json, Json]>([
    [
      'unknown keys, at every depth',
      {
        user: [],
        users: [{ username: 'carol', email: 'carol@example.com', nickname: 'c' }],
        organizations: [{ slug: 'acme', settings: { colour: 'red' } }],
        identity_providers: [{ alias: 'xx', name: 'X', type: 'saml', client_id: 'x' }],
      },
      [
        ['organizations[0].settings.colour', /Fields: theme, session_ttl, mfa_required/],
        ['users[0].nickname', /Fields: id, organization, username/],
        ['identity_providers[0].client_id', /Fields: .*sso_url/],
        ['user', /Fields: .*organizations, roles, users/],
      ],
    ],
    [
      'wrong types',
      {
        users: [{ username: 7, email: true }],
        clients: 'shop',
        roles: [{ name: 'x', permissions: ['fly'] }],
      },
      [
        ['roles[0].permissions[0]', /One of: users:read/],
        ['users[0].username', /3 to 128 characters/],
        ['users[0].email', /e-mail/],
        ['clients', /A list/],
      ],
    ],
    [
      'malformed ids',
      { users: [{ id: 'usr_1', username: 'carol', email: 'carol@example.com' }] },
      [['users[0].id', /usr_ and a UUID/]],
    ],
    [
      'the same name or id twice',
      {
        users: [
          { username: 'carol', email: 'carol@example.com' },
          { username: 'Carol', email: 'c@example.com' },
        ],
        roles: [
          { id: `role_${UUID}`, name: 'one', permissions: [] },
          { id: `role_${UUID}`, name: 'two', permissions: [] },
        ],
      },
      [
        ['roles[1]', /roles\[0\] has the same id/],
        ['users[1]', /users\[0\] has the same name/],
      ],
    ],
    [
      'references to nothing',
      {
        roles: [{ name: 'editor', organization: 'nowhere', permissions: [] }],
        users: [{ username: 'carol', email: 'carol@example.com', roles: ['ghost', 'user'] }],
        groups: [{ name: 'staff', members: ['carol', 'nobody'] }],
      },
      [
        ['roles[0].organization', /No organization has the slug nowhere/],
        ['users[0].roles', /no role ghost/],
        ['groups[0].members', /no user nobody/],
      ],
    ],
    [
      'a wrong role and a wrong group, which a client names',
      {
        roles: [{ name: 'editor', permissions: ['fly'] }],
        groups: [{ name: 'staff', color: 'red' }],
        clients: [
          {
            client_id: 'one',
            type: 'public',
            grant_types: [],
            scopes: [],
            allowed_roles: ['editor'],
            allowed_groups: ['staff'],
          },
        ],
      },
      [
        ['roles[0].permissions[0]', /One of: users:read/],
        ['groups[0].color', /no such field/],
      ],
    ],
    ...[{ roles: ['ghost'] }, { members: ['ghost'] }].map((wrong): [string, Json, Json] => [
      `a group that is refused for its ${Object.keys(wrong)}, which a client names`,
      {
        groups: [{ name: 'staff', ...wrong }, { name: 'crew' }],
        clients: ['staff', 'crew', 'nobody'].map(name => ({
          client_id: `of-${name}`,
          type: 'public',
          grant_types: [],
          scopes: [],
          allowed_groups: [name],
        })),
        apis: [{ identifier: 'https://api.example.com', name: 'API', served_by: ['of-staff'] }],
      },
      [
        [`groups[0].${Object.keys(wrong)}`, /no (role|user) ghost/],
        ['clients[2].allowed_groups', /no group nobody/],
      ],
    ]),
    [
      'a refused organization, which a role and a user name',
      {
        organizations: [{ slug: 'acme', settings: { registration: 'domains' } }],
        roles: [{ name: 'editor', organization: 'acme', permissions: [] }],
        users: [
          { username: 'carol', email: 'carol@example.com', organization: 'acme', roles: ['editor'] },
          { username: 'dave', email: 'dave@example.com', roles: ['ghost'] },
        ],
      },
      [
        ['organizations[0].settings.registration', /needs `allowed_domains`/],
        ['users[1].roles', /no role ghost/],
      ],
    ],
    [
      'what the rules of the admin API refuse',
      {
        users: [
          { username: 'carol', email: 'carol@example.com', password: 'weak' },
          { username: 'dave', email: 'CAROL@example.com' },
        ],
        clients: [
          { client_id: 'one', type: 'public', grant_types: ['client_credentials'], scopes: [] },
          { client_id: 'two', type: 'confidential', grant_types: ['client_credentials'], scopes: [] },
          { client_id: 'three', type: 'public', client_secret: 'x', grant_types: [], scopes: [] },
        ],
      },
      [
        ['clients[2].client_secret', /public client has no secret/],
        ...Array(4).fill(['users[0].password', /./]),
        ['clients[0].grant_types', /public/],
        ['clients[1].client_secret', /needs client_secret or client_secret_hash/],
      ],
    ],
    [
      'secrets whose variable is not set',
      {
        clients: [
          {
            client_id: 'one',
            type: 'confidential',
            client_secret: { env: 'NOT_SET' },
            grant_types: [],
            scopes: [],
          },
        ],
      },
      [['clients[0].client_secret', /NOT_SET is not set/]],
    ],
    [
      'an empty secret',
      { clients: [{ client_id: 'one', type: 'public', client_secret: '', grant_types: [], scopes: [] }] },
      [['clients[0].client_secret', /^Leave it out, or give a text of 1 to 8192 characters\.$/]],
    ],
  ])('%s', async (_, seed, expected) => {
    const app = await startApp()
    await app.events()
    const mistakes = await refusal(() => apply(app, seed))
    expect(mistakes.map(({ path }: Json) => path)).toEqual(expected.map(([path]: Json) => path))
    for (const [i, [, text]] of expected.entries()) expect(mistakes[i].message).toMatch(text)
    expect(await app.events()).toEqual([])
    expect((await app.admin('GET', '/users')).body.data).toEqual([])
  })

  test('found against the stored rows: weak passwords, taken addresses, impossible clients', async () => {
    const app = await startApp()
    await app.events()
    const mistakes = await refusal(() =>
      apply(app, {
        users: [
          { username: 'carol', email: 'carol@example.com', password: 'weak' },
          { username: 'dave', email: 'dave@example.com' },
          { username: 'erin', email: 'DAVE@example.com' },
        ],
        clients: [
          { client_id: 'one', type: 'public', grant_types: ['client_credentials'], scopes: [] },
          { client_id: 'two', type: 'confidential', grant_types: ['client_credentials'], scopes: [] },
        ],
      }),
    )
    expect(mistakes.map(({ path }: Json) => path)).toEqual([
      'users[0].password',
      'users[0].password',
      'users[0].password',
      'users[0].password',
      'users[2].email',
      'clients[0].grant_types',
      'clients[1].client_secret',
    ])
    expect(await app.events()).toEqual([])
    expect((await app.admin('GET', '/clients')).body.data).toHaveLength(1)
  })

  test('RUN-34 one run reports mistakes of all kinds, and none that follows from another', async () => {
    const app = await startApp()
    await app.events()
    const clients = [
      { client_id: 'one', type: 'public', grant_types: ['client_credentials'], scopes: [] },
      { client_id: 'two', type: 'wrong', grant_types: [], scopes: [] },
      { client_id: 'three', type: 'public', grant_types: [], scopes: [] },
      { client_id: 'three', type: 'public', grant_types: [], scopes: [] },
    ]
    const carol = { username: 'carol', email: 'carol@example.com', roles: ['ghost'] }
    const paths = async (seed: Json, options = {}) =>
      (await refusal(() => apply(app, seed, options))).map(({ path }: Json) => path)
    const [type, name, grant] = ['clients[1].type', 'clients[3]', 'clients[0].grant_types']
    expect(await paths({ users: [carol], clients })).toEqual([type, name, 'users[0].roles', grant])
    // This file has the role `ghost`, so the user's reference to this role is valid. The role's permission is
    // reported instead. A refused apply prunes nothing.
    const roles = [{ name: 'ghost', permissions: ['fly'] }]
    expect(await paths({ roles, users: [carol], clients }, { prune: true })).toEqual([
      'roles[0].permissions[0]',
      type,
      name,
      grant,
    ])
    expect(await app.events()).toEqual([])
    expect((await app.admin('GET', '/clients')).body.data).toHaveLength(1)
  })

  test('each line names the file', () => {
    const text = 'users:\n  - username: x\n    email: 5\n'
    expect(() => requireSound(parseSeed(text, 'seed.yaml'))).toThrow(
      /^seed\.yaml has 2 mistakes; nothing was applied\.\n {2}seed\.yaml:2: users\[0\]\.username: .*\n {2}seed\.yaml:3: users\[0\]\.email: /,
    )
    expect(() => parseSeed('users: [', 'seed.yaml')).toThrow(/^seed\.yaml has a mistake/)
  })
})
