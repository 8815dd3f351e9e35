/** Calls each admin route for the resources of each owner and with each permission. */
import { afterAll, beforeEach, describe, expect, test } from 'bun:test'
import { z } from 'zod'
import type { AdminRoute } from '#src/http/guard.ts'
import { newId, type UserId } from '#src/lib/ids.ts'
import { permissions } from '#src/lib/permission.ts'
import { hashSecret, newSecret } from '#src/lib/secrets.ts'
import { captureMail } from '#src/mail/captured.ts'
import { type Json, noCall, START, startApp, type TestApp } from '#test/support/app.ts'
import { callerOf, create, listAll } from '#test/support/callers.ts'
import {
  addTenant,
  fresh,
  inputs,
  keyOf,
  pathOf,
  prepareFor,
  sendTo,
  type Tenant,
} from '#test/support/routes.ts'
import { hearStatements } from '#test/support/statements.ts'
import { newDataDir } from '#test/support/store.ts'

// Records the text of each statement of this file's databases in `statements`.
afterAll(hearStatements(text => statements.push(text)))

const hasParameters = (route: AdminRoute): boolean => route.path.includes(':')
const isList = (route: AdminRoute): boolean =>
  route.method === 'GET' &&
  route.query instanceof z.ZodObject &&
  'cursor' in route.query.shape &&
  'organization_id' in route.query.shape

let app: TestApp
let acme: Tenant
let beta: Tenant
let home: Tenant
const nobody: Tenant = {
  org_id: newId('org', START),
  slug: 'nowhere',
  user_id: newId('usr', START),
  role_id: newId('role', START),
  group_id: newId('grp', START),
  client_id: 'no-client',
  provider_id: newId('idp', START),
  session_id: newId('sess', START),
  event_id: newId('evt', START),
  browser_id: newId('brw', START),
  factor_id: newId('fac', START),
  api_id: newId('api', START),
  invitation_id: newId('inv', START),
  registration_id: newId('usr', START),
  webhook_id: newId('hook', START),
}

const startWorld = async () => {
  app = await startApp({ data_dir: newDataDir() }, { mail: captureMail(), fetch: noCall })
  acme = await addTenant(app)
  beta = await addTenant(app)
  home = await addTenant(app, { id: 'org_default', slug: 'default' })
}

beforeEach(startWorld)

const send = (route: AdminRoute, tenant: Tenant, token: string, path?: string) =>
  sendTo(app, route, tenant, token, path)

/** Creates the tokens before a matrix runs, because issuing a token records events. */
const tokensFor = async (org_id: string, scopesOf: (route: AdminRoute) => string[]) => {
  const tokens = new Map<string, string>()
  for (const scopes of app.routes.map(scopesOf))
    if (!tokens.has(scopes.join())) tokens.set(scopes.join(), await callerOf(app, org_id, scopes))
  return (route: AdminRoute): string => tokens.get(scopesOf(route).join()) ?? ''
}
const exactly = ({ permission, also }: AdminRoute): string[] => [permission, ...(also ? [also] : [])]
const allBut = ({ permission }: AdminRoute): string[] => permissions.filter(other => other !== permission)
/** Permissions of a caller who lacks only the second permission of a route. */
const allButAlso = ({ permission, also = permission }: AdminRoute): string[] =>
  permissions.filter(other => other !== also)

/** Returns all stored rows except keys, because the first keys are generated after the start. */
const dump = () =>
  app.context.store.read(async q => {
    const { signing_keys: _, ...tables } = q.tables
    const rows: Record<string, unknown> = {}
    for (const [name, table] of Object.entries(tables)) rows[name] = await q.select().from(table)
    return rows
  })

/** Returns the answer without the parts that differ between calls. */
const seen = ({ status, body }: { status: number; body: Json }) => ({
  status,
  ...body,
  request_id: undefined,
})

/** Sorts the routes. Deletions run last, and dependent objects are deleted first. */
const inOrder = (routes: AdminRoute[]): AdminRoute[] => {
  const verbs = ['GET', 'POST', 'PUT', 'DELETE']
  const rank = ({ method, path }: AdminRoute) =>
    verbs.indexOf(method) * 10 -
    (method === 'DELETE' ? path.split('/').length : 0) +
    (/^.org/.test(path) ? 9 : 0)
  return routes.toSorted((a, b) => rank(a) - rank(b))
}

let statements: string[] = []

/** Returns the statements that run during `work`. */
const statementsOf = async (work: () => Promise<unknown>): Promise<string[]> => {
  statements = []
  await work()
  return statements
}

describe('the route table', () => {
  test('M-02 every route has the permission of its resource and verb, and every permission guards a route', () => {
    const odd: Record<string, string> = {
      'GET /keys': 'settings:read',
      'POST /keys/rotate': 'settings:update',
      'GET /backups': 'settings:read',
      'POST /backups': 'settings:update',
      'GET /health': 'settings:read',
      'GET /users/:user_id/applications': 'sessions:read',
      'GET /statistics': 'events:read',
      'GET /events/stream': 'events:read',
      'POST /organizations/:org_id/preview': 'organizations:update',
      'GET /me': 'profile:read',
      'POST /users/:user_id/reset-password': 'users:update',
      'POST /users/:user_id/send-password-reset': 'users:update',
      'POST /users/:user_id/send-verification': 'users:update',
      'POST /users/:user_id/sign-in-link': 'users:update',
      'GET /users/:user_id/remembered-browsers': 'users:read',
      'DELETE /users/:user_id/remembered-browsers': 'users:update',
      'DELETE /users/:user_id/remembered-browsers/:browser_id': 'users:update',
      'DELETE /users/:user_id/factors': 'users:update',
      'DELETE /users/:user_id/factors/:factor_id': 'users:update',
      'GET /users/:user_id/terms': 'users:read',
      'DELETE /users/:user_id/picture': 'users:update',
      'DELETE /users/:user_id/sessions': 'sessions:revoke',
      'DELETE /sessions': 'sessions:revoke',
      'DELETE /sessions/:session_id': 'sessions:revoke',
      'POST /clients/:client_id/secret': 'clients:update',
      'GET /identity-providers/:provider_id/connection': 'identity_providers:update',
      'POST /webhooks/:webhook_id/rotate-secret': 'webhooks:update',
      'POST /webhooks/:webhook_id/replay': 'webhooks:update',
      'POST /webhooks/:webhook_id/deliveries': 'webhooks:update',
      'DELETE /groups/:group_id/members/:user_id': 'groups:update',
      'POST /initial-access-tokens': 'clients:create',
      'GET /dynamic-clients': 'clients:read',
      'POST /invitations': 'users:create',
      'GET /invitations': 'users:read',
      'GET /invitations/:invitation_id': 'users:read',
      'POST /invitations/:invitation_id/resend': 'users:create',
      'DELETE /invitations/:invitation_id': 'users:delete',
      'GET /registrations': 'users:read',
      'POST /registrations/:registration_id/approve': 'users:update',
    }
    const verbs = { GET: 'read', POST: 'create', PUT: 'update', DELETE: 'delete' }
    for (const route of app.routes) {
      const resource = route.path.split('/')[1]?.replace('-', '_')
      const expected = odd[keyOf(route)] ?? `${resource}:${verbs[route.method]}`
      expect(`${keyOf(route)} ${route.permission}`).toBe(`${keyOf(route)} ${expected}`)
    }
    const guarding = new Set<string>(app.routes.map(route => route.permission))
    const elsewhere = /^(profile|settings):/
    expect(
      permissions.filter(permission => !guarding.has(permission) && !elsewhere.test(permission)),
    ).toEqual([])
  })

  test('every route that takes a body has an input here, and each input has a route', () => {
    const needed = app.routes.filter(route => route.body).map(keyOf)
    expect(needed.filter(key => !inputs[key])).toEqual([])
    const known = new Set(app.routes.map(keyOf))
    expect(Object.keys(inputs).filter(key => !known.has(key))).toEqual([])
  })

  test('M-02 without a token, every route answers 401 whatever the input', async () => {
    const before = await dump()
    for (const route of app.routes)
      for (const authorization of [undefined, 'Bearer x', 'Basic eDp5']) {
        const answer = await app.call(`/api/v1/admin${pathOf(route, acme)}?nonsense=1`, {
          method: route.method,
          ...(route.method !== 'GET' && { body: '{"broken' }),
          headers: authorization ? { authorization } : {},
        })
        expect([keyOf(route), answer.status]).toEqual([keyOf(route), 401])
      }
    expect(await dump()).toEqual(before)
  })

  test('M-02 holding every other permission opens no route', async () => {
    const tokens = [
      await tokensFor('org_default', allBut),
      await tokensFor(acme.org_id, allBut),
      await tokensFor('org_default', allButAlso),
    ]
    const before = await dump()
    for (const tokenOf of tokens)
      for (const route of app.routes) {
        const { status, body } = await send(route, acme, tokenOf(route))
        expect([keyOf(route), status, body.error]).toEqual([keyOf(route), 403, 'forbidden'])
      }
    expect(await dump()).toEqual(before)
  })

  test('M-02 a token without the scope gets insufficient_scope, though its client has the permission', async () => {
    const client = {
      name: 'Narrow',
      type: 'confidential',
      grant_types: ['client_credentials'],
      scopes: ['openid', 'admin'],
    }
    const { client_id, client_secret } = await create(app, '/clients', { ...client, client_id: fresh() })
    const token = await app.tokenOf(client_id, client_secret, 'openid')
    for (const route of app.routes) {
      const { status, body, headers } = await send(route, acme, token)
      expect([keyOf(route), status, body.error]).toEqual([keyOf(route), 403, 'insufficient_scope'])
      expect(headers.get('www-authenticate')).toContain(`scope="${route.permission}"`)
    }
  })
})

describe('its own permission opens each route', () => {
  test('API-19 to callers of the tenant, for their own data', async () => {
    const tokenOf = await tokensFor(acme.org_id, exactly)
    for (const route of inOrder(app.routes)) {
      await prepareFor(route, app, acme)
      const { status, body } = await send(route, acme, tokenOf(route))
      const expected = route.instance_only ? 403 : route.status
      expect([keyOf(route), status, status < 400 ? '' : body.error]).toEqual([
        keyOf(route),
        expected,
        route.instance_only ? 'forbidden' : '',
      ])
    }
  })

  test('API-18 to callers of the default organization, for all data', async () => {
    const tokenOf = await tokensFor('org_default', exactly)
    for (const tenant of [home, acme])
      for (const route of inOrder(app.routes)) {
        if (keyOf(route) === 'DELETE /organizations/:org_id' && tenant === home) continue
        await prepareFor(route, app, tenant)
        const { status } = await send(route, tenant, tokenOf(route))
        expect([keyOf(route), status]).toEqual([keyOf(route), route.status])
      }
  })
})

describe('the data of another tenant', () => {
  test('M-01 is 404 by id or slug, with the same answer and the same statements as for an unknown id', async () => {
    const tokenOf = await tokensFor(acme.org_id, exactly)
    const root = await callerOf(app, acme.org_id, ['admin'])
    const bySlug = (tenant: Tenant): Tenant => ({ ...tenant, org_id: tenant.slug })
    const before = await dump()
    for (const route of app.routes.filter(hasParameters))
      for (const token of [tokenOf(route), root])
        for (const name of [(tenant: Tenant) => tenant, bySlug])
          for (const owner of [beta, home]) {
            // The first request caches the caller, so that the next two requests run the same statements.
            let foreign: Json = await send(route, nobody, token)
            let unknown: Json
            const asked = await statementsOf(async () => {
              foreign = await send(route, owner, token, pathOf(route, name(owner)))
            })
            const askedUnknown = await statementsOf(async () => {
              unknown = await send(route, nobody, token, pathOf(route, name(nobody)))
            })
            const status = route.instance_only ? 403 : 404
            expect([keyOf(route), foreign.status]).toEqual([keyOf(route), status])
            expect(seen(foreign)).toEqual(seen(unknown))
            expect(asked.length > 0).toBe(!route.instance_only)
            expect(asked).toEqual(askedUnknown)
          }
    expect(await dump()).toEqual(before)
  })

  test('M-06 cannot be added to: its organization is as unknown in a body as one that does not exist', async () => {
    const root = await callerOf(app, acme.org_id, ['admin'])
    const creations = app.routes.filter(route => route.method === 'POST' && !hasParameters(route))
    expect(creations.length).toBeGreaterThan(4)
    const before = await dump()
    for (const route of creations)
      for (const owner of [beta, home]) {
        const foreign = await send(route, owner, root)
        expect([keyOf(route), foreign.status]).toEqual([keyOf(route), route.instance_only ? 403 : 422])
        expect(seen(foreign)).toEqual(seen(await send(route, nobody, root)))
      }
    expect(await dump()).toEqual(before)
  })

  test('M-06 is untouched by a bulk revocation', async () => {
    const token = await callerOf(app, acme.org_id, ['sessions:revoke'])
    for (const { user_id } of [beta, home])
      await app.context.store.write(tx =>
        tx.insert(tx.tables.email_codes).values({
          user_id: user_id as UserId,
          code_hash: '',
          request_hash: hashSecret(newSecret()),
          tries: 0,
          expires_at: START + 60_000,
        }),
      )
    const users = await app.context.store.read(async q => q.select().from(q.tables.users))
    const before = await dump()
    expect([before.remembered_browsers, before.email_codes]).toMatchObject([{ length: 3 }, { length: 2 }])
    for (const owner of [beta, home]) {
      const own = `organization_id=${acme.org_id}`
      const filters = [
        `organization_id=${owner.org_id}`,
        `client_id=${owner.client_id}`,
        `client_id=${owner.client_id}&${own}`,
        ...users
          .filter(user => user.organization_id === owner.org_id)
          .flatMap(({ id }) => [`user_id=${id}`, `user_id=${id}&${own}`]),
      ]
      for (const filter of filters)
        expect(await app.admin('DELETE', `/sessions?${filter}`, undefined, token)).toMatchObject({
          status: 200,
          body: { revoked_count: 0 },
        })
    }
    expect(await dump()).toEqual(before)
  })

  test('M-11 appears in no list, count, filter or cursor', async () => {
    const root = await callerOf(app, acme.org_id, ['admin'])
    const lists = app.routes.filter(isList)
    expect(lists.map(route => route.path).sort()).toEqual([
      '/apis',
      '/clients',
      '/dynamic-clients',
      '/events',
      '/groups',
      '/identity-providers',
      '/invitations',
      '/registrations',
      '/roles',
      '/sessions',
      '/users',
      '/webhooks',
    ])
    for (const { path } of lists) {
      const rows = await listAll(app, path, root)
      expect([path, [...new Set(rows.map(row => row.organization_id))]]).toEqual([path, [acme.org_id]])
      const { body } = await app.admin('GET', path, undefined, root)
      expect([path, body.pagination.total]).toEqual([path, rows.length])
      const own = await app.admin('GET', `${path}?organization_id=${acme.org_id}`, undefined, root)
      expect([path, own.body.pagination.total]).toEqual([path, rows.length])
      for (const owner of [beta, home]) {
        const foreign = await app.admin('GET', `${path}?organization_id=${owner.org_id}`, undefined, root)
        expect(foreign.body).toEqual({ data: [], pagination: { total: 0, limit: 20, has_more: false } })
      }
      const { next_cursor } = (await app.admin('GET', `${path}?limit=1`)).body.pagination
      const stolen = await app.admin('GET', `${path}?limit=1&cursor=${next_cursor}`, undefined, root)
      expect([path, stolen.status]).toEqual([path, 400])
    }
    const { body } = await app.admin('GET', `/organizations/${acme.org_id}`, undefined, root)
    expect(body.id).toBe(acme.org_id)
    const listed = await listAll(app, '/organizations')
    for (const tenant of [acme, beta, home])
      expect(listed.find(organization => organization.id === tenant.org_id)).toMatchObject({ user_count: 3 })
  })

  test('M-12 gives no role: a role name of another tenant is as unknown as a made-up one', async () => {
    const root = await callerOf(app, acme.org_id, ['admin'])
    const { name } = (await app.admin('GET', `/roles/${beta.role_id}`)).body
    const before = await dump()
    const attempts: [string, string, Json][] = [
      ['PUT', `/users/${acme.user_id}`, {}],
      ['PUT', `/groups/${acme.group_id}`, {}],
      ['POST', '/groups', { name: 'Staff' }],
      ['POST', '/users', inputs['POST /users']?.(acme).body],
    ]
    for (const [method, path, body] of attempts) {
      const refusal = async (role: string) => {
        const { status, body: answer } = await app.admin(
          method,
          path,
          { ...body, roles: ['user', role] },
          root,
        )
        expect([path, status]).toEqual([path, 422])
        return JSON.stringify(answer.details).replaceAll(role, '…')
      }
      expect(await refusal(name)).toBe(await refusal('nobody-has-it'))
    }
    for (const method of ['PUT', 'DELETE'])
      for (const owner of [beta, home]) {
        const path = `/groups/${acme.group_id}/members/${owner.user_id}`
        expect((await app.admin(method, path, undefined, root)).status).toBe(404)
      }
    expect(await dump()).toEqual(before)
  })
})
