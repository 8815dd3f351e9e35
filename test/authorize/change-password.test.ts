import { describe, expect, test } from 'bun:test'
import { DAY, MINUTE } from '#src/lib/duration.ts'
import { startApp } from '#test/support/app.ts'
import { answerOf, type Browser, formOf, openBrowser } from '#test/support/browser.ts'
import { codeOf, enrolTotp } from '#test/support/factors.ts'
import { addClient, addUser, authorizeUrl, codeRow, logInTo, PASSWORD, signIn } from '#test/support/people.ts'

const app = await startApp()
await addClient(app, 'web')
const NEW = 'Another-horse-8'
let users = 0

/** A user for whom an administrator has set a temporary password. */
const temporary = async () => {
  const user = await addUser(app, `user${++users}`)
  await app.admin('POST', `/users/${user.id}/reset-password`, { password: PASSWORD, temporary: true })
  return user
}

const due = async () => {
  const user = await temporary()
  const browser = openBrowser(app)
  const page = await signIn(browser, await browser.get(authorizeUrl('web')), user.username)
  return { user, browser, page }
}

const choose = { password: NEW, password_repeat: NEW }

test('AUT-08 a temporary password is accepted, and must be replaced before a code is issued', async () => {
  const { user, browser, page } = await due()
  expect(page.heading).toBe('Choose a new password')
  expect(page.url).toStartWith('/oauth/change-password?request=')
  expect(formOf(page).fields).not.toContainKey('current_password')
  // A new authorization request in this browser gets no code until the password is replaced.
  expect((await browser.get(authorizeUrl('web'))).heading).toBe('Choose a new password')
  expect(answerOf(await browser.get(authorizeUrl('web', { prompt: 'none' }))).error).toBe(
    'interaction_required',
  )
  await app.events()

  const done = await browser.submit(page, choose)
  expect((await codeRow(app, answerOf(done).code)).user_id).toBe(user.id)
  expect(await app.events()).toEqual([
    {
      type: 'user.password_changed',
      actor_id: user.id,
      target_id: user.id,
      target_type: 'user',
      organization_id: 'org_default',
      metadata: {},
    },
  ])
  expect(
    (await logInTo(openBrowser(app), 'web', user.username, {}).catch(() => ({ code: undefined }))).code,
  ).toBeUndefined()
  const again = openBrowser(app)
  expect(
    answerOf(await signIn(again, await again.get(authorizeUrl('web')), user.username, NEW)).code,
  ).toBeString()
})

test('every other login of the user ends', async () => {
  const user = await addUser(app, `user${++users}`)
  const elsewhere = openBrowser(app)
  await logInTo(elsewhere, 'web', user.username)
  const rows = await app.context.store.read(async q => q.select().from(q.tables.users))
  expect(rows.some(({ id }) => id === user.id)).toBeTrue()
  await app.context.store.write(async tx => {
    await tx.update(tx.tables.users).set({ password_temporary: true })
  })
  const browser = openBrowser(app)
  const page = await signIn(browser, await browser.get(authorizeUrl('web')), user.username)
  await browser.submit(page, choose)
  expect((await elsewhere.get(authorizeUrl('web'))).heading).toBe('Sign in')
  expect(answerOf(await browser.get(authorizeUrl('web'))).code).toBeString()
})

describe('a new password is refused', () => {
  const refused = async (fields: Record<string, string>, text: string) => {
    const { user, browser, page } = await due()
    const before = await app.context.store.read(async q => q.select().from(q.tables.users))
    await app.events()
    const again = await browser.submit(page, fields)
    expect(again.status).toBe(400)
    expect(again.html).toContain(text)
    expect(again.html).not.toContain(fields.password || 'value="x"')
    expect(await app.context.store.read(async q => q.select().from(q.tables.users))).toEqual(before)
    expect(await app.events()).toEqual([])
    return { user, browser, again }
  }

  test.each([
    ['Short-1', 'breaks a rule'],
    ['no-capital-letter-1', 'breaks a rule'],
    ['Password1!', 'breaks a rule'],
    ['', 'breaks a rule'],
  ])('%j: %s', async (password, text) => {
    await refused({ password, password_repeat: password }, text)
  })

  test('repeated wrongly', async () => {
    await refused({ password: NEW, password_repeat: `${NEW}x` }, 'not the same')
  })

  test('equal to the current one', async () => {
    await refused({ password: PASSWORD, password_repeat: PASSWORD }, 'the password you have now')
  })

  test('and the form can be sent again', async () => {
    const { browser, again } = await refused({ password: NEW, password_repeat: 'x' }, 'not the same')
    expect(answerOf(await browser.submit(again, choose)).code).toBeString()
  })
})

/** A user whose password expires `later` milliseconds after the login. */
const runningOut = async (later: number, meanwhile = async (_: Browser) => {}) => {
  const settings = { session_ttl: '60d', password_policy: { max_age_days: 30 } }
  await app.admin('PUT', '/organizations/org_default', { settings })
  const user = await addUser(app, `user${++users}`)
  app.clock.advance(30 * DAY + 1 - later)
  const browser = openBrowser(app)
  const { code } = await logInTo(browser, 'web', user.username)
  const { auth_time } = await codeRow(app, code)
  await meanwhile(browser)
  app.clock.advance(later)
  const settled = () =>
    app.admin('PUT', '/organizations/org_default', {
      settings: { session_ttl: null, password_policy: null },
    })
  return { user, browser, auth_time, settled }
}

test('AUT-09 single sign-on with an expired password first asks for a new password; the login keeps its auth_time', async () => {
  const { browser, auth_time, settled } = await runningOut(5 * MINUTE)
  const page = await browser.get(authorizeUrl('web'))
  expect(page.heading).toBe('Choose a new password')
  expect(formOf(page).fields).toContainKey('current_password')

  await app.events()
  const wrong = await browser.submit(page, { ...choose, current_password: 'Wrong-horse-7' })
  expect([wrong.status, wrong.location]).toEqual([401, undefined])
  expect(wrong.html).toContain('not your current password')
  expect((await app.events()).map(({ type }) => type)).toEqual(['user.login_failed'])
  expect((await browser.submit(page, choose)).status).toBe(401)

  const { code } = answerOf(await browser.submit(page, { ...choose, current_password: PASSWORD }))
  const row = await codeRow(app, code)
  expect([row.acr, row.amr, row.auth_time]).toEqual(['1', ['pwd'], auth_time])
  expect(answerOf(await browser.get(authorizeUrl('web'))).code).toBeString()
  await settled()
})

test('five minutes after the login, or later on an open page, the user signs in again first', async () => {
  const { user, browser, settled } = await runningOut(4 * MINUTE)
  const open = await browser.get(authorizeUrl('web'))
  expect(open.heading).toBe('Choose a new password')
  app.clock.advance(2 * MINUTE)
  await app.events()
  const late = await browser.follow(await browser.submit(open, { ...choose, current_password: PASSWORD }))
  expect(late.heading).toBe('Sign in')
  expect(await app.events()).toEqual([])
  expect((await browser.get(authorizeUrl('web'))).heading).toBe('Sign in')
  expect(answerOf(await browser.get(authorizeUrl('web', { prompt: 'none' }))).error).toBe(
    'interaction_required',
  )
  const page = await signIn(browser, late, user.username)
  expect([page.heading, formOf(page).fields.current_password]).toEqual(['Choose a new password', undefined])
  const { code } = answerOf(await browser.submit(page, choose))
  expect((await codeRow(app, code)).auth_time).toBe(app.clock.now())
  await settled()
})

test('a password that expires during a two-factor login cannot be replaced with cookie and password', async () => {
  let key = ''
  const { user, browser, settled } = await runningOut(DAY, async fresh => {
    key = (await enrolTotp(app, fresh, await fresh.get(authorizeUrl('web', { acr_values: '2' })))).key
  })
  const due = await signIn(browser, await browser.get(authorizeUrl('web')), user.username)
  expect(due.heading).toBe('Two-step verification')
  const page = await browser.follow(await browser.submit(due, { code: codeOf(app, key) }))
  expect(page.heading).toBe('Choose a new password')
  const row = await codeRow(app, answerOf(await browser.submit(page, choose)).code)
  expect([row.acr, row.auth_time]).toEqual(['2', app.clock.now()])
  await settled()
})

test('a flow started before the change cannot be finished after it', async () => {
  const { browser, page } = await due()
  await browser.submit(page, choose)
  const again = await browser.submit(page, { password: `${NEW}9`, password_repeat: `${NEW}9` })
  expect([again.status, again.heading]).toEqual([400, 'This page has expired'])
})

test('one of fifty changes at once succeeds', async () => {
  const { user, browser, page } = await due()
  await app.events()
  const answers = await Promise.all(Array.from({ length: 50 }, () => browser.submit(page, choose)))
  expect(answers.filter(({ status }) => status === 302)).toHaveLength(1)
  expect(
    (await app.events()).filter(
      ({ type, target_id }) => type === 'user.password_changed' && target_id === user.id,
    ),
  ).toHaveLength(1)
})
