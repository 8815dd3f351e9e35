/** Tests that a request fails when its administrator loses the needed rights before the write. */
import { beforeEach, expect, test } from 'bun:test'
import { AsyncLocalStorage } from 'node:async_hooks'
import { captureMail } from '#src/mail/captured.ts'
import type { Store } from '#src/storage/store.ts'
import { type Json, startApp, type TestApp } from '#test/support/app.ts'
import { callerOf, create } from '#test/support/callers.ts'
import { addClient, addUser } from '#test/support/people.ts'
import { addTenant, keyOf, sendTo } from '#test/support/routes.ts'
import { freshStore, newDataDir } from '#test/support/store.ts'
import { claimsOf, grantTokens } from '#test/support/tokens.ts'

let app: TestApp
type Interruption = () => Promise<unknown>
const interruptions = new AsyncLocalStorage<Interruption[]>()
/**
 * Runs `interruption` once, immediately before the first write of `request`. Writes by jobs of the server do
 * not start the interruption.
 */
const interrupted = <T>(interruption: Interruption, request: () => Promise<T>): Promise<T> =>
  interruptions.run([interruption], request)

const held = (store: Store): Store => ({
  ...store,
  write: async body => {
    await interruptions.getStore()?.pop()?.()
    return store.write(body)
  },
})

beforeEach(async () => {
  app = await startApp({ data_dir: newDataDir() }, { mail: captureMail(), store: held(await freshStore()) })
})

const dump = () =>
  app.context.store.read(async q => {
    const { signing_keys: _, ...tables } = q.tables
    return Promise.all(
      Object.values(tables).map(async table => q.select().from(table as typeof tables.users)),
    )
  })

test('H-11 every route that writes checks its caller again inside the write', async () => {
  const tenant = await addTenant(app)
  // `previewLooks` is a POST that writes nothing.
  const writing = app.routes.filter(({ id, method }) => method !== 'GET' && id !== 'previewLooks')
  expect(writing.length).toBeGreaterThan(30)
  for (const route of writing) {
    const token = await callerOf(app, 'org_default', [route.permission, ...(route.also ? [route.also] : [])])
    const { client_id } = claimsOf(token)
    let after: unknown
    const demote = async () => {
      expect((await app.admin('PUT', `/clients/${client_id}`, { scopes: [] })).status).toBe(200)
      after = await dump()
    }
    const { status, body } = await interrupted(demote, () => sendTo(app, route, tenant, token))
    expect([keyOf(route), status, body?.error]).toEqual([keyOf(route), 403, 'forbidden'])
    expect(await dump()).toEqual(after as Json)
  }
})

test('H-11 a caller who lost rights during the request cannot grant them', async () => {
  const client = await create(app, '/clients', {
    client_id: 'shrinking',
    name: 'Shrinking',
    type: 'confidential',
    grant_types: ['client_credentials'],
    scopes: ['roles:create', 'users:read'],
  })
  const token = await app.tokenOf('shrinking', client.client_secret)
  const shrink = () => app.admin('PUT', '/clients/shrinking', { scopes: ['roles:create'] })
  const role = { name: 'readers', permissions: ['users:read'] }
  const { status } = await interrupted(shrink, () => app.admin('POST', '/roles', role, token))
  expect(status).toBe(403)
  expect((await app.admin('POST', '/roles', { ...role, permissions: [] }, token)).status).toBe(201)
})

const dismissals: [string, number, (user: Json, token: string) => Promise<{ status: number }>][] = [
  ['whose role is taken', 403, user => app.admin('PUT', `/users/${user.id}?confirm=leaving`, { roles: [] })],
  ['who is disabled', 401, user => app.admin('PUT', `/users/${user.id}?confirm=leaving`, { enabled: false })],
  ['who is deleted', 401, user => app.admin('DELETE', `/users/${user.id}?confirm=leaving`)],
  [
    'whose session is revoked',
    401,
    (_, token) => app.admin('DELETE', `/sessions/sess_${claimsOf(token).sid}`),
  ],
]

test.each(dismissals)(
  'H-11 a request whose body is still arriving fails for an administrator %s',
  async (_, status, dismiss) => {
    const client = await addClient(app, 'console', { scopes: ['openid', 'admin'] })
    const user = await addUser(app, 'leaving', { roles: ['admin'] })
    const { access_token } = await grantTokens(app, client, user, { scope: 'openid admin' })
    const role = JSON.stringify({ name: 'mine', permissions: ['users:read'] })
    let dismissed = 0
    const body = new ReadableStream(
      {
        // The server reads the body only after it has checked the caller.
        pull: async controller => {
          dismissed = (await dismiss(user, access_token)).status
          await app.events()
          controller.enqueue(new TextEncoder().encode(role))
          controller.close()
        },
      },
      { highWaterMark: 0 },
    )
    const answer = await app.call('/api/v1/admin/roles', {
      method: 'POST',
      body,
      headers: { authorization: `Bearer ${access_token}`, 'content-type': 'application/json' },
    })
    expect([dismissed < 300, answer.status]).toEqual([true, status])
    expect(await app.events()).toEqual([])
  },
)

test('H-11 a client whose organization is deleted during the request creates nothing', async () => {
  const tenant = await addTenant(app)
  const token = await callerOf(app, tenant.org_id, ['roles:create'])
  const end = async () => {
    await app.admin('DELETE', `/organizations/${tenant.org_id}`)
    await app.events()
  }
  const role = { name: 'late', permissions: [] }
  const { status } = await interrupted(end, () => app.admin('POST', '/roles', role, token))
  expect(status).toBe(401)
  expect(await app.events()).toEqual([])
})
