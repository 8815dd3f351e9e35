import { expect, test } from 'bun:test'
import { DAY } from '#src/lib/duration.ts'
import { hashSecret, newSecret } from '#src/lib/secrets.ts'
import { startLogin } from '#src/sessions/logins.ts'
import { startApp } from '#test/support/app.ts'
import { answerOf, openBrowser } from '#test/support/browser.ts'
import { addClient, addOrganization, addUser, authorizeUrl } from '#test/support/people.ts'

const app = await startApp()
const acme = await addOrganization(app, 'acme', { settings: { password_policy: { max_age_days: 30 } } })
const user = await addUser(app, 'alice', { organization_id: acme.id })
await addClient(app, 'shop', { organization_id: acme.id })

/** Returns the response to an authorization request in a browser whose login has this `amr`. */
const after = async (amr: string[]) => {
  const cookie = newSecret()
  await app.context.store.write(tx =>
    startLogin(app.context, tx, {
      browser_hash: hashSecret(cookie),
      user_id: user.id,
      organization_id: acme.id,
      acr: '1',
      amr,
      client_info: { ip_address: '192.0.2.10', user_agent: 'A browser' },
      expires_at: app.context.clock.now() + DAY,
    }),
  )
  const browser = openBrowser(app)
  browser.cookies.set('gatehouse_login_8080', cookie)
  return browser.get(authorizeUrl('shop'))
}

test('an expired password must be changed by users who signed in with it, not through a provider', async () => {
  expect(answerOf(await after(['pwd'])).code).toBeString()
  app.clock.advance(30 * DAY + 1)
  expect((await after(['pwd'])).heading).toBe('Choose a new password')
  expect(answerOf(await after(['fed'])).code).toBeString()
})
