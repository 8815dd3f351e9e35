/** Tests step-up of users at routes marked `fresh`: RFC 9470. */
import { beforeEach, expect, test } from 'bun:test'
import { MINUTE } from '#src/lib/duration.ts'
import { type Json, startApp, type TestApp } from '#test/support/app.ts'
import { openBrowser } from '#test/support/browser.ts'
import { addClient, addUser, logInTo, REDIRECT, VERIFIER } from '#test/support/people.ts'
import { addTenant, inputs, keyOf, pathOf, type Tenant } from '#test/support/routes.ts'

let app: TestApp
let tenant: Tenant
let client: Json
beforeEach(async () => {
  app = await startApp()
  tenant = await addTenant(app, { id: 'org_default', slug: 'default' })
  client = await addClient(app, 'tool', { scopes: ['openid', 'admin'] })
  await addUser(app, 'root', { roles: ['admin'] })
})

const tokens = async (fields: Record<string, string>): Promise<Json> => {
  const { client_id, client_secret } = client
  const body = new URLSearchParams({ client_id, client_secret, ...fields })
  return (await app.call('/oauth/token', { method: 'POST', body })).json()
}

const logIn = async (): Promise<Json> => {
  const { code = '' } = await logInTo(openBrowser(app), 'tool', 'root', { scope: 'openid admin' })
  return tokens({
    grant_type: 'authorization_code',
    code,
    redirect_uri: REDIRECT,
    code_verifier: VERIFIER,
  })
}

const stepUp = (step_up: 'all' | null) =>
  app.admin('PUT', '/organizations/default', { settings: { step_up } })

const remove = (token: string) => app.admin('DELETE', `/users/${tenant.user_id}`, undefined, token)

/** Routes that give away a secret or access, or that delete something. */
const MARKED = [
  'createClient',
  'createInitialAccessToken',
  'createSignInLink',
  'createWebhook',
  'deleteApi',
  'deleteClient',
  'deleteGroup',
  'deleteIdentityProvider',
  'deleteOrganization',
  'deleteRole',
  'deleteUser',
  'deleteUserFactor',
  'deleteUserFactors',
  'deleteWebhook',
  'regenerateClientSecret',
  'replayWebhook',
  'resetUserPassword',
  'revokeSessions',
  'rotateKeys',
  'rotateWebhookSecret',
  'startBackup',
  'updateWebhook',
]

test('API-29 each marked route refuses an old authentication, and names the age that it takes', async () => {
  await stepUp('all')
  const { access_token } = await logIn()
  app.clock.advance(5 * MINUTE + 1000)
  await app.events()
  const marked = app.routes.filter(route => route.fresh)
  expect(marked.map(({ id }) => id).sort()).toEqual(MARKED)
  for (const route of marked) {
    const { query = '', body } = inputs[keyOf(route)]?.(tenant) ?? {}
    const answer = await app.admin(route.method, pathOf(route, tenant) + query, body, access_token)
    expect([keyOf(route), answer.status, answer.body.error]).toEqual([
      keyOf(route),
      401,
      'insufficient_user_authentication',
    ])
    expect(answer.headers.get('www-authenticate')).toBe(
      'Bearer error="insufficient_user_authentication", error_description="A more recent authentication is required", max_age="300"',
    )
  }
  expect(await app.events()).toEqual([])
  expect((await app.admin('GET', `/users/${tenant.user_id}`, undefined, access_token)).status).toBe(200)
})

test('API-29 five minutes pass; a refreshed token proves nothing, a new login does', async () => {
  await stepUp('all')
  const { access_token, refresh_token } = await logIn()
  app.clock.advance(5 * MINUTE)
  const refreshed = await tokens({ grant_type: 'refresh_token', refresh_token })
  expect((await remove(refreshed.access_token)).status).toBe(401)
  expect((await remove(access_token)).status).toBe(204)
})

test('API-29 without the setting an old token and a client of its own are not asked', async () => {
  const { access_token } = await logIn()
  app.clock.advance(6 * MINUTE)
  expect((await remove(access_token)).status).toBe(204)
  await stepUp('all')
  expect((await app.admin('DELETE', `/groups/${tenant.group_id}`)).status).toBe(204)
})

test('API-29 the OpenAPI document names the age at each marked route', async () => {
  const { paths } = (await (await app.call('/api/v1/openapi.json')).json()) as Json
  const ages = Object.values<Json>(paths)
    .flatMap(methods => Object.values<Json>(methods))
    .flatMap(operation => operation['x-max-authentication-age'] ?? [])
  expect(ages).toEqual(app.routes.flatMap(route => (route.fresh ? [300] : [])))
})

/**
 * DELETE routes without step-up. They revoke a session or an invitation, and delete no user, role or other
 * object.
 */
const WITHDRAWALS = ['DELETE /sessions/{session_id}', 'DELETE /invitations/{invitation_id}']

test('API-29 each route that deletes an object or shows a secret is marked', async () => {
  const document = (await (await app.call('/api/v1/openapi.json')).json()) as Json
  const showsSecret = (operation: Json): boolean => {
    const { $ref = '' } = operation.responses[200]?.content?.['application/json']?.schema ?? {}
    const created = operation.responses[201]?.content?.['application/json']?.schema?.$ref ?? $ref
    const { properties = {} } = document.components.schemas[created.split('/').at(-1)] ?? {}
    return ['client_secret', 'secret', 'token', 'link'].some(name => name in properties)
  }
  const unmarked = Object.entries<Json>(document.paths).flatMap(([path, methods]) =>
    Object.entries<Json>(methods).flatMap(([method, operation]) => {
      const key = `${method.toUpperCase()} ${path.replace('/api/v1/admin', '')}`
      const deletes = /^DELETE \/[a-z-]+\/\{\w+\}$/.test(key) && !WITHDRAWALS.includes(key)
      const isMarked = operation['x-max-authentication-age'] === 300
      return (deletes || showsSecret(operation)) && !isMarked ? [key] : []
    }),
  )
  expect(unmarked).toEqual([])
})

test('API-29 an old authentication gives the events of a webhook to no other receiver', async () => {
  const url = 'https://thief.example/'
  await stepUp('all')
  const { access_token } = await logIn()
  const change = () => app.admin('PUT', `/webhooks/${tenant.webhook_id}`, { url }, access_token)
  app.clock.advance(5 * MINUTE + 1000)
  await app.events()
  expect((await change()).body.error).toBe('insufficient_user_authentication')
  expect((await app.admin('GET', `/webhooks/${tenant.webhook_id}`)).body.url).not.toBe(url)
  expect(await app.events()).toEqual([])
})

test('API-29 an old authentication enables no webhook by a replay', async () => {
  const path = `/webhooks/${tenant.webhook_id}`
  await app.admin('PUT', path, { enabled: false })
  await stepUp('all')
  const { access_token } = await logIn()
  const replay = (token: string) =>
    app.admin('POST', `${path}/replay`, { from: '2026-01-01T00:00:00Z' }, token)
  app.clock.advance(5 * MINUTE + 1000)
  await app.events()
  expect((await replay(access_token)).body.error).toBe('insufficient_user_authentication')
  expect((await app.admin('GET', path)).body.enabled).toBe(false)
  expect(await app.events()).toEqual([])
  expect((await replay((await logIn()).access_token)).body.enabled).toBe(true)
})
