import { expect, test } from 'bun:test'
import { openLogger } from '#src/lib/log.ts'
import { type Json, startApp } from '#test/support/app.ts'
import { addClient } from '#test/support/people.ts'
import { basic, post, secretOf } from '#test/support/tokens.ts'

const logged: Json[] = []
const log = openLogger('info', line => void logged.push(JSON.parse(line)))
const app = await startApp({}, { log })
const { client_id, client_secret = '' } = secretOf(
  await addClient(app, 'shop', { grant_types: ['client_credentials'], redirect_uris: [] }),
)
await addClient(app, 'spa', { type: 'public', token_endpoint_auth_method: 'none' })
const form = { grant_type: 'client_credentials' }
const refusals = () => logged.splice(0).filter(({ event }) => event === 'client_refused')

test.each([
  ['wrong_secret', 'client_secret_basic', {}, basic(client_id, 'n0t-the-secret')],
  ['wrong_secret', 'client_secret_post', { client_id, client_secret: 'n0t-the-secret' }, {}],
  ['no_secret', 'none', { client_id }, {}],
  ['unknown_client', 'client_secret_basic', {}, basic('nobody', 'n0t-the-secret')],
  ['wrong_method', 'client_secret_post', { client_id: 'spa', client_secret: 'n0t-the-secret' }, {}],
])('AUT-39 %s by %s', async (reason, method, more, headers) => {
  refusals()
  const answer = await post(app, '/oauth/token', { ...form, ...more }, { headers })
  expect([answer.status, answer.body.error]).toEqual([401, 'invalid_client'])
  const found = refusals()
  expect(found).toMatchObject([{ request_id: answer.body.request_id, reason, method }])
  expect(JSON.stringify(found)).not.toContain('n0t-the-secret')
  expect(await app.events()).not.toContainEqual(expect.objectContaining({ type: 'client.request_refused' }))
})

test('AUT-39 an authenticated client leaves no line; an id of control characters is escaped and cut', async () => {
  refusals()
  const headers = basic(client_id, client_secret)
  expect((await post(app, '/oauth/token', form, { headers })).status).toBe(200)
  expect(refusals()).toEqual([])
  const strange = { ...form, client_id: `a\n\u202e${'x'.repeat(1_000)}` }
  await post(app, '/oauth/token', strange)
  const [line] = refusals()
  expect(line?.client_id).toStartWith('a%0A%E2%80%AEx')
  expect(line?.client_id).toHaveLength(200)
})

test.each(['\\ud800', '\\u0000', '\\ufffd'])(
  'AUT-39 an assertion whose sub has %s is refused',
  async character => {
    const payload = Buffer.from(`{"sub":"a${character}b"}`).toString('base64url')
    const client_assertion = `e30.${payload}.c2ln`
    const client_assertion_type = 'urn:ietf:params:oauth:client-assertion-type:jwt-bearer'
    for (const path of ['/oauth/token', '/oauth/revoke', '/oauth/introspect']) {
      const { status } = await post(app, path, {
        ...form,
        token: 'x',
        client_assertion,
        client_assertion_type,
      })
      expect([path, status]).toEqual([path, path === '/oauth/revoke' ? 200 : 401])
    }
  },
)

test('AUT-39 one network fills no log', async () => {
  for (let i = 0; i < 200; i++) await post(app, '/oauth/token', { ...form, client_id: `nobody${i}` })
  expect(refusals().length).toBeLessThanOrEqual(60)
})
