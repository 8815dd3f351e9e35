import { expect, test } from 'bun:test'
import { DEFAULT_ORGANIZATION, type LoginId } from '#src/lib/ids.ts'
import { hashSecret, newSecret } from '#src/lib/secrets.ts'
import { listUserLogins } from '#src/sessions/login-store.ts'
import { startLogin } from '#src/sessions/logins.ts'
import { startApp } from '#test/support/app.ts'
import { openBrowser } from '#test/support/browser.ts'
import { addUser, signIn } from '#test/support/people.ts'

test('a user has at most 500 logins: a further one ends the oldest, and no login of another user', async () => {
  const app = await startApp()
  const { context, clock } = app
  const [user, other] = [await addUser(app, 'alice'), await addUser(app, 'bob')]
  const begin = (user_id: typeof user.id) => {
    clock.advance(1)
    return context.store.write(tx =>
      startLogin(context, tx, {
        ...{ user_id, organization_id: DEFAULT_ORGANIZATION, browser_hash: hashSecret(newSecret()) },
        ...{ acr: '1', amr: ['pwd'], expires_at: clock.now() + 3_600_000 },
        client_info: { ip_address: '192.0.2.1', user_agent: 'test' },
      }),
    )
  }
  const listed = async (user_id: typeof user.id) =>
    (await context.store.read(q => listUserLogins(q, user_id, clock.now()))).map(({ id }) => id)
  const MAX_LOGINS = 500
  const kept = await begin(other.id)
  const begun: LoginId[] = []
  for (let i = 0; i < MAX_LOGINS + 3; i++) begun.push(await begin(user.id))
  expect(await listed(user.id)).toEqual(begun.slice(-MAX_LOGINS).reverse())
  expect(await listed(other.id)).toEqual([kept])

  clock.advance(1)
  const browser = openBrowser(app)
  const account = await browser.follow(await signIn(browser, await browser.get('/account'), 'alice'))
  expect(account.status).toBe(200)
  expect((await listed(user.id)).slice(1)).toEqual(begun.slice(1 - MAX_LOGINS).reverse())
})
