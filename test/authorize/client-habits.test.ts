/** Tests requests that clients of the Model Context Protocol send according to their source code. */
import { expect, test } from 'bun:test'
import { HOUR, SECOND } from '#src/lib/duration.ts'
import { sweep } from '#src/operations/sweep.ts'
import type { Json } from '#test/support/app.ts'
import { answerOf, openBrowser } from '#test/support/browser.ts'
import { signIn } from '#test/support/people.ts'
import { claimsOf, get, post, redeem, refresh } from '#test/support/tokens.ts'
import { documentWorld, request, TOOLS, WEB } from './document-world.ts'

const { app, configure, grant, logIn, open, publish } = await documentWorld()
await configure({ client_registration: 'open' })

let registered = 0
const register = async (more: Json = {}): Promise<Json> => {
  const body = {
    client_name: `Habit ${++registered}`,
    redirect_uris: [WEB],
    grant_types: ['authorization_code', 'refresh_token'],
    token_endpoint_auth_method: 'none',
    ...more,
  }
  const answer = await app.call('/oauth/register', {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify(body),
  })
  return (await answer.json()) as Json
}

test('MCP-06 a client may ask for all scopes that discovery names, as mcp-remote does, or for none', async () => {
  const { scopes_supported } = (await get(app, '/.well-known/oauth-authorization-server')).body
  const client = await register()
  const all = await grant(client, { scope: scopes_supported.join(' ') })
  expect(all.body.scope).toBe('openid profile email groups')
  for (const scope of ['', undefined])
    expect((await grant(await register(), { scope })).body.scope).toBe('openid')
})

test('MCP-06 prompt=consent and offline_access at each login, as the SDK sends them', async () => {
  const client = await register()
  const more = { scope: 'tools.read offline_access', prompt: 'consent' }
  const { browser, answer } = await logIn(client, more)
  const { body } = await redeem(app, client, answer.code ?? '', { redirect_uri: WEB })
  expect([body.scope, typeof body.refresh_token]).toEqual(['tools.read offline_access', 'string'])
  const again = await browser.follow(await browser.get(request(client, more)))
  expect(again.html).toContain('/oauth/consent')
  expect(answerOf(await browser.submit(again, { decision: 'approve' }, '/oauth/consent')).code).toBeString()
})

test('MCP-06 two processes may refresh with one token at once; after ten seconds it is refused', async () => {
  for (const client of [await register(), publish()]) {
    const { body } = await grant(client)
    const [one, two] = await Promise.all([
      refresh(app, client, body.refresh_token),
      refresh(app, client, body.refresh_token),
    ])
    expect([one.status, two.status]).toEqual([200, 200])
    expect(one.body.refresh_token).toBe(two.body.refresh_token)
    app.clock.advance(11 * SECOND)
    expect((await refresh(app, client, body.refresh_token)).body.error).toBe('invalid_grant')
  }
})

test('MCP-06 step-up asks for the further scope only, and keeps what was granted', async () => {
  const client = await register()
  const { browser } = await logIn(client, { scope: 'openid tools.read' })
  const wider = await browser.follow(await browser.get(request(client, { scope: 'openid email' })))
  expect(wider.html).toContain('/oauth/consent')
  await browser.submit(wider, { decision: 'approve' }, '/oauth/consent')
  const both = answerOf(await browser.get(request(client, { scope: 'openid email tools.read' })))
  const { body } = await redeem(app, client, both.code ?? '', { redirect_uri: WEB })
  expect(body.scope).toBe('openid email tools.read')
})

test('MCP-06 resource is sent with a slash at its end, and with each request', async () => {
  const { body } = await grant(publish(), { resource: `${TOOLS}/` })
  expect(claimsOf(body.access_token).aud).toBe(TOOLS)
  const client = await register()
  const { answer } = await logIn(client)
  const more = { redirect_uri: WEB, resource: `${TOOLS}/` }
  const first = await redeem(app, client, answer.code ?? '', more)
  expect(claimsOf(first.body.access_token).aud).toBe(TOOLS)
  const next = await refresh(app, client, first.body.refresh_token, { resource: TOOLS })
  expect(claimsOf(next.body.access_token).aud).toBe(TOOLS)
})

test('MCP-06 a forgotten client is 401 invalid_client at the token endpoint', async () => {
  const client = await register()
  app.clock.advance(HOUR)
  await sweep(app.context)
  for (const fields of [
    { grant_type: 'refresh_token', refresh_token: 'x' },
    { grant_type: 'authorization_code', code: 'x', redirect_uri: WEB, code_verifier: 'x'.repeat(43) },
  ]) {
    const { status, body } = await post(app, '/oauth/token', { ...fields, client_id: client.client_id })
    expect([status, body.error]).toEqual([401, 'invalid_client'])
  }
})

test('MCP-06 the consent page may redirect to another origin or scheme', async () => {
  const redirect_uri = 'cursor://anysphere.cursor-mcp/oauth/callback'
  const client = await register({ redirect_uris: [redirect_uri] })
  const page = await app.call(request(client, { redirect_uri }), { headers: { accept: 'text/html' } })
  expect(page.headers.get('content-security-policy')).not.toContain('form-action')
  const browser = openBrowser(app)
  const consent = await signIn(browser, await browser.get(request(client, { redirect_uri })), 'alice')
  const answer = await browser.submit(consent, { decision: 'approve' }, '/oauth/consent')
  expect(answer.location).toStartWith(`${redirect_uri}?code=`)
})

test('MCP-06 loopback hosts take any port, whether they are registered with a port or not', async () => {
  const pairs = [
    ['http://localhost/callback', 'http://localhost:3118/callback'],
    ['http://127.0.0.1/callback', 'http://127.0.0.1:3118/callback'],
    ['http://127.0.0.1:33418/', 'http://127.0.0.1:33419/'],
  ] as const
  for (const [registered, redirect_uri] of pairs)
    for (const client of [
      await register({ redirect_uris: [registered] }),
      publish({ redirect_uris: [registered] }),
    ]) {
      const { page } = await open(client, { redirect_uri })
      expect([redirect_uri, page.html.includes('/oauth/consent')]).toEqual([redirect_uri, true])
    }
})
