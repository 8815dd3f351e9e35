/** Tests If-Match for each kind of object that a PUT changes: RFC 9110 sections 8.8.3 and 13.1.1. */
import { beforeEach, expect, test } from 'bun:test'
import { ADMIN_SECRET, type Json, startApp, type TestApp } from '#test/support/app.ts'
import { callerOf, create } from '#test/support/callers.ts'
import { addUser } from '#test/support/people.ts'
import { addTenant, inputs, keyOf, pathOf, type Tenant } from '#test/support/routes.ts'

let app: TestApp
let tenant: Tenant
beforeEach(async () => {
  app = await startApp()
  tenant = await addTenant(app)
})

const call = async (method: string, path: string, body?: Json, if_match?: string) => {
  const token = await app.tokenOf('gatehouse-admin', ADMIN_SECRET)
  const answer = await app.call(`/api/v1/admin${path}`, {
    method,
    headers: {
      authorization: `Bearer ${token}`,
      ...(body && { 'content-type': 'application/json' }),
      ...(if_match !== undefined && { 'if-match': if_match }),
    },
    ...(body && { body: JSON.stringify(body) }),
  })
  const text = await answer.text()
  return { status: answer.status, etag: answer.headers.get('etag'), body: text ? JSON.parse(text) : {} }
}

test('API-28 each object has an entity tag, and a PUT with an outdated tag is 412 with the present object', async () => {
  const puts = app.routes.filter(({ method, path }) => method === 'PUT' && !path.includes('/members/'))
  expect(puts.length).toBeGreaterThan(6)
  for (const route of puts) {
    const path = pathOf(route, tenant)
    const change = inputs[keyOf(route)]?.(tenant).body
    const read = await call('GET', path)
    expect([path, read.etag]).toEqual([path, expect.stringMatching(/^"[\w-]{43}"$/)])
    const first = await call('PUT', path, change, read.etag ?? '')
    expect([path, first.status]).toEqual([path, 200])
    expect(first.etag).not.toBe(read.etag)
    expect((await call('GET', path)).etag).toBe(first.etag)
    await app.events()

    const second = await call('PUT', path, inputs[keyOf(route)]?.(tenant).body, read.etag ?? '')
    const { request_id: _, ...refusal } = second.body
    expect([second.status, second.etag, refusal]).toEqual([
      412,
      first.etag,
      {
        error: 'precondition_failed',
        error_description: 'The object has changed since it was read.',
        status: 412,
        current: first.body,
      },
    ])
    expect((await app.events()).map(({ type }) => type).filter(type => type !== 'token.issued')).toEqual([])
  }
})

test('API-28 If-Match takes a list, *, and the tag as proxies that compress change it; it is optional', async () => {
  const path = `/users/${tenant.user_id}`
  const { etag } = await call('GET', path)
  const compressed = (tag: string | null) =>
    ['gzip', 'br', 'zstd', 'deflate'].map(coding => `${tag?.slice(0, -1)}-${coding}"`)
  const outdated = `"${'x'.repeat(43)}"`
  for (const [if_match, status] of [
    [`"x", ${etag}`, 200],
    ['*', 200],
    ...[`W/${etag}`, `W/"x", W/${etag}`, ...compressed(etag)].map(tag => [tag, 200] as const),
    ...[`W/${outdated}`, ...compressed(outdated)].map(tag => [tag, 412] as const),
    ...['', 'W/', `W/${etag?.slice(0, -2)}"`, `${etag?.slice(0, -1)}-"`].map(tag => [tag, 412] as const),
  ] as const)
    expect([if_match, (await call('PUT', path, {}, if_match)).status]).toEqual([if_match, status])
  expect((await call('PUT', path, {})).status).toBe(200)
})

test('API-28 a deletion may have a condition; an object that is gone is 404', async () => {
  const user = await addUser(app, 'alice')
  const path = `/users/${user.id}`
  const { etag } = await call('GET', path)
  await call('PUT', path, { first_name: 'Alicia' })
  expect((await call('DELETE', path, undefined, etag ?? '')).status).toBe(412)
  const now = await call('GET', path)
  expect((await call('DELETE', path, undefined, now.etag ?? '')).status).toBe(204)
  expect((await call('PUT', path, {}, '*')).status).toBe(404)
})

test('API-28 the tag follows the fields that a PUT may change, not the times', async () => {
  const path = `/users/${tenant.user_id}`
  const { etag } = await call('GET', path)
  await app.context.store.write(tx => tx.update(tx.tables.users).set({ updated_at: 1, last_login: 1 }))
  expect((await call('GET', path)).etag).toBe(etag)
})

test('API-28 the condition is judged in the write', async () => {
  const path = `/users/${tenant.user_id}`
  const { etag } = await call('GET', path)
  const [one, other] = await Promise.all(
    ['One', 'Other'].map(first_name => call('PUT', path, { first_name }, etag ?? '')),
  )
  expect([one?.status, other?.status].sort()).toEqual([200, 412])
})

test('API-28 a caller who may not read the object learns nothing of it from a refusal', async () => {
  const refusalBy = async (scopes: string[], path: string) => {
    const token = await callerOf(app, tenant.org_id, scopes)
    const answer = await app.call(`/api/v1/admin${path}`, {
      method: 'DELETE',
      headers: { authorization: `Bearer ${token}`, 'if-match': '"x"' },
    })
    const { error, current } = (await answer.json()) as Json
    return { status: answer.status, error, current, etag: answer.headers.get('etag') }
  }
  const deletions = app.routes.filter(
    ({ method, path }) =>
      method === 'DELETE' &&
      app.routes.some(other => other.method === 'PUT' && other.path === path && other.body),
  )
  expect(deletions.length).toBeGreaterThan(5)
  for (const route of deletions.filter(({ instance_only }) => !instance_only)) {
    const { permission } = route
    const path = pathOf(route, tenant)
    const blind = await refusalBy([permission], path)
    expect([path, blind]).toEqual([
      path,
      { status: 412, error: 'precondition_failed', current: undefined, etag: null },
    ])
    const seeing = await refusalBy([permission, permission.replace(/:.*/, ':read')], path)
    expect([seeing.status, typeof seeing.current]).toEqual([412, 'object'])
  }
})

test('API-28 a PUT of unchanged roles changes nothing, in whichever order a database sorts their names', async () => {
  const roles = ['😀', 'ﬁ']
  for (const name of roles) await create(app, '/roles', { name, permissions: [] })
  const user = await addUser(app, 'dora', { roles })
  const group = await create(app, '/groups', { name: 'Crew', roles })
  const provider = await create(app, '/identity-providers', {
    type: 'oidc',
    alias: 'corp',
    name: 'Corp',
    issuer: 'https://id.corp.example',
    client_id: 'gatehouse',
    default_roles: roles,
  })
  await app.events()
  for (const [path, field] of [
    [`/users/${user.id}`, 'roles'],
    [`/groups/${group.id}`, 'roles'],
    [`/identity-providers/${provider.id}`, 'default_roles'],
  ] as const) {
    const read = await call('GET', path)
    expect([path, read.body[field]]).toEqual([path, roles])
    const put = await call('PUT', path, { [field]: roles.toReversed() }, read.etag ?? '')
    expect([path, put.status, put.etag]).toEqual([path, 200, read.etag])
  }
  expect((await app.events()).map(({ type }) => type).filter(type => type !== 'token.issued')).toEqual([])
})
