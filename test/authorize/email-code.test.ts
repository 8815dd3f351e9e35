import { beforeEach, describe, expect, test } from 'bun:test'
import { HOUR, MINUTE } from '#src/lib/duration.ts'
import { deliverMails } from '#src/links/mail-delivery.ts'
import { captureMail } from '#src/mail/captured.ts'
import { type Json, startApp } from '#test/support/app.ts'
import { answerOf, type Browser, openBrowser, type Page } from '#test/support/browser.ts'
import { addPasskeyUser, enrolTotp, inDigits, linkWith, openEnrolment } from '#test/support/factors.ts'
import { addClient, addOrganization, addUser, authorizeUrl, codeRow, signIn } from '#test/support/people.ts'

const mail = captureMail()
const app = await startApp({}, { mail })
await addClient(app, 'web')
let made = 0
let machines = 0
const newUser = (more: Json = {}) => addUser(app, `person${++made}`, { email_verified: true, ...more })
/** A browser with an address of its own, because requests are counted by address. */
const newBrowser = () => openBrowser(app, { ip: `198.51.100.${++machines}` })

const allow = async (settings: Json, slug = 'default') =>
  expect((await app.admin('PUT', `/organizations/${slug}`, { settings })).status).toBe(200)

const letters = async () => {
  mail.clear()
  await deliverMails(app.context)
  return mail.mails
}

const openPage = async (browser: Browser, url = authorizeUrl('web')) =>
  browser.get(linkWith(await browser.get(url), '/oauth/email-code'))

/** Requests a code. Returns the page on which the code is entered, and the code of the mail. */
const ask = async (browser: Browser, username: string, url?: string) => {
  const answer = await browser.submit(await openPage(browser, url), { username }, '/oauth/email-code')
  const page = await browser.follow(answer)
  const [letter] = await letters()
  const code = /^\d{6}$/m.exec(letter?.text ?? '')?.[0] ?? ''
  return { page, letter, code, link: /http:\S+/.exec(letter?.text ?? '')?.[0] ?? '' }
}

const enter = (browser: Browser, page: Page, code: string) =>
  browser.submit(page, { code }, '/oauth/email-code')

const wrongOf = (code: string) => (code === '000000' ? '000001' : '000000')
const codesOf = async ({ id }: Json) =>
  (await app.context.store.read(async q => q.select().from(q.tables.email_codes))).filter(
    ({ user_id }) => user_id === id,
  )

beforeEach(async () => {
  await letters()
  app.clock.advance(2 * HOUR)
  await allow({ email_code: 'users', mfa_required: null, passkey_required: null })
  await app.events()
})

describe('MCD-01 a code by mail', () => {
  test('signs in once, as one factor, and says so', async () => {
    const user = await newUser()
    const browser = newBrowser()
    await app.events()
    const { page, letter, code } = await ask(browser, user.username)
    expect(page.heading).toBe('Check your email')
    expect(letter).toMatchObject({ to: user.email, subject: 'Your code for Gatehouse' })
    expect(letter?.text).toContain('Application: The web')
    expect(letter?.text).toMatch(/until January \d+, 2026 at \d+:\d\d\s?[AP]M UTC/)
    expect((await app.events()).map(({ type, actor_id, target_id }) => [type, actor_id, target_id])).toEqual([
      ['user.code_sent', null, user.id],
    ])
    const done = await browser.follow(await enter(browser, page, inDigits('٠', code.replace(/.../, '$& '))))
    const { acr, amr } = await codeRow(app, answerOf(done).code)
    expect([acr, amr]).toEqual(['1', ['otp']])
    expect(await codesOf(user)).toEqual([])
    expect(await app.events()).toEqual([])
    expect((await enter(browser, page, code)).status).toBe(400)
  })

  test('is stored as a keyed hash', async () => {
    const user = await newUser()
    const { code } = await ask(newBrowser(), user.username)
    const [row] = await codesOf(user)
    expect(row).toMatchObject({ user_id: user.id, tries: 0 })
    expect(JSON.stringify(row)).not.toContain(code)
  })

  test('ends after ten minutes, with another code, and with a new password', async () => {
    const user = await newUser()
    const browser = newBrowser()
    const first = await ask(browser, user.username)
    app.clock.advance(10 * MINUTE)
    expect((await enter(browser, first.page, first.code)).status).toBe(401)
    const second = await ask(browser, user.username)
    const third = await ask(browser, user.username)
    expect(await codesOf(user)).toHaveLength(1)
    if (second.code !== third.code) expect((await enter(browser, third.page, second.code)).status).toBe(401)
    await app.admin('POST', `/users/${user.id}/reset-password`, { password: 'Another-horse-8' })
    expect((await enter(browser, third.page, third.code)).status).toBe(401)
    expect(await codesOf(user)).toEqual([])
  })

  test('works in no other browser, and in no other request of the same browser', async () => {
    const user = await newUser()
    const [owner, thief] = [newBrowser(), newBrowser()]
    const { code, link, page } = await ask(owner, user.username)
    const elsewhere = await thief.get(link)
    expect([elsewhere.status, elsewhere.heading]).toEqual([400, 'Use the browser that asked for the code'])
    expect((await enter(thief, page, code)).status).toBe(403)
    // A request by the thief makes the owner's code invalid. The new code is mailed to the owner, but is
    // refused in the owner's browser.
    const own = await ask(thief, user.username)
    if (own.code !== code) expect((await enter(thief, own.page, code)).status).toBe(401)
    expect((await enter(owner, page, own.code)).status).toBe(401)
  })

  test('is sent by POST: the link in the mail only fills in the form', async () => {
    const user = await newUser()
    const browser = newBrowser()
    const { link, code } = await ask(browser, user.username)
    const page = await browser.get(link)
    expect(page.forms.find(({ action }) => action === '/oauth/email-code')?.fields.code).toBe(code)
    expect((await browser.get('/account')).heading).toBe('Sign in')
    expect(answerOf(await browser.submit(page, {}, '/oauth/email-code')).code).toBeString()
  })

  test('is used up by one of two requests at once', async () => {
    const user = await newUser()
    const browser = newBrowser()
    const { page, code } = await ask(browser, user.username)
    const answers = await Promise.all([1, 2].map(() => enter(browser, page, code)))
    expect(answers.filter(({ location }) => location?.includes('code='))).toHaveLength(1)
  })
})

describe('MCD-02 a code by mail is no second factor', () => {
  test('a user with an app, or with a passkey alone, proves it afterwards', async () => {
    const armed = await newUser()
    const own = openBrowser(app)
    await enrolTotp(app, own, await openEnrolment(own, armed.username))
    const { user } = await addPasskeyUser(app, `person${++made}`, { email_verified: true })
    for (const { username } of [armed, user]) {
      await letters()
      const browser = newBrowser()
      const { page, code } = await ask(browser, username)
      const step = await browser.follow(await enter(browser, page, code))
      expect(step.heading).toBe('Two-step verification')
      expect(step.html).not.toContain('email-code')
      expect((await browser.get('/account')).heading).toBe('Sign in')
    }
  })

  test.each([
    [{ mfa_required: true }, {}, 'Protect your account'],
    [{ passkey_required: true }, {}, 'Add a passkey'],
    [{}, { acr_values: 'phr' }, 'Add a passkey'],
  ] as const)('every further requirement is asked for afterwards: %j %j', async (settings, more, heading) => {
    await allow(settings)
    const user = await newUser()
    const browser = newBrowser()
    const { page, code } = await ask(browser, user.username, authorizeUrl('web', more))
    // A user who has a password cannot add a factor with a code alone.
    const confirm = await browser.follow(await enter(browser, page, code))
    expect(confirm.heading).toBe('Confirm it’s you')
    expect((await browser.follow(await signIn(browser, confirm, user.username))).heading).toBe(heading)
  })

  test('it confirms no change of the account', async () => {
    const user = await newUser()
    const browser = newBrowser()
    await signIn(browser, await browser.get('/account'), user.username)
    app.clock.advance(HOUR)
    const confirm = await browser.get('/account/change-password')
    expect(confirm.heading).toBe('Confirm it’s you')
    expect(confirm.html).not.toContain('email-code')
    const request = new URL(confirm.url, 'http://x').searchParams.get('request') ?? ''
    const handle = request || (confirm.forms[0]?.fields.request ?? '')
    expect(handle).not.toBe('')
    expect((await browser.get(`/oauth/email-code?request=${handle}`)).status).toBe(404)
  })
})

describe('MCD-03 a code is sent', () => {
  test('to users with permissions only if the organization allows it, even when the permissions come later', async () => {
    const admin = await newUser({ roles: ['admin'] })
    expect((await ask(newBrowser(), admin.username)).letter).toBeUndefined()
    await allow({ email_code: 'all' })
    const browser = newBrowser()
    const { page, code } = await ask(browser, admin.username)
    await allow({ email_code: 'users' })
    expect((await enter(browser, page, code)).status).toBe(401)
    await allow({ email_code: 'all' })
    const again = await ask(browser, admin.username)
    expect(answerOf(await enter(browser, again.page, again.code)).code).toBeString()
  })

  test('only to a verified address of an enabled user', async () => {
    const [unverified, disabled] = [
      await newUser({ email_verified: false }),
      await newUser({ enabled: false }),
    ]
    for (const user of [unverified, disabled]) {
      expect((await ask(newBrowser(), user.username)).letter).toBeUndefined()
      expect(await codesOf(user)).toEqual([])
    }
  })

  test('only where the organization has them, by users of that organization', async () => {
    const browser = newBrowser()
    const page = await openPage(browser)
    const { id } = await addOrganization(app, `tenant${++made}`)
    const stranger = await newUser({ organization_id: id })
    expect((await ask(newBrowser(), stranger.email)).letter).toBeUndefined()
    await allow({ email_code: 'off' })
    expect((await browser.get(authorizeUrl('web'))).html).not.toContain('/oauth/email-code')
    expect((await browser.submit(page, { username: 'x' }, '/oauth/email-code')).status).toBe(404)
    const silent = await startApp()
    expect(
      await silent.admin('PUT', '/organizations/default', { settings: { email_code: 'users' } }),
    ).toMatchObject({ status: 422, body: { details: [{ field: 'settings.email_code' }] } })
  })
})

test('MCD-08 the security page lists a code by mail where the user may sign in with one', async () => {
  const listed = async (more: Json = {}) => {
    const user = await newUser(more)
    const browser = newBrowser()
    await signIn(browser, await browser.get('/account'), user.username)
    return (await browser.get('/account/security')).html.includes('Code by email')
  }
  expect(await listed()).toBe(true)
  expect(await listed({ email_verified: false })).toBe(false)
  expect(await listed({ roles: ['admin'] })).toBe(false)
  await allow({ email_code: 'off' })
  expect(await listed()).toBe(false)
})

describe('a user', () => {
  const SWITCH = '/account/security/email-code'
  const openSecurity = async ({ username }: Json) => {
    const browser = newBrowser()
    await signIn(browser, await browser.get('/account'), username)
    await letters()
    return { browser, page: await browser.get('/account/security') }
  }

  test('MCD-09 switches codes by mail off and on, which ends the present code', async () => {
    const user = await newUser()
    const asking = newBrowser()
    const { page: entry, code } = await ask(asking, user.username)
    const { browser, page } = await openSecurity(user)
    await app.events()
    const off = await browser.follow(await browser.submit(page, {}, SWITCH))
    expect(off.html).toContain('Codes by email are turned off.')
    expect((await app.events()).map(({ type, actor_id, metadata }) => [type, actor_id, metadata])).toEqual([
      ['user.updated', user.id, { fields: ['email_code'] }],
    ])
    expect((await enter(asking, entry, code)).status).toBe(401)
    const refused = await ask(newBrowser(), user.username)
    expect([refused.letter, await codesOf(user)]).toEqual([undefined, []])
    const on = await browser.follow(await browser.submit(off, {}, SWITCH))
    expect(on.html).toContain('Codes by email are turned on.')
    const later = newBrowser()
    const again = await ask(later, user.username)
    expect(answerOf(await enter(later, again.page, again.code)).code).toBeString()
  })

  test('MCD-09 confirms who they are before the switch', async () => {
    const { browser, page } = await openSecurity(await newUser())
    app.clock.advance(HOUR)
    const confirm = await browser.follow(await browser.submit(page, {}, SWITCH))
    expect(confirm.heading).toBe('Confirm it’s you')
    expect((await browser.get('/account/security')).html).toContain('Turn off')
  })

  test('MCD-09 is switched by an administrator, and finds the choice in the download', async () => {
    const user = await newUser()
    expect(user.email_code).toBe(true)
    const { browser } = await openSecurity(user)
    await app.events()
    const change = (email_code: unknown) => app.admin('PUT', `/users/${user.id}`, { email_code })
    expect(await change('no')).toMatchObject({ status: 422, body: { details: [{ field: 'email_code' }] } })
    expect((await change(false)).body.email_code).toBe(false)
    expect((await change(false)).status).toBe(200)
    expect((await app.events()).map(({ type, metadata }) => [type, metadata.fields])).toEqual([
      ['user.updated', ['email_code']],
    ])
    expect((await browser.get('/account/security')).html).toContain('Turn on')
    const download = await browser.submit(await browser.get('/account/data'), {}, '/account/data/download')
    expect(JSON.parse(download.html).user.email_code).toBe(false)
  })

  test('MCD-10 keeps the code that is their only way in', async () => {
    const { user } = await addPasskeyUser(app, `person${++made}`, { email_verified: true })
    await app.admin('DELETE', `/users/${user.id}/factors?only_way_in=true`)
    await letters()
    const browser = newBrowser()
    const { page: entry, code } = await ask(browser, user.username, '/account')
    await browser.follow(await enter(browser, entry, code))
    const page = await browser.get('/account/security')
    expect(page.html).toContain('It is your only way to sign in.')
    expect(page.html).not.toContain('Turn off')
    const forms = page.forms.map(form => ({ ...form, action: SWITCH }))
    expect((await browser.submit({ ...page, forms }, { email_code: 'off' }, SWITCH)).status).toBe(400)
    expect((await app.admin('GET', `/users/${user.id}`)).body.email_code).toBe(true)
  })
})

describe('guesses', () => {
  test('MCD-04 end a code after five, even when they are concurrent', async () => {
    const user = await newUser()
    const browser = newBrowser()
    const { page, code } = await ask(browser, user.username)
    await Promise.all(Array.from({ length: 12 }, () => enter(browser, page, wrongOf(code))))
    const [row] = await codesOf(user)
    expect(row?.tries).toBe(5)
    app.clock.advance(2 * MINUTE)
    expect((await enter(browser, page, code)).status).toBe(401)
    expect((await browser.get('/account')).heading).toBe('Sign in')
  })

  test('MCD-04 before the fifth leave the code valid', async () => {
    const user = await newUser()
    const browser = newBrowser()
    const { page, code } = await ask(browser, user.username)
    for (let count = 0; count < 4; count++)
      expect((await enter(browser, page, wrongOf(code))).status).toBe(401)
    expect(answerOf(await enter(browser, page, code)).code).toBeString()
  })

  test('MCD-05 slow the account down as wrong passwords do', async () => {
    const user = await newUser()
    const browser = newBrowser()
    const { page, code } = await ask(browser, user.username)
    for (let count = 0; count < 5; count++) await enter(browser, page, wrongOf(code))
    expect((await enter(browser, page, code)).status).toBe(429)
  })

  test('MCD-05 mails are bounded by name and network, and by mailbox', async () => {
    const user = await newUser()
    const one = newBrowser()
    const sent = []
    for (let count = 0; count < 5; count++) sent.push((await ask(one, user.username)).letter !== undefined)
    expect(sent).toEqual([true, true, true, false, false])
    let total = 3
    for (let count = 0; count < 6; count++)
      for (const name of [user.username, user.email]) if ((await ask(newBrowser(), name)).letter) total++
    expect(total).toBe(10)
  })

  test('MCD-07 strangers do not use up the codes of browsers in which the user has signed in', async () => {
    const user = await newUser()
    const [own, foreign] = [newBrowser(), newBrowser()]
    for (const [browser, who] of [
      [own, user],
      [foreign, await newUser()],
    ] as const) {
      await signIn(browser, await browser.get('/account'), who.username)
      browser.cookies.delete('gatehouse_login_8080')
    }
    for (let count = 0; count < 12; count++) await ask(newBrowser(), user.username)
    // A browser counts as unknown if only another user of the organization has signed in with it.
    for (const browser of [newBrowser(), foreign])
      expect((await ask(browser, user.username)).letter).toBeUndefined()
    const { page, code } = await ask(own, user.username)
    expect(answerOf(await enter(own, page, code)).code).toBeString()
  })

  test('MCD-07 known browsers have a limit too, for all names of the user together', async () => {
    const user = await newUser()
    const browsers = Array.from({ length: 6 }, newBrowser)
    let sent = 0
    for (const browser of browsers) {
      await signIn(browser, await browser.get('/account'), user.username)
      browser.cookies.delete('gatehouse_login_8080')
      // Removes the mail about the new browser from the outbox.
      await letters()
      for (const name of [user.username, user.username, user.username, user.email])
        if ((await ask(browser, name)).letter) sent++
    }
    expect(sent).toBe(10)
  })

  test('MCD-06 get the same answer for a user, for a user who gets no code, and for an unknown name', async () => {
    const [user, other] = [await newUser(), await newUser({ email_code: false })]
    const seen = []
    for (const name of [user.username, other.username, 'nobody-at-all']) {
      const browser = newBrowser()
      await app.events()
      const { page, code } = await ask(browser, name)
      const refused = await enter(browser, page, wrongOf(code))
      const text = (html: string) =>
        html.replaceAll(name, 'NAME').replace(/value="[^"]*"|request=[\w-]+|<[^>]*csp[^>]*>/g, '')
      seen.push([page.status, text(page.html), refused.status, text(refused.html)])
      expect((await app.events()).at(-1)).toMatchObject({
        type: 'user.login_failed',
        metadata: { username_attempted: name },
      })
    }
    expect(seen[1]).toEqual(seen[0])
    expect(seen[2]).toEqual(seen[0])
  })
})
