import { expect, test } from 'bun:test'
import { MINUTE } from '#src/lib/duration.ts'
import { iso } from '#src/lib/text.ts'
import { type Json, startApp } from '#test/support/app.ts'
import { addClient, addOrganization, addUser } from '#test/support/people.ts'
import { grantTokens, post, refresh } from '#test/support/tokens.ts'

const app = await startApp()
const acme = await addOrganization(app, 'acme', { settings: { session_ttl: '30m' } })
const bob = await addUser(app, 'bob', { organization_id: acme.id })

const sessionAt = async (client: Json): Promise<string> => {
  const { body } = await app.admin('GET', `/sessions?client_id=${client.client_id}`)
  return body.data[0]?.expires_at
}
const inMinutes = (minutes: number) => iso(app.clock.now() + minutes * MINUTE)

test('O-21 a session that is never refreshed ends at session_ttl too, with its refresh token', async () => {
  const client = await addClient(app, 'web', { organization_id: acme.id })
  const { refresh_token } = await grantTokens(app, client, bob)
  expect(await sessionAt(client)).toBe(inMinutes(30))
  app.clock.advance(30 * MINUTE)
  expect(await refresh(app, client, refresh_token)).toMatchObject({
    status: 400,
    body: { error: 'invalid_grant' },
  })
  expect(await sessionAt(client)).toBeUndefined()
})

test('O-21 a late refresh does not extend the session beyond session_ttl', async () => {
  const client = await addClient(app, 'late', { organization_id: acme.id })
  const { refresh_token } = await grantTokens(app, client, bob)
  const end = inMinutes(30)
  app.clock.advance(29 * MINUTE)
  expect((await refresh(app, client, refresh_token)).status).toBe(200)
  expect(await sessionAt(client)).toBe(end)
})

test('a session without refresh token ends with its access token', async () => {
  const grant_types = ['authorization_code']
  const client = await addClient(app, 'short', {
    organization_id: acme.id,
    grant_types,
    access_token_ttl: 600,
  })
  await grantTokens(app, client, bob)
  expect(await sessionAt(client)).toBe(inMinutes(10))
})

test('an expired refresh token is inactive, swept or not', async () => {
  const client = await addClient(app, 'asked', {
    organization_id: acme.id,
    capabilities: ['token_introspection'],
    refresh_token_ttl: 300,
  })
  const { refresh_token } = await grantTokens(app, client, bob)
  const { client_id, client_secret } = client
  const isActive = async () => {
    const { body } = await post(app, '/oauth/introspect', { client_id, client_secret, token: refresh_token })
    return body.active
  }
  app.clock.advance(5 * MINUTE - 1)
  expect(await isActive()).toBe(true)
  app.clock.advance(1)
  expect(await isActive()).toBe(false)
})
