import { describe, expect, test } from 'bun:test'
import { randomBytes } from 'node:crypto'
import { eq } from 'drizzle-orm'
import { HOUR, MINUTE, SECOND } from '#src/lib/duration.ts'
import { newId } from '#src/lib/ids.ts'
import { startApp } from '#test/support/app.ts'
import { newPasskey } from '#test/support/authenticator.ts'
import { answerOf, type Browser, openBrowser } from '#test/support/browser.ts'
import {
  codeOf,
  enrolPasskey,
  enrolTotp,
  keyOf,
  linkWith,
  openEnrolment,
  recoveryCodesOf,
} from '#test/support/factors.ts'
import {
  addClient,
  addOrganization,
  addUser,
  authorizeUrl,
  codeRow,
  logInTo,
  PASSWORD,
  signIn,
} from '#test/support/people.ts'

const app = await startApp()
await addClient(app, 'web')
let users = 0
const newUser = (more = {}) => addUser(app, `user${++users}`, more)

const factorsOf = async ({ id }: { id: string }) =>
  (await app.context.store.read(async q => q.select().from(q.tables.factors))).filter(
    ({ user_id }) => user_id === id,
  )

/** Returns another browser that has the login cookie of `from`. */
const steal = (from: Browser): Browser => {
  const thief = openBrowser(app, { ip: '203.0.113.9' })
  for (const [name, value] of from.cookies) if (name.includes('login')) thief.cookies.set(name, value)
  return thief
}

test.each([
  [1_023, 200, 1],
  [1_024, 400, 0],
  [3_000, 400, 0],
])('a passkey whose id has %d bytes gets %d', async (length, status, added) => {
  const user = await newUser()
  const browser = openBrowser(app)
  const passkey = newPasskey(undefined, undefined, randomBytes(length))
  const { page } = await enrolPasskey(browser, await openEnrolment(browser, user.username), passkey)
  expect(page.status).toBe(status)
  expect(await factorsOf(user)).toHaveLength(added)
})

describe('a login adds no factor without fresh authentication', () => {
  test.each(['2', 'phr'])('when a client asks for acr_values=%s', async acr_values => {
    const user = await newUser()
    const owner = openBrowser(app)
    await logInTo(owner, 'web', user.username)
    app.clock.advance(20 * HOUR)
    const asked = await steal(owner).get(authorizeUrl('web', { acr_values }))
    expect(asked.heading).toBe('Sign in')
    expect(await factorsOf(user)).toEqual([])
    // The owner can enrol the factor, because the owner signs in and enrols in one browser.
    const choice = await signIn(owner, await owner.get(authorizeUrl('web', { acr_values })), user.username)
    const { page } = await enrolPasskey(owner, choice)
    expect(answerOf(await owner.submit(page, {}, '/oauth/enrol')).code).toBeString()
  })

  test('when the user has a factor and a client asks for another', async () => {
    const user = await newUser()
    const owner = openBrowser(app)
    const { key } = await enrolTotp(app, owner, await openEnrolment(owner, user.username))
    app.clock.advance(20 * HOUR)
    const thief = steal(owner)
    const asked = await thief.get(authorizeUrl('web', { acr_values: 'phr' }))
    expect(asked.heading).toBe('Sign in')
    const step = await signIn(thief, asked, user.username)
    expect(step.heading).toBe('Two-step verification')
    const code = { code: codeOf(app, key) }
    const choice = await thief.follow(await thief.submit(step, code, '/oauth/second-factor'))
    expect(choice.heading).toBe('Add a passkey')
  })

  test('when the organization has started to require a factor', async () => {
    const { id } = await addOrganization(app, 'late')
    const user = await newUser({ organization_id: id })
    const owner = openBrowser(app)
    await signIn(owner, await owner.get('/account?organization=late'), user.username)
    app.clock.advance(20 * HOUR)
    await app.admin('PUT', `/organizations/${id}`, { settings: { mfa_required: true } })
    expect((await steal(owner).get('/account')).heading).toBe('Sign in')
    const choice = await signIn(owner, await owner.get('/account'), user.username)
    expect(choice.heading).toBe('Protect your account')
    await enrolTotp(app, owner, choice)
    expect((await factorsOf(user)).map(({ type }) => type)).toEqual(['totp'])
  })

  test('even with a form that was opened in time', async () => {
    const user = await newUser()
    const browser = openBrowser(app)
    const page = await browser.get(linkWith(await openEnrolment(browser, user.username), 'kind=totp'))
    app.clock.advance(29 * MINUTE)
    await app.events()
    const asked = await browser.follow(
      await browser.submit(page, { code: codeOf(app, keyOf(page)) }, '/oauth/enrol'),
    )
    expect(asked.heading).toBe('Sign in')
    expect([await factorsOf(user), await app.events()]).toEqual([[], []])
    // The key that the user has already added to the app stays valid.
    const choice = await signIn(browser, asked, user.username)
    const again = await browser.get(linkWith(choice, 'kind=totp'))
    expect(keyOf(again)).toBe(keyOf(page))
    const { page: codes } = await enrolTotp(app, browser, again)
    expect(recoveryCodesOf(codes)).toHaveLength(10)
  })
})

test('a user who signed in within the flow can still add the factor 29 minutes later', async () => {
  const user = await newUser()
  const browser = openBrowser(app)
  const login = await browser.get(authorizeUrl('web', { acr_values: '2' }))
  const page = await browser.get(linkWith(await signIn(browser, login, user.username), 'kind=totp'))
  app.clock.advance(29 * MINUTE)
  const { page: codes } = await enrolTotp(app, browser, page)
  expect(recoveryCodesOf(codes)).toHaveLength(10)
})

describe('a user who may not change their profile', () => {
  const reader = async (more = {}) => {
    await app.admin('POST', '/roles', { name: 'reader', permissions: ['profile:read'], ...more })
    return newUser({ roles: ['reader'], ...more })
  }

  test('adds no factor when only a client asks for it', async () => {
    const user = await reader()
    const browser = openBrowser(app)
    await signIn(browser, await browser.get('/account'), user.username)
    expect((await browser.get('/account/security/add')).status).toBe(403)
    for (const more of [{}, { prompt: 'none' }])
      expect(answerOf(await browser.get(authorizeUrl('web', { acr_values: 'phr', ...more })))).toEqual({
        error: 'unmet_authentication_requirements',
        error_description: 'The user cannot authenticate as strongly as the request requires.',
        iss: app.context.config.url,
        state: 'xyz',
      })
    const { code } = answerOf(await browser.get(authorizeUrl('web', { acr_values: 'phr 1' })))
    expect((await codeRow(app, code)).acr).toBe('1')
    expect(await factorsOf(user)).toEqual([])
  })

  test('adds the first factor when the organization requires it', async () => {
    const { id } = await addOrganization(app, 'firm', { settings: { mfa_required: true } })
    const user = await reader({ organization_id: id })
    const browser = openBrowser(app)
    const choice = await signIn(browser, await browser.get('/account?organization=firm'), user.username)
    await enrolTotp(app, browser, choice)
    expect(await factorsOf(user)).toHaveLength(1)
  })
})

describe('a temporary password', () => {
  const temporary = 'Temporary-9-word'
  const choose = { password: 'Another-horse-8', password_repeat: 'Another-horse-8' }

  test('is replaced before a factor is added; both take effect when the login begins', async () => {
    const user = await newUser()
    await app.admin('POST', `/users/${user.id}/reset-password`, { password: temporary, temporary: true })
    const browser = openBrowser(app)
    const login = await browser.get(authorizeUrl('web', { acr_values: '2' }))
    const change = await signIn(browser, login, user.username, temporary)
    expect(change.heading).toBe('Choose a new password')
    await app.events()
    const choice = await browser.follow(await browser.submit(change, choose))
    expect([choice.heading, await app.events()]).toEqual(['Protect your account', []])
    const { page } = await enrolTotp(app, browser, choice)
    expect((await app.events()).map(({ type }) => type)).toEqual([
      'user.mfa_enabled',
      'user.password_changed',
    ])
    const { code } = answerOf(await browser.submit(page, {}, '/oauth/enrol'))
    expect((await codeRow(app, code)).acr).toBe('2')
  })

  test('must be changed first where the organization requires a factor', async () => {
    const { id } = await addOrganization(app, 'both', { settings: { mfa_required: true } })
    const user = await newUser({ organization_id: id })
    await app.admin('POST', `/users/${user.id}/reset-password`, { password: temporary, temporary: true })
    const browser = openBrowser(app)
    const change = await signIn(
      browser,
      await browser.get('/account?organization=both'),
      user.username,
      temporary,
    )
    expect(change.heading).toBe('Choose a new password')
    const choice = await browser.follow(await browser.submit(change, choose))
    const { page } = await enrolTotp(app, browser, choice)
    const account = await browser.follow(await browser.submit(page, {}, '/oauth/enrol'))
    expect(account.heading).toBe('Your account')
  })
})

test('the same form sent twice at once adds one factor, and neither answer is an error', async () => {
  const user = await newUser()
  const browser = openBrowser(app)
  const page = await browser.get(linkWith(await openEnrolment(browser, user.username), 'kind=totp'))
  const send = () => browser.submit(page, { code: codeOf(app, keyOf(page)) }, '/oauth/enrol')
  const answers = await Promise.all([send(), send()])
  expect(answers.map(({ status }) => status).toSorted()).toEqual([200, 303])
  expect(await factorsOf(user)).toHaveLength(1)
})

test('PEO-14 twenty factors are the maximum, but a required passkey may exceed it', async () => {
  const user = await newUser()
  const browser = openBrowser(app)
  let choice = await openEnrolment(browser, user.username)
  for (let count = 1; count < 20; count++) {
    await enrolTotp(app, browser, choice)
    app.clock.advance(SECOND)
    choice = await browser.follow(await browser.get('/account/security/add'))
  }
  const open = await browser.follow(await browser.get('/account/security/add'))
  const { store } = app.context
  const { write } = store
  const [known] = await factorsOf(user)
  if (!known) throw new Error('no factor')
  const id = newId('fac', app.clock.now())
  store.write = async body => {
    store.write = write
    await write(async tx => void (await tx.insert(tx.tables.factors).values({ ...known, id })))
    return write(body)
  }
  const { page: late } = await enrolTotp(app, browser, choice)
  expect([late.status, late.heading]).toEqual([403, 'This page isn’t open to you'])
  await write(async tx => void (await tx.delete(tx.tables.factors).where(eq(tx.tables.factors.id, id))))
  await enrolTotp(app, browser, choice)
  expect(await factorsOf(user)).toHaveLength(20)
  const page = await browser.get(linkWith(open, 'kind=totp')).catch(() => open)
  expect([page.status, page.heading]).toEqual([403, 'This page isn’t open to you'])
  const full = await browser.follow(await browser.get('/account/security/add'))
  expect(full.heading).toBe('Security')
  expect(full.html).not.toContain('/account/security/add')
  expect(full.html).toContain('Your account has the maximum number of these')
  expect(answerOf(await browser.get(authorizeUrl('web', { acr_values: 'phr' }))).error).toBe(
    'unmet_authentication_requirements',
  )
  const require = (passkey_required: boolean | null) =>
    app.admin('PUT', '/organizations/default', { settings: { passkey_required } })
  await require(true)
  const due = await browser.get(authorizeUrl('web'))
  expect(due.heading).toBe('Add a passkey')
  await app.events()
  const { page: added } = await enrolPasskey(browser, due)
  await require(null)
  expect(answerOf(added).code).toBeDefined()
  expect(await factorsOf(user)).toHaveLength(21)
  expect((await app.events()).map(({ type, metadata }) => [type, metadata.fields])).toEqual([
    ['user.updated', ['factors']],
    ['organization.updated', ['settings']],
  ])
})

test('a passkey that the account already has is refused on the page that adds one', async () => {
  const user = await newUser()
  const browser = openBrowser(app)
  const { passkey } = await enrolPasskey(browser, await openEnrolment(browser, user.username))
  await app.events()
  const choice = await browser.follow(await browser.get('/account/security/add'))
  const { page } = await enrolPasskey(browser, choice, passkey)
  expect([page.status, page.heading]).toEqual([400, 'Add a passkey'])
  expect(page.html).toContain('role="alert"')
  expect([(await factorsOf(user)).length, await app.events()]).toEqual([1, []])
  const { page: added } = await enrolPasskey(browser, page)
  expect([added.url, (await factorsOf(user)).length]).toEqual(['/account/security?notice=factor_added', 2])
})

describe('a password change on the account page', () => {
  const choose = { password: 'Another-horse-8', password_repeat: 'Another-horse-8' }

  test('requires fresh authentication with the second factor; the login keeps its auth_time', async () => {
    const user = await newUser()
    const browser = openBrowser(app)
    const { key } = await enrolTotp(app, browser, await openEnrolment(browser, user.username))
    const open = await browser.get('/account/change-password')
    app.clock.advance(20 * HOUR)
    const fields = { current_password: PASSWORD, ...choose }
    await app.events()
    const thief = steal(browser)
    expect((await thief.follow(await thief.submit(open, fields))).heading).toBe('Confirm it’s you')
    expect(await app.events()).toEqual([])
    const asked = await thief.get('/account/change-password')
    expect(asked.heading).toBe('Confirm it’s you')
    const step = await signIn(thief, asked, user.username)
    expect(step.heading).toBe('Two-step verification')

    const again = await signIn(browser, await browser.get('/account/change-password'), user.username)
    const page = await browser.follow(
      await browser.submit(again, { code: codeOf(app, key) }, '/oauth/second-factor'),
    )
    expect([page.url, page.heading]).toEqual(['/account/change-password', 'Choose a new password'])
    const proven = app.clock.now()
    app.clock.advance(4 * MINUTE)
    const done = await browser.submit(page, fields)
    expect(done.location).toBe('/account?notice=password_changed')
    const { code } = answerOf(await browser.get(authorizeUrl('web')))
    const row = await codeRow(app, code)
    expect([row.acr, row.amr, row.auth_time]).toEqual(['2', ['pwd', 'otp', 'mfa'], proven])
    app.clock.advance(2 * MINUTE)
    expect((await browser.get('/account/security/add')).heading).toBe('Confirm it’s you')
  })
})
