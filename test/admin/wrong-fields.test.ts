import { expect, test } from 'bun:test'
import { adminRoutes } from '#src/admin/routes.ts'
import { type Json, startApp } from '#test/support/app.ts'
import { create, refused } from '#test/support/callers.ts'
import { addClient, addOrganization, addUser, PASSWORD } from '#test/support/people.ts'

const app = await startApp()
const acme = await addOrganization(app, 'acme')
await app.admin('PUT', `/organizations/${acme.id}`, {
  settings: { allowed_domains: ['acme.example'], password_policy: { min_length: 20 } },
})
const user = await addUser(app, 'alice', {
  email: 'alice@acme.example',
  password: `${PASSWORD}${PASSWORD}`,
  organization_id: acme.id,
})
const role = await create(app, '/roles', { name: 'editor', permissions: ['users:read'] })
const group = await create(app, '/groups', { name: 'staff' })
await addClient(app, 'shop')
const provider = {
  alias: 'corp',
  name: 'Corp',
  type: 'oidc',
  issuer: 'https://idp.example',
  client_id: 'gatehouse',
  client_secret: 'secret',
}
await create(app, '/identity-providers', provider)
const api = await create(app, '/apis', { identifier: 'https://api.example', name: 'API' })
const webhook = await create(app, '/webhooks', {
  name: 'Sold',
  url: 'https://hook.example',
  events: ['*'],
  organization_id: acme.id,
})
const address = `/assets/organizations/org_other/${'0'.repeat(32)}.png`

interface Case {
  /** Values that the schema refuses. */
  schema: Json
  /** Well-formed values that conflict with stored data or with other fields. */
  stored: Json
  /**
   * The fields of `stored` that are refused. They are wrong only together with the other fields of `stored`.
   */
  refused: string[]
}

const cases: Record<string, Case> = {
  'POST /users': {
    schema: { username: 'x', first_name: 1 },
    stored: {
      last_name: 'B',
      email: 'new@elsewhere.example',
      password: 'short',
      roles: ['nobody'],
      organization_id: acme.id,
    },
    refused: ['email', 'password', 'roles'],
  },
  [`PUT /users/${user.id}`]: {
    schema: { username: 'x' },
    stored: { id: 'usr_other', email: 'new@elsewhere.example', roles: ['nobody'] },
    refused: ['email', 'id', 'roles'],
  },
  [`POST /users/${user.id}/reset-password`]: {
    schema: { temporary: 'yes' },
    stored: { password: 'short' },
    refused: ['password'],
  },
  'POST /organizations': {
    schema: { slug: '-', settings: { theme: '!' } },
    stored: { name: 'New', settings: { logo: address } },
    refused: ['settings.logo'],
  },
  [`PUT /organizations/${acme.id}`]: {
    schema: { slug: '-', settings: { theme: '!' } },
    stored: { id: 'org_other', settings: { logo: address } },
    refused: ['id', 'settings.logo'],
  },
  [`POST /organizations/${acme.id}/preview`]: {
    schema: { display_name: '', settings: { theme: '!' } },
    stored: { settings: { logo: address } },
    refused: ['settings.logo'],
  },
  'POST /roles': {
    schema: { name: '' },
    stored: { permissions: ['users:read'], organization_id: 'org_nowhere' },
    refused: ['organization_id'],
  },
  [`PUT /roles/${role.id}`]: {
    schema: { description: 1 },
    stored: { name: 'other', permissions: ['*'] },
    refused: ['name', 'permissions'],
  },
  'POST /groups': {
    schema: { name: '' },
    stored: { roles: ['nobody'], organization_id: acme.id },
    refused: ['roles'],
  },
  [`PUT /groups/${group.id}`]: {
    schema: { description: 1 },
    stored: { organization_id: acme.id, roles: ['nobody'] },
    refused: ['organization_id', 'roles'],
  },
  'POST /initial-access-tokens': {
    schema: { uses: 0 },
    stored: { organization_id: 'org_none' },
    refused: ['organization_id'],
  },
  'POST /invitations': {
    schema: { delivery: 'pigeon' },
    stored: { email: 'bob@other.example', roles: ['nobody'], groups: ['grp_none'], organization_id: acme.id },
    refused: ['email', 'roles', 'groups'],
  },
  'POST /apis': {
    schema: { name: '' },
    stored: { identifier: 'http://localhost:8080/x', served_by: ['nobody'] },
    refused: ['identifier', 'served_by'],
  },
  [`PUT /apis/${api.id}`]: {
    schema: { name: '' },
    stored: { identifier: 'https://other.example', served_by: ['nobody'] },
    refused: ['identifier', 'served_by'],
  },
  'POST /webhooks': {
    schema: { events: ['nothing.*'] },
    stored: { name: 'Hook', url: 'https://hook.example', organization_id: acme.id, all_organizations: true },
    refused: ['all_organizations'],
  },
  [`PUT /webhooks/${webhook.id}`]: {
    schema: { url: 'ftp://hook.example' },
    stored: { signature: 'v1a', all_organizations: true },
    refused: ['all_organizations', 'signature'],
  },
  'POST /clients': {
    schema: { client_id: '-' },
    stored: {
      name: 'New',
      type: 'public',
      grant_types: ['authorization_code', 'client_credentials'],
      scopes: [],
      token_endpoint_auth_method: 'client_secret_post',
      organization_id: 'org_nowhere',
    },
    refused: ['grant_types', 'organization_id', 'redirect_uris', 'token_endpoint_auth_method'],
  },
  'PUT /clients/shop': {
    schema: { access_token_ttl: 1 },
    stored: { type: 'public', redirect_uris: [], token_endpoint_auth_method: 'none' },
    refused: ['redirect_uris', 'token_endpoint_auth_method', 'type'],
  },
  'POST /identity-providers': {
    schema: { alias: '-', enabled: 1 },
    stored: {
      name: 'New',
      type: 'oidc',
      issuer: 'http://idp.internal',
      default_roles: ['nobody'],
    },
    refused: ['client_id', 'default_roles', 'issuer'],
  },
  'PUT /identity-providers/corp': {
    schema: { alias: '-', scopes: ['"'] },
    stored: {
      issuer: 'http://idp.internal',
      default_roles: ['nobody'],
      entity_id: 'x',
      organization_id: acme.id,
    },
    refused: ['client_secret', 'default_roles', 'entity_id', 'issuer', 'organization_id'],
  },
}

/** Routes whose fields are checked only by the schema. */
const WITHOUT_REVIEW = [
  'PUT /settings',
  'POST /webhooks/:webhook_id/deliveries',
  'POST /webhooks/:webhook_id/replay',
  'POST /webhooks/:webhook_id/rotate-secret',
]

/**
 * Returns the method and path of the route that serves a call. The path has parameter names in place of ids.
 */
const routeOf = (call: string): string => {
  const [method = '', path = ''] = call.split(' ')
  const route = adminRoutes(app.context).find(
    each => each.method === method && new RegExp(`^${each.path.replace(/:\w+/g, '[^/]+')}$`).test(path),
  )
  return `${route?.method} ${route?.path}`
}

/** Returns a body with the wrong values of `schema` and of `stored`. */
const both = ({ schema, stored }: Case): Json => ({
  ...stored,
  ...schema,
  ...(stored.settings && { settings: { ...stored.settings, ...schema.settings } }),
})
const namesOf = (schema: Json): string[] =>
  Object.keys(schema).map(name => (name === 'settings' ? 'settings.theme' : name))

test('H-46 the calls below are all routes that create or change something', () => {
  const withBody = adminRoutes(app.context).filter(({ body }) => body !== undefined)
  const routes = withBody.map(({ method, path }) => `${method} ${path}`)
  expect([...Object.keys(cases).map(routeOf), ...WITHOUT_REVIEW].sort()).toEqual(routes.sort())
})

for (const [call, each] of Object.entries(cases))
  test(`H-46 one answer names every wrong field: ${routeOf(call)}`, async () => {
    const [method = '', path = ''] = call.split(' ')
    const names = namesOf(each.schema)
    const rows = () =>
      app.context.store.read(async q => {
        const { users, organizations, roles, groups, clients, identity_providers } = q.tables
        const tables = [users, organizations, roles, groups, clients, identity_providers]
        return Promise.all(tables.map(table => q.select().from(table)))
      })
    const before = await rows()
    await app.events()
    const answer = await app.admin(method, path, both(each))
    const found = refused(answer).map(field => field.replace(/\.\d+$/, ''))
    expect(found).toEqual([...names, ...each.refused].sort())
    expect(answer.body.error_description).toBe(`${answer.body.details.length} fields are not valid.`)
    expect(await rows()).toEqual(before)
    expect(await app.events()).toEqual([])
  })

test('H-46 a check that depends on a wrong field is skipped', async () => {
  const foreign = { name: '', roles: ['nobody'], organization_id: 1 }
  expect(refused(await app.admin('POST', '/groups', foreign))).toEqual(['name', 'organization_id'])
  const client = { client_id: 'new', name: 'New', type: 'x', grant_types: [], scopes: [] }
  const method = { token_endpoint_auth_method: 'none' }
  expect(refused(await app.admin('POST', '/clients', { ...client, ...method }))).toEqual(['type'])
  const saml = { type: 'saml', alias: 'new', name: 'New', metadata_url: 'no address' }
  expect(refused(await app.admin('POST', '/identity-providers', saml))).toEqual(['metadata_url'])
  expect(refused(await app.admin('POST', '/identity-providers', { ...saml, type: 'x' }))).toEqual(['type'])
  for (const body of ['[]', '"x"', 'null', '{"__proto__":{"type":"oidc"}}'])
    expect((await app.admin('POST', '/identity-providers', body)).status).toBe(422)
})

test('API-08 at most 20 unknown fields are named, and no name that cannot be printed', async () => {
  const unknown = ['<script>', 'a b', 'x'.repeat(65), ...Array.from({ length: 30 }, (_, i) => `field-${i}`)]
  const body = { name: 'new', permissions: [], ...Object.fromEntries(unknown.map(name => [name, 1])) }
  await app.events()
  const { status, body: answer } = await app.admin('POST', '/roles', body)
  const shown = [...Array(3).fill('(unprintable)'), ...unknown.slice(3, 20)]
  expect([status, answer.details]).toEqual([
    422,
    shown.map(field => ({ field, code: 'unknown_field', message: 'This field is unknown.' })),
  ])
  expect(await app.events()).toEqual([])
})

test('API-08 a value that another object has is 409, and the answer names the field', async () => {
  await addUser(app, 'bob', {
    organization_id: acme.id,
    email: 'bob@acme.example',
    password: PASSWORD + PASSWORD,
  })
  await addOrganization(app, 'beta')
  const person = { organization_id: acme.id, first_name: '', last_name: '', password: PASSWORD + PASSWORD }
  const hook = { name: 'Sold', url: 'https://hook.example', events: ['*'], organization_id: acme.id }
  const web = { name: 'Shop', type: 'public', grant_types: ['authorization_code'], scopes: ['openid'] }
  const uris = { redirect_uris: ['https://shop.example/callback'] }
  const invited = { delivery: 'link', email: 'bob@acme.example', organization_id: acme.id }
  const calls: [method: string, path: string, body: Json, field: string][] = [
    ['POST', '/users', { ...person, username: 'BOB', email: 'new@acme.example' }, 'username'],
    ['POST', '/users', { ...person, username: 'new', email: 'Bob@acme.example' }, 'email'],
    ['PUT', `/users/${user.id}`, { username: 'bob' }, 'username'],
    ['PUT', `/users/${user.id}`, { email: 'bob@acme.example' }, 'email'],
    ['POST', '/invitations', invited, 'email'],
    ['POST', '/organizations', { name: 'Beta', slug: 'beta' }, 'slug'],
    ['PUT', `/organizations/${acme.id}`, { slug: 'beta' }, 'slug'],
    ['POST', '/roles', { name: 'editor', permissions: [] }, 'name'],
    ['POST', '/groups', { name: 'staff' }, 'name'],
    ['POST', '/clients', { ...web, ...uris, client_id: 'shop' }, 'client_id'],
    ['POST', '/apis', { identifier: 'https://api.example', name: 'API' }, 'identifier'],
    ['POST', '/identity-providers', provider, 'alias'],
    ['POST', '/webhooks', hook, 'name'],
  ]
  await app.events()
  for (const [method, path, body, field] of calls) {
    const answer = await app.admin(method as 'POST', path, body)
    expect([method, path, answer.status, answer.body.error, answer.body.details]).toEqual([
      method,
      path,
      409,
      'conflict',
      [{ field, code: 'taken', message: answer.body.error_description }],
    ])
  }
  expect(await app.events()).toEqual([])
})
