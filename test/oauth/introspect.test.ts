import { describe, expect, test } from 'bun:test'
import { DAY, SECOND } from '#src/lib/duration.ts'
import { startApp } from '#test/support/app.ts'
import { addClient, addOrganization, addUser } from '#test/support/people.ts'
import { basic, claimsOf, grantTokens, post, refresh, secretOf } from '#test/support/tokens.ts'

const app = await startApp()
const alice = await addUser(app, 'alice')
const client = await addClient(app, 'shop')
const capable = {
  grant_types: ['client_credentials'],
  redirect_uris: [],
  capabilities: ['token_introspection'],
}
const asker = await addClient(app, 'asker', capable)

const ask = (token: string, as = asker) =>
  post(app, '/oauth/introspect', { token }, { headers: basic(as.client_id, as.client_secret) })
const introspected = (about: { target_id: string; target_type: string; active: boolean }) => [
  {
    type: 'token.introspected',
    actor_id: 'asker',
    target_id: about.target_id,
    target_type: about.target_type,
    organization_id: 'org_default',
    metadata: { active: about.active },
  },
]

test('H-47 a client registered for client_secret_post may send its secret in header or body', async () => {
  const byPost = await addClient(app, 'by-post', {
    ...capable,
    token_endpoint_auth_method: 'client_secret_post',
  })
  const token = await app.tokenOf('by-post', byPost.client_secret)
  expect((await ask(token, byPost)).body).toMatchObject({ active: true })
  expect((await post(app, '/oauth/introspect', { token, ...secretOf(byPost) })).body.active).toBe(true)
  expect((await ask(token, { ...byPost, client_secret: 'wrong' })).status).toBe(401)
})

describe('active tokens', () => {
  test('an access token: all of its claims, and the event names its session', async () => {
    const { access_token } = await grantTokens(app, client, alice)
    await app.events()
    const claims = claimsOf(access_token)
    const { status, body, headers } = await ask(access_token)
    expect(status).toBe(200)
    expect(headers.get('cache-control')).toBe('no-store')
    expect(body).toEqual({ active: true, token_type: 'Bearer', username: 'alice', ...claims })
    const target_id = `sess_${claims.sid}`
    expect(await app.events()).toEqual(introspected({ target_id, target_type: 'session', active: true }))
  })

  test('a client’s own token: the event names the client', async () => {
    const token = await app.tokenOf('asker', asker.client_secret)
    await app.events()
    expect((await ask(token)).body).toMatchObject({ active: true, sub: 'asker', client_id: 'asker' })
    expect(await app.events()).toEqual(
      introspected({ target_id: 'asker', target_type: 'client', active: true }),
    )
  })

  test('TOK-04 a live refresh token has its own token_type', async () => {
    const { access_token, refresh_token } = await grantTokens(app, client, alice)
    const { sid, sub } = claimsOf(access_token)
    expect((await ask(refresh_token)).body).toEqual({
      active: true,
      token_type: 'refresh_token',
      iss: 'http://localhost:8080',
      sub,
      sid,
      client_id: 'shop',
      scope: 'openid profile email',
      username: 'alice',
      org_id: 'default',
      exp: (app.clock.now() + 30 * DAY) / SECOND,
    })
  })
})

describe('inactive tokens reveal nothing else', () => {
  test('garbage, a used refresh token, and both kinds once the session is revoked', async () => {
    const tokens = await grantTokens(app, client, alice)
    const { body: next } = await refresh(app, client, tokens.refresh_token)
    await app.events()
    for (const token of ['garbage', 'a.b.c', tokens.refresh_token, tokens.id_token])
      expect((await ask(token)).body).toEqual({ active: false })
    const event = introspected({ target_id: 'asker', target_type: 'client', active: false })
    expect(await app.events()).toEqual([...event, ...event, ...event, ...event])
    await app.admin('DELETE', `/users/${alice.id}/sessions`)
    expect((await ask(next.access_token)).body).toEqual({ active: false })
    expect((await ask(next.refresh_token)).body).toEqual({ active: false })
  })

  test('TOK-05 both kinds while the user is disabled', async () => {
    const tokens = await grantTokens(app, client, alice)
    await app.admin('PUT', `/users/${alice.id}`, { enabled: false })
    expect((await ask(tokens.access_token)).body).toEqual({ active: false })
    expect((await ask(tokens.refresh_token)).body).toEqual({ active: false })
    await app.admin('PUT', `/users/${alice.id}`, { enabled: true })
    expect((await ask(tokens.access_token)).body.active).toBe(true)
  })

  test('TOK-05 H-12 a refresh token that its client can no longer use; its access token stays active', async () => {
    const away = await addOrganization(app, 'away')
    const carol = await addUser(app, 'carol', { organization_id: away.id })
    const theirs = await addClient(app, 'away-asker', { ...capable, organization_id: away.id })
    const wide = await addClient(app, 'wide', { capabilities: ['cross_organization'] })
    const isActive = async (token: string) => (await ask(token, theirs)).body.active
    const { access_token, refresh_token } = await grantTokens(app, wide, carol)
    expect(await isActive(refresh_token)).toBe(true)
    expect(await isActive(access_token)).toBe(true)
    for (const [change, back] of [
      [{ capabilities: [] }, { capabilities: ['cross_organization'] }],
      [{ grant_types: ['authorization_code'] }, { grant_types: wide.grant_types }],
    ]) {
      await app.admin('PUT', '/clients/wide', change)
      expect((await refresh(app, wide, refresh_token)).status).toBe(400)
      expect(await isActive(refresh_token)).toBe(false)
      expect(await isActive(access_token)).toBe(true)
      await app.admin('PUT', '/clients/wide', back)
    }
    expect(await isActive(refresh_token)).toBe(true)
  })

  test('M-01 tokens of another organization, for callers of either', async () => {
    const acme = await addOrganization(app, 'acme')
    const bob = await addUser(app, 'bob', { organization_id: acme.id })
    const acmeClient = await addClient(app, 'acme-app', { organization_id: acme.id })
    const acmeAsker = await addClient(app, 'acme-asker', { ...capable, organization_id: acme.id })
    const theirs = await grantTokens(app, acmeClient, bob)
    const ours = await grantTokens(app, client, alice)
    for (const token of [theirs.access_token, theirs.refresh_token]) {
      expect((await ask(token)).body).toEqual({ active: false })
      expect((await ask(token, acmeAsker)).body.active).toBe(true)
    }
    for (const token of [ours.access_token, ours.refresh_token])
      expect((await ask(token, acmeAsker)).body).toEqual({ active: false })
  })
})

describe('who may introspect', () => {
  test('TOK-06 403 without the capability, 401 without the right credentials, and never for a public client', async () => {
    expect(await ask('x', client)).toMatchObject({ status: 403, body: { error: 'forbidden', status: 403 } })
    const form = { token: 'x' }
    expect((await post(app, '/oauth/introspect', form)).body).toMatchObject({
      error: 'invalid_client',
      status: 401,
    })
    const wrong = await post(app, '/oauth/introspect', { ...form, client_id: 'asker', client_secret: 'x' })
    expect(wrong.body).toMatchObject({ error: 'invalid_client', status: 401 })
    const named = await post(app, '/oauth/introspect', { ...form, client_id: 'asker' })
    expect(named.body).toMatchObject({ error: 'invalid_client', status: 401 })
    const open = { type: 'public', token_endpoint_auth_method: 'none', capabilities: capable.capabilities }
    await addClient(app, 'open', open)
    const inHeader = await post(app, '/oauth/introspect', form, { headers: basic('open', 'x') })
    const inForm = await post(app, '/oauth/introspect', { ...form, client_id: 'open', client_secret: 'x' })
    for (const { body } of [inHeader, inForm])
      expect(body).toMatchObject({ error: 'invalid_client', status: 401 })
  })

  test('a missing token is invalid_request; refusals record nothing', async () => {
    await app.events()
    const answer = await post(app, '/oauth/introspect', secretOf(asker))
    expect(answer).toMatchObject({ status: 400, body: { error: 'invalid_request' } })
    expect(await app.events()).toEqual([])
  })
})
