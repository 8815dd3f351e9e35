import { describe, expect, test } from 'bun:test'
import { z } from 'zod'
import { ADMIN_PREFIX } from '#src/admin/routes.ts'
import { insertFactor } from '#src/directory/users/factors/store.ts'
import { DEFAULT_ORGANIZATION, newId } from '#src/lib/ids.ts'
import { permissions } from '#src/lib/permission.ts'
import { captureMail } from '#src/mail/captured.ts'
import { type Json, noCall, startApp } from '#test/support/app.ts'
import { create } from '#test/support/callers.ts'
import { addClient, addOrganization, addUser, PASSWORD } from '#test/support/people.ts'
import { addRememberedTo, addWaiting } from '#test/support/routes.ts'
import { newDataDir } from '#test/support/store.ts'
import { grantTokens } from '#test/support/tokens.ts'

const app = await startApp({ data_dir: newDataDir() }, { mail: captureMail(), fetch: noCall })
const document: Json = await (await app.call('/api/v1/openapi.json')).json()

interface Operation {
  key: string
  method: string
  path: string
  operation: Json
}
const operations: Operation[] = Object.entries<Json>(document.paths).flatMap(([path, methods]) =>
  Object.entries<Json>(methods).map(([method, operation]) => {
    const short = path.slice(ADMIN_PREFIX.length)
    return { key: `${method.toUpperCase()} ${short}`, method: method.toUpperCase(), path: short, operation }
  }),
)

const schemaAt = (operation: Json, status: number): Json | undefined =>
  at(operation.responses[status] ?? {}).content?.['application/json']?.schema

/** Returns the object to which the `$ref` of an item refers. Returns the item itself if it has no `$ref`. */
const at = (item: Json): Json =>
  item.$ref
    ? at(
        item.$ref
          .slice(2)
          .split('/')
          .reduce((node: Json, key: string) => node[key], document),
      )
    : item
for (const { operation } of operations) operation.parameters = (operation.parameters ?? []).map(at)

/** The schemas of the document, with references to `$defs`. zod resolves no other references. */
const $defs = JSON.parse(
  JSON.stringify(document.components.schemas).replaceAll('#/components/schemas/', '#/$defs/'),
)
/**
 * Builds a validator from a documented schema. The validator refuses fields that the schema does not name.
 */
const validator = ({ $ref }: Json) =>
  z.fromJSONSchema({ $ref: $ref.replace('#/components/schemas/', '#/$defs/'), $defs })

test('is OpenAPI 3.1, names this server and requires a bearer token', () => {
  expect(document).toMatchObject({
    openapi: expect.stringMatching(/^3\.1\.\d$/),
    info: { title: 'Gatehouse admin API' },
    servers: [{ url: 'http://localhost:8080' }],
    security: [{ bearer: [] }],
    components: { securitySchemes: { bearer: { type: 'http', scheme: 'bearer' } } },
  })
})

test('lists exactly the routes that exist', async () => {
  const routes = app.routes.map(({ method, path }) => `${method} ${path.replace(/:(\w+)/g, '{$1}')}`)
  expect(operations.map(({ key }) => key).sort()).toEqual(routes.sort())
  for (const { key, method, path } of operations) {
    const answer = await app.call(ADMIN_PREFIX + path.replace(/\{\w+\}/g, 'x'), { method })
    expect([key, answer.status]).toEqual([key, 401])
  }
})

test('API-27 a parameter that is true or false is a boolean, and a search has its maximum length', () => {
  const schemaOf = (key: string, name: string) =>
    operations
      .find(each => each.key === key)
      ?.operation.parameters.find((parameter: Json) => parameter.name === name).schema
  for (const name of ['enabled', 'email_verified'])
    expect(schemaOf('GET /users', name)).toEqual({ type: 'boolean' })
  expect(schemaOf('DELETE /users/{user_id}/factors', 'only_way_in')).toEqual({ type: 'boolean' })
  expect(schemaOf('GET /users', 'search')).toEqual({ type: 'string', maxLength: 256 })
})

test('API-05 a webhook has at least one event type', () => {
  const { CreateWebhook, UpdateWebhook } = document.components.schemas
  for (const { properties } of [CreateWebhook, UpdateWebhook]) expect(properties.events.minItems).toBe(1)
})

test('every operation states its permission, path parameters, success answer and error shape', () => {
  for (const { key, path, operation } of operations) {
    expect([key, permissions]).toEqual([key, expect.arrayContaining([operation['x-permission']])])
    const named = (operation.parameters ?? []).filter((each: Json) => each.in === 'path')
    expect(named.map(({ name }: Json) => `{${name}}`)).toEqual(path.match(/\{\w+\}/g) ?? [])
    const statuses = Object.keys(operation.responses).map(Number)
    expect(statuses.filter(status => status < 300)).toHaveLength(1)
    expect(statuses).toEqual(expect.arrayContaining([401, 403, 422]))
    for (const status of statuses.filter(each => each >= 400))
      expect(schemaAt(operation, status)).toEqual({ $ref: '#/components/schemas/Error' })
  }
})

describe('real answers', async () => {
  const org = await addOrganization(app, 'acme', {
    settings: {
      theme: 'slate',
      session_ttl: '12h',
      mfa_required: false,
      allowed_domains: ['example.com'],
      login_domains: ['example.com'],
      password_policy: {
        min_length: 8,
        require_uppercase: true,
        require_lowercase: true,
        require_digit: true,
        require_special: true,
        max_age_days: 90,
      },
    },
  })
  const role = await create(app, '/roles', { name: 'editor', permissions: ['users:read'] })
  const group = await create(app, '/groups', { name: 'Staff', roles: ['editor'] })
  const invitation = await create(app, '/invitations', { delivery: 'link' })
  const api = await create(app, '/apis', { identifier: 'https://api.example', name: 'API' })
  const hook = { name: 'Hook', url: 'https://192.0.2.1/', events: ['*'] }
  const webhook = await create(app, '/webhooks', hook)
  const about = { email: 'Alice@BÜCHER.example', attributes: { team: { name: 'a' } } }
  const user = await addUser(app, 'alice', about)
  const other = await addUser(app, 'bob')
  const client = await addClient(app, 'shop', { scopes: ['openid'] })
  const till = await addClient(app, 'till', { scopes: ['openid'] })
  const google = { name: 'G', type: 'oidc', preset: 'google', client_id: 'x', client_secret: 'y' }
  const provider = await create(app, '/identity-providers', { ...google, alias: 'google' })
  const session = async () => {
    await grantTokens(app, till, other, { scope: 'openid' })
    return (await app.admin('GET', `/sessions?user_id=${other.id}`)).body.data[0].id
  }
  await session()
  const event = (await app.admin('GET', '/events')).body.data[0]
  const factor = async (): Promise<string> => {
    const id = newId('fac', app.clock.now())
    const row = { id, user_id: user.id, type: 'totp', name: 'App', transports: [], created_at: 0 } as const
    await app.context.store.write(tx => insertFactor(tx, row as Json))
    return id
  }
  for (let i = 0; i < 2; i++) await factor()
  for (let i = 0; i < 2; i++)
    await app.admin('POST', `/webhooks/${webhook.id}/deliveries`, { event_id: event.id })
  const ids: Record<string, () => string | Promise<string>> = {
    browser_id: () => addRememberedTo(app, user.id, DEFAULT_ORGANIZATION),
    factor_id: factor,
    user_id: () => user.id,
    org_id: () => org.id,
    role_id: () => role.id,
    group_id: () => group.id,
    api_id: () => api.id,
    invitation_id: () => invitation.id,
    registration_id: async () => (await addWaiting(app, DEFAULT_ORGANIZATION)).id,
    client_id: () => client.client_id,
    provider_id: () => provider.id,
    session_id: session,
    event_id: () => event.id,
    webhook_id: () => webhook.id,
  }
  const bodies: Record<string, Json> = {
    'POST /users': {
      ...user,
      id: undefined,
      username: 'carol',
      email: 'carol@example.com',
      password: PASSWORD,
    },
    'PUT /users/{user_id}': { first_name: 'Alicia' },
    'POST /users/{user_id}/reset-password': { password: PASSWORD, temporary: true },
    'POST /organizations': { name: 'Beta', slug: 'beta' },
    'POST /organizations/{org_id}/preview': { settings: { theme: 'ember' } },
    'PUT /organizations/{org_id}': { display_name: 'Acme Inc.' },
    'POST /roles': { name: 'viewer', permissions: [] },
    'PUT /roles/{role_id}': { description: 'Edits' },
    'POST /groups': { name: 'Crew' },
    'PUT /groups/{group_id}': { description: 'All of them' },
    'POST /invitations': { delivery: 'link' },
    'POST /initial-access-tokens': {},
    'POST /apis': { identifier: 'https://other.example', name: 'Other' },
    'PUT /apis/{api_id}': { name: 'The API' },
    'POST /webhooks': { ...hook, name: 'Other' },
    'PUT /webhooks/{webhook_id}': { enabled: false },
    'POST /webhooks/{webhook_id}/rotate-secret': {},
    'POST /webhooks/{webhook_id}/replay': { from: '2026-01-01T00:00:00Z' },
    'POST /webhooks/{webhook_id}/deliveries': { event_id: event.id },
    'POST /clients': {
      client_id: 'other',
      name: 'Other',
      type: 'confidential',
      grant_types: ['client_credentials'],
      scopes: [],
    },
    'PUT /clients/{client_id}': { description: 'Sells' },
    'POST /identity-providers': { ...google, alias: 'google-two' },
    'PUT /identity-providers/{provider_id}': { name: 'Google' },
    'PUT /settings': { backup_keep: 14 },
  }
  for (const name of ['id', 'created_at', 'updated_at', 'last_login']) delete bodies['POST /users'][name]
  // Queries of the operations that need one. The tests read other lists with `?limit=1`, so that an answer
  // has a `next_cursor`.
  const queries: Record<string, string> = {
    'DELETE /sessions': '?organization_id=org_default',
    'GET /clients/{client_id}/test-login': `?user_id=${user.id}`,
  }
  let made = 0
  /** Objects that the DELETE routes delete. No other case uses these objects. */
  const spare: typeof ids = {
    user_id: async () => (await addUser(app, `spare${++made}`)).id,
    org_id: async () => (await addOrganization(app, `spare${++made}`)).id,
    role_id: async () => (await create(app, '/roles', { name: `spare${++made}`, permissions: [] })).id,
    group_id: async () => (await create(app, '/groups', { name: `Spare ${++made}` })).id,
    api_id: async () =>
      (await create(app, '/apis', { identifier: `https://spare${++made}.example`, name: 'A' })).id,
    invitation_id: async () => (await create(app, '/invitations', { delivery: 'link' })).id,
    webhook_id: async () => (await create(app, '/webhooks', { ...hook, name: `spare${++made}` })).id,
    client_id: async () => (await addClient(app, `spare${++made}`)).client_id,
    provider_id: async () =>
      (await create(app, '/identity-providers', { ...google, alias: `spare${++made}` })).id,
  }
  const filled = async (method: string, path: string): Promise<string> => {
    let full = path
    for (const [part = '', name = ''] of path.matchAll(/\{(\w+)\}/g)) {
      const isDeleted = method === 'DELETE' && path.endsWith(part) && !path.includes('/members/')
      const id = (isDeleted && spare[name]) || ids[name]
      full = full.replace(part, encodeURIComponent((await id?.()) ?? ''))
    }
    return full
  }

  for (const { key, method, path, operation } of operations)
    test(`API-05 ${key} answers exactly what the document says`, async () => {
      await app.admin('PUT', `/groups/${group.id}/members/${user.id}`)
      const status = Number(Object.keys(operation.responses).find(each => Number(each) < 300))
      const isList = operation.parameters?.some(({ name }: Json) => name === 'cursor')
      const query = queries[key] ?? (isList && !key.includes('members') ? '?limit=1' : '')
      const answer = await app.admin(method, (await filled(method, path)) + query, bodies[key])
      expect([key, answer.status]).toEqual([key, status])
      const schema = schemaAt(operation, status)
      if (!schema) return expect(answer.body).toBeUndefined()
      expect(validator(schema).safeParse(answer.body).error?.issues ?? []).toEqual([])
    })

  test('API-08 refusals have the documented error shape', async () => {
    const error = validator({ $ref: '#/components/schemas/Error' })
    const refusals = [
      await app.admin('GET', '/users/usr_x'),
      await app.admin('POST', '/users', {}),
      await app.admin('POST', '/users', '{'),
      await app.admin('DELETE', '/organizations/org_default'),
      await app.admin('GET', '/users?cursor=x'),
      await app.admin('GET', '/users', undefined, 'x'),
    ]
    expect(refusals.map(({ status }) => status)).toEqual([404, 422, 400, 409, 400, 401])
    for (const { body } of refusals) expect(error.safeParse(body).error?.issues ?? []).toEqual([])
  })
})

describe('requests', () => {
  const lists = operations.filter(({ operation }) =>
    operation.parameters?.some(({ name }: Json) => name === 'cursor'),
  )
  const sample = ({ schema }: Json): string =>
    at(schema).enum?.[0] ??
    schema.anyOf?.[0]?.enum?.[0] ??
    schema.default ??
    (schema.type === 'integer' ? 5 : undefined)
  const others: Record<string, string> = {
    enabled: 'true',
    email_verified: 'false',
    from: '2026-01-01T00:00:00Z',
    to: '2026-12-31',
    ip_address: '192.0.2.1',
  }

  test('API-07 every list takes limit, cursor and order', () => {
    expect(lists).toHaveLength(18)
    for (const { key, operation } of lists) {
      const names = operation.parameters.map(({ name }: Json) => name)
      expect([key, names]).toEqual([key, expect.arrayContaining(['limit', 'cursor', 'order'])])
      const limit = operation.parameters.find(({ name }: Json) => name === 'limit').schema
      expect(limit).toMatchObject({ minimum: 1, maximum: 100, default: 20 })
    }
  })

  test.each(lists.map(each => [each.key, each] as const))(
    '%s takes each documented parameter',
    async (_, list) => {
      for (const parameter of list.operation.parameters) {
        const name = parameter.style === 'deepObject' ? `${parameter.name}[key]` : parameter.name
        if (parameter.in === 'path' || name === 'cursor') continue
        const value = others[name] ?? sample(parameter) ?? 'x'
        const path = list.path.replace(/\{(\w+)_id\}/, '$1_x')
        const { status, body } = await app.admin('GET', `${path}?${name}=${encodeURIComponent(value)}`)
        const expected = path === list.path ? 200 : 404
        expect([name, value, status, body.details]).toEqual([name, value, expected, undefined])
        const twice = await app.admin('GET', `${path}?${name}=${value}&${name}=${value}`)
        expect([name, twice.status]).toEqual([name, 422])
      }
    },
  )

  test('API-06 every body is closed: an unknown field is refused by name', async () => {
    for (const { key, method, path, operation } of operations) {
      const schema = operation.requestBody?.content['application/json'].schema
      if (!schema) continue
      const shapes: Json[] = at(schema).oneOf?.map(at) ?? [at(schema)]
      for (const shape of shapes) expect([key, shape.additionalProperties]).toEqual([key, false])
      const answer = await app.admin(method, path.replace(/\{\w+\}/g, 'x'), {
        unheard_of: 1,
        ...(shapes.length > 1 && { type: 'oidc' }),
      })
      expect([key, answer.status]).toEqual([key, 422])
      expect(JSON.stringify(answer.body.details)).toContain('unheard_of')
    }
  })

  test('API-06 every query is closed: an unknown parameter is refused by name', async () => {
    for (const { key, method, path } of operations) {
      const { status, body } = await app.admin(method, `${path.replace(/\{\w+\}/g, 'x')}?unheard_of=1`, {})
      const fields = body?.details?.map(({ field }: Json) => field)
      expect([key, status, fields]).toEqual([key, 422, expect.arrayContaining(['unheard_of'])])
    }
  })
})
