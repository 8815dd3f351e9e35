/** Tests each adapter of the SDK as the guard of an API, with tokens of a server. */
import { expect, test } from 'bun:test'
import { createVerifier } from '#src/resource-server/index.ts'
import { sources } from '#test/resource-server/sources.ts'
import { requestFor, targets } from '#test/resource-server/targets.ts'
import { BASE, startApp } from '#test/support/app.ts'
import { create } from '#test/support/callers.ts'
import { addClient } from '#test/support/people.ts'
import { bearer, post, secretOf } from '#test/support/tokens.ts'

const ORDERS = 'https://orders.example/'
const FILES = 'https://files.example/'

const app = await startApp()
const service = await addClient(app, 'service', {
  grant_types: ['client_credentials'],
  redirect_uris: [],
  scopes: ['reports:read'],
})
for (const identifier of [ORDERS, FILES])
  await create(app, '/apis', {
    identifier,
    name: identifier,
    scopes: [{ name: 'read' }, { name: 'write' }],
    clients: [{ client_id: 'service', scopes: ['read', 'write'] }],
  })

const tokenFor = async (form: Record<string, string>): Promise<string> => {
  const grant_type = 'client_credentials'
  const { body } = await post(app, '/oauth/token', { grant_type, ...secretOf(service), ...form })
  return body.access_token
}

test.each(targets)('SDK-41 $name accepts a token for its API, and no other', async target => {
  const ask = async (realm: string, token: string): Promise<[number, string | undefined]> => {
    const verifier = createVerifier({
      issuer: BASE,
      resource: 'https://orders.example',
      realm,
      fetch: input => app.call(String(input)),
      now: app.clock.now,
    })
    const { send, close } = await target.mount(sources, { verifier, rules: { scopes: ['read'] } })
    const answer = await send(requestFor(bearer(token)))
    const { code } = await answer.json()
    await close()
    return [answer.status, code]
  }
  const good = await tokenFor({ resource: ORDERS, scope: 'read' })
  expect(await ask('org_default', good)).toEqual([200, undefined])
  expect(await ask('org_other', good)).toEqual([401, 'claim_invalid'])
  expect(await ask('default', await tokenFor({ resource: ORDERS, scope: 'write' }))).toEqual([
    403,
    'insufficient_scope',
  ])
  expect(await ask('default', await tokenFor({ resource: FILES, scope: 'read' }))).toEqual([
    401,
    'claim_invalid',
  ])
  expect(await ask('default', await tokenFor({}))).toEqual([401, 'claim_invalid'])
})
