import { beforeEach, expect, test } from 'bun:test'
import { grantConsent } from '#src/authorize/consent-store.ts'
import { HOUR, MINUTE } from '#src/lib/duration.ts'
import { type Json, START, startApp, type TestApp } from '#test/support/app.ts'
import { callerOf } from '#test/support/callers.ts'
import { addClient, addOrganization, addUser } from '#test/support/people.ts'
import { grantTokens } from '#test/support/tokens.ts'

let app: TestApp
let alice: Json
beforeEach(async () => {
  app = await startApp()
  alice = await addUser(app, 'alice')
})

const applications = () => app.admin('GET', `/users/${alice.id}/applications`)

test('USR-29 administrators see the clients to which a user consented or at which the user has sessions, and no others', async () => {
  expect(await applications()).toMatchObject({ status: 200, body: { data: [] } })
  const shop = await addClient(app, 'shop', { name: 'Shop' })
  const wiki = await addClient(app, 'wiki', { name: 'Wiki' })
  await grantTokens(app, wiki, await addUser(app, 'bob'))
  const grant = {
    user_id: alice.id,
    client_id: 'shop',
    organization_id: 'org_default',
    scopes: ['openid'],
  } as const
  await app.context.store.write(tx => grantConsent(tx, grant, START))
  await grantTokens(app, shop, alice)
  app.clock.advance(HOUR)
  for (const _ of [1, 2]) {
    app.clock.advance(MINUTE)
    await grantTokens(app, wiki, alice)
  }
  const at = (ms: number) => new Date(START + ms).toISOString()
  expect((await applications()).body.data).toEqual([
    {
      client_id: 'shop',
      name: 'Shop',
      scopes: ['openid'],
      granted_at: at(0),
      sessions: 1,
      last_active_at: at(0),
    },
    {
      client_id: 'wiki',
      name: 'Wiki',
      scopes: [],
      granted_at: null,
      sessions: 2,
      last_active_at: at(HOUR + 2 * MINUTE),
    },
  ])
  await app.admin('DELETE', `/users/${alice.id}/sessions`)
  expect((await applications()).body.data).toMatchObject([
    { client_id: 'shop', sessions: 0, last_active_at: null },
  ])
})

test('a foreign user does not exist', async () => {
  const acme = await addOrganization(app, 'acme')
  const token = await callerOf(app, acme.id, ['sessions:read'])
  expect((await app.admin('GET', `/users/${alice.id}/applications`, undefined, token)).status).toBe(404)
})
