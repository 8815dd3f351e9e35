/** Provides a valid input for every admin route, and a tenant that has one resource of each kind. */
import { asDocumentClient } from '#src/directory/clients/dynamic.ts'
import { insertDynamicClient } from '#src/directory/clients/dynamic-store.ts'
import { insertFactor } from '#src/directory/users/factors/store.ts'
import { insertWaiting } from '#src/directory/users/waiting-store.ts'
import type { AdminRoute } from '#src/http/guard.ts'
import { DAY } from '#src/lib/duration.ts'
import { newId, type OrganizationId, type RememberedBrowserId, type UserId } from '#src/lib/ids.ts'
import { hashSecret, newSecret } from '#src/lib/secrets.ts'
import { parseRegistration } from '#src/protocol/oauth/dynamic-client.ts'
import { insertRemembered, removeRemembered } from '#src/sessions/remembered-store.ts'
import { type Json, START, type TestApp } from './app.ts'
import { create } from './callers.ts'
import { addUser, PASSWORD } from './people.ts'
import { until } from './until.ts'

/** A tenant's resources, by the names of path parameters. */
export interface Tenant {
  org_id: string
  slug: string
  user_id: string
  role_id: string
  group_id: string
  api_id: string
  invitation_id: string
  registration_id: string
  webhook_id: string
  client_id: string
  provider_id: string
  session_id: string
  event_id: string
  browser_id: string
  factor_id: string
}

interface Input {
  query?: string
  body?: Json
}

let count = 0
export const fresh = () => `new-${++count}`
const google = { name: 'Google', type: 'oidc', preset: 'google', client_id: 'x', client_secret: 'y' }
/** A URL that is never called. */
const webhook = { url: 'https://192.0.2.1/', events: ['*'] }
/** Queries and bodies of the routes that need a query or a body. Each call makes new names. */
export const inputs: Record<string, (tenant: Tenant) => Input> = {
  'POST /users': ({ org_id }) => {
    const username = fresh()
    const person = { email: `${username}@example.com`, first_name: '', last_name: '', password: PASSWORD }
    return { body: { username, ...person, organization_id: org_id } }
  },
  'PUT /users/:user_id': () => ({ body: { first_name: fresh() } }),
  'POST /users/:user_id/reset-password': () => ({ body: { password: PASSWORD } }),
  'POST /organizations': () => ({ body: { name: 'New', slug: fresh() } }),
  'POST /organizations/:org_id/preview': () => ({ body: { display_name: fresh() } }),
  'PUT /organizations/:org_id': () => ({ body: { display_name: fresh() } }),
  'POST /roles': ({ org_id }) => ({ body: { name: fresh(), permissions: [], organization_id: org_id } }),
  'PUT /roles/:role_id': () => ({ body: { description: fresh() } }),
  'POST /groups': ({ org_id }) => ({ body: { name: fresh(), organization_id: org_id } }),
  'PUT /groups/:group_id': () => ({ body: { description: fresh() } }),
  'POST /clients': ({ org_id }) => ({
    body: {
      client_id: fresh(),
      name: 'New',
      type: 'confidential',
      grant_types: [],
      scopes: [],
      organization_id: org_id,
    },
  }),
  'POST /apis': ({ org_id }) => ({
    body: { identifier: `https://${fresh()}.example`, name: 'New', organization_id: org_id },
  }),
  'POST /initial-access-tokens': ({ org_id }) => ({ body: { organization_id: org_id } }),
  'POST /invitations': ({ org_id }) => ({ body: { delivery: 'link', organization_id: org_id } }),
  'PUT /apis/:api_id': () => ({ body: { name: fresh() } }),
  'GET /clients/:client_id/test-login': ({ user_id }) => ({ query: `?user_id=${user_id}` }),
  'PUT /clients/:client_id': () => ({ body: { name: fresh() } }),
  'POST /identity-providers': ({ org_id }) => ({
    body: { ...google, alias: fresh(), organization_id: org_id },
  }),
  'PUT /identity-providers/:provider_id': () => ({ body: { name: fresh() } }),
  'POST /webhooks': ({ org_id }) => ({ body: { ...webhook, name: fresh(), organization_id: org_id } }),
  'PUT /webhooks/:webhook_id': () => ({ body: { name: fresh() } }),
  'POST /webhooks/:webhook_id/rotate-secret': () => ({ body: {} }),
  'POST /webhooks/:webhook_id/replay': () => ({ body: { from: '2026-01-01T00:00:00Z' } }),
  'POST /webhooks/:webhook_id/deliveries': ({ event_id }) => ({ body: { event_id } }),
  'PUT /settings': () => ({ body: { backup_keep: 14 } }),
  'DELETE /sessions': ({ org_id }) => ({ query: `?organization_id=${org_id}` }),
}

export const keyOf = (route: AdminRoute): string => `${route.method} ${route.path}`
export const pathOf = (route: AdminRoute, tenant: Tenant): string =>
  route.path.replace(/:(\w+)/g, (_, name: string) => tenant[name as keyof Tenant])

const addSession = async (app: TestApp, organization_id: string, user_id: string): Promise<string> => {
  const id = newId('sess', START)
  await app.context.store.write(async tx => {
    await tx.insert(tx.tables.sessions).values({
      id,
      user_id,
      client_id: 'some-client',
      organization_id,
      login_id: newId('login', START),
      scope: 'openid',
      ip_address: '127.0.0.1',
      user_agent: 'test',
      started_at: START,
      last_active_at: START,
      expires_at: START + 3_600_000,
      due_at: START + 3_600_000,
    } as Json)
  })
  return id
}

/**
 * Restores the state in which the route succeeds. An earlier change of credentials has deleted the tenant's
 * remembered browser, and an earlier backup may be unfinished.
 */
export const prepareFor = async (
  { path }: AdminRoute,
  { context }: Pick<TestApp, 'context'>,
  { user_id, org_id, browser_id }: Tenant,
): Promise<void> => {
  if (path.endsWith('/:browser_id'))
    await addRememberedTo(
      { context },
      user_id as UserId,
      org_id as OrganizationId,
      browser_id as RememberedBrowserId,
    )
  if (path === '/backups') await until(() => context.backups.size === 0)
}

export const addRememberedTo = async (
  app: Pick<TestApp, 'context'>,
  user_id: UserId,
  organization_id: OrganizationId,
  id = newId('brw', START),
): Promise<string> => {
  await app.context.store.write(async tx => {
    await removeRemembered(tx, user_id, id)
    await insertRemembered(tx, {
      id,
      user_id,
      organization_id,
      browser_hash: hashSecret(newSecret()),
      ip_address: '203.0.113.7',
      user_agent: 'Firefox',
      created_at: START,
      expires_at: START + 30 * DAY,
    })
  })
  return id
}

export const addFactorTo = async (app: TestApp, user_id: UserId, more: Json = {}): Promise<string> => {
  const id = newId('fac', START)
  const row = { id, user_id, type: 'passkey', name: 'Key', transports: [], created_at: START, ...more }
  await app.context.store.write(tx => insertFactor(tx, row as Json))
  return id
}

/** Adds a client that registered itself with a token of the organization. */
export const addDynamicClient = (app: TestApp, organization_id: OrganizationId): Promise<boolean> => {
  const client_id = `dct_${fresh()}`
  const registration = parseRegistration({ redirect_uris: ['https://agent.example/'] }, () => false)
  return app.context.store.write(tx =>
    insertDynamicClient(tx, {
      ...asDocumentClient(client_id, { ...registration, client_name: 'Agent' }, START),
      organization_id,
    }),
  )
}

/** Adds a user who has registered and waits for approval. */
export const addWaiting = async (app: TestApp, organization_id: OrganizationId): Promise<{ id: UserId }> => {
  const { id } = await addUser(app, fresh(), { organization_id, enabled: false })
  const waiting = { user_id: id as UserId, organization_id, created_at: START }
  await app.context.store.write(tx => insertWaiting(tx, waiting))
  return { id: waiting.user_id }
}

/**
 * Creates a tenant with one resource of each kind. The session belongs to another user and another client, so
 * deleting `user_id` or `client_id` does not end the session.
 */
export const addTenant = async (
  app: TestApp,
  organization?: { id: string; slug: string },
): Promise<Tenant> => {
  const slug = organization?.slug ?? fresh()
  const organization_id = organization?.id ?? (await create(app, '/organizations', { name: slug, slug })).id
  const user = await addUser(app, fresh(), { organization_id })
  const other = await addUser(app, fresh(), { organization_id })
  const role = await create(app, '/roles', { name: fresh(), permissions: [], organization_id })
  const group = await create(app, '/groups', { name: fresh(), organization_id })
  const client = await create(app, '/clients', {
    client_id: fresh(),
    name: 'Client',
    type: 'confidential',
    grant_types: [],
    scopes: [],
    organization_id,
  })
  const api = await create(app, '/apis', {
    identifier: `https://${fresh()}.example`,
    name: 'API',
    organization_id,
  })
  const invitation = await create(app, '/invitations', { delivery: 'link', organization_id })
  const waiting = await addWaiting(app, organization_id)
  const provider = await create(app, '/identity-providers', { ...google, alias: fresh(), organization_id })
  const hook = await create(app, '/webhooks', { ...webhook, name: fresh(), organization_id })
  await app.admin('PUT', `/groups/${group.id}/members/${user.id}`)
  await addDynamicClient(app, organization_id)
  const session_id = await addSession(app, organization_id, other.id)
  const { body } = await app.admin('GET', `/events?organization_id=${organization_id}&type=role.created`)
  return {
    org_id: organization_id,
    slug,
    user_id: user.id,
    role_id: role.id,
    group_id: group.id,
    client_id: client.client_id,
    provider_id: provider.id,
    api_id: api.id,
    invitation_id: invitation.id,
    registration_id: waiting.id,
    webhook_id: hook.id,
    session_id,
    event_id: body.data[0].id,
    browser_id: await addRememberedTo(app, user.id, user.organization_id),
    factor_id: await addFactorTo(app, user.id),
  }
}

/** Calls the route with its valid input, for the tenant's own resources. */
export const sendTo = (
  app: TestApp,
  route: AdminRoute,
  tenant: Tenant,
  token: string,
  path = pathOf(route, tenant),
) => {
  const { query = '', body } = inputs[keyOf(route)]?.(tenant) ?? {}
  return app.admin(route.method, path + query, body, token)
}
