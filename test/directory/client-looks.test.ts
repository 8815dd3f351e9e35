import { expect, test } from 'bun:test'
import { startApp } from '#test/support/app.ts'
import { openBrowser } from '#test/support/browser.ts'
import { addClient, addUser, authorizeUrl, signIn } from '#test/support/people.ts'
import { isPostgres } from '#test/support/store.ts'
import { turnsOf } from '#test/support/turns.ts'

const CALLBACK = 'https://agent.example/callback'
/** Number of registered clients. Comparing one name with the names of all these clients takes about 30 ms. */
const MANY = 3_000

const app = await startApp()
await app.admin('PUT', '/organizations/default', { settings: { client_registration: 'open' } })
await addUser(app, 'alice')
await addClient(app, 'shop', { name: 'Shop' })

const consentOf = async (client_name: string) => {
  const answer = await app.call('/oauth/register', {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ client_name, redirect_uris: [CALLBACK], token_endpoint_auth_method: 'none' }),
  })
  const { client_id } = (await answer.json()) as { client_id: string }
  const browser = openBrowser(app)
  const url = authorizeUrl(client_id, { redirect_uri: CALLBACK, scope: 'openid' })
  const page = await signIn(browser, await browser.get(url), 'alice')
  return { page, again: () => browser.get(page.location ?? url) }
}

test('DCR-06 other requests run while the name of a client is compared with those of many others', async () => {
  await app.context.store.write(async tx => {
    const { clients } = tx.tables
    const [shop] = await tx.select().from(clients)
    for (let i = 0; shop && i < MANY; i += 100)
      await tx.insert(clients).values(
        Array.from({ length: 100 }, (_, j) => ({
          ...shop,
          client_id: `app${i + j}`,
          name: `Application of the department ${i + j}`,
        })),
      )
    tx.changed('clients')
  })
  const { page, again } = await consentOf('Agent')
  expect(page.html).toContain('Agent')
  const known = (await turnsOf(again)).turns
  await app.admin('PUT', '/clients/shop', { name: 'Shöp' })
  const anew = await turnsOf(again)
  expect(anew.result.html).toContain('Agent')
  // On PostgreSQL the event loop makes thousands of turns while it waits for the database.
  if (!isPostgres) expect(anew.turns - known).toBeGreaterThan(5)
  for (const name of ['App1ication of the department 2999', 'SHOP'])
    expect((await consentOf(name)).page.html).not.toContain(name)
})

test('DCR-06 symbols neither make a name nor hide that it is the name of another client', async () => {
  for (const name of ['✓', '★ Shop', 'Shop®']) expect((await consentOf(name)).page.html).not.toContain(name)
  expect((await consentOf('★ Agent')).page.html).toContain('★ Agent')
})
