import { beforeEach, describe, expect, test } from 'bun:test'
import { DAY, HOUR } from '#src/lib/duration.ts'
import { deliverMails } from '#src/links/mail-delivery.ts'
import { captureMail } from '#src/mail/captured.ts'
import { sweep } from '#src/operations/sweep.ts'
import { type Json, startApp } from '#test/support/app.ts'
import { newPasskey } from '#test/support/authenticator.ts'
import { answerOf, type Browser, openBrowser, type Page, unescapeHtml } from '#test/support/browser.ts'
import { addClient, addOrganization, addUser, authorizeUrl, PASSWORD, signIn } from '#test/support/people.ts'

const mail = captureMail()
const app = await startApp({}, { mail })
await addClient(app, 'shop')
const chosen = { password: PASSWORD, password_repeat: PASSWORD }

let made = 0
const somebody = () => {
  const username = `person-${++made}`
  return { first_name: 'Bob', last_name: 'Roe', username, email: `${username}@example.com` }
}

const allow = async (settings: Json, slug = 'default') =>
  expect((await app.admin('PUT', `/organizations/${slug}`, { settings })).status).toBe(200)

const users = () => app.context.store.read(async q => q.select().from(q.tables.users))
const userAt = async (email: string) => (await users()).find(user => user.email === email)

/** Sends the queued mails and returns them. */
const letters = async () => {
  const before = mail.mails.length
  await deliverMails(app.context)
  return mail.mails.slice(before)
}

const urlIn = ({ text }: { text: string }): string => /http:\S+/.exec(text)?.[0] ?? ''

/** Opens the registration form through the link on a login page. */
const openForm = async (browser: Browser, url = '/account'): Promise<Page> => {
  const login = await browser.get(url)
  const link = unescapeHtml(/href="(\/oauth\/sign-up[^"]*)"/.exec(login.html)?.[1] ?? '/none')
  return browser.get(link)
}

/** Requests a registration. Returns the answer, the mail and the link in the mail. */
const register = async (browser: Browser, email: string, url?: string) => {
  const answer = await browser.submit(await openForm(browser, url), { email })
  const [letter] = await letters()
  return { answer, letter, link: letter ? urlIn(letter) : '' }
}

/** Submits the form of the page that has a field of this name. */
const send = (browser: Browser, page: Page, field: string, fields: Record<string, string>) =>
  browser.submit({ ...page, forms: page.forms.filter(form => Object.hasOwn(form.fields, field)) }, fields)

const accept = (browser: Browser, page: Page) => send(browser, page, 'password', chosen)

beforeEach(async () => {
  await letters()
  app.clock.advance(2 * HOUR)
  await allow({ registration: 'open', allowed_domains: null })
  await app.events()
})

describe('a registration', () => {
  test('PEO-07 verifies the address, and makes a user with the role user', async () => {
    const who = somebody()
    const browser = openBrowser(app)
    const { answer, letter, link } = await register(browser, who.email)
    expect(answer).toMatchObject({ status: 200, heading: 'Check your email' })
    expect(letter).toMatchObject({ to: who.email, subject: 'Create your account at Gatehouse' })
    expect(await userAt(who.email)).toBeUndefined()
    expect(await app.events()).toEqual([])
    const page = await browser.submit(await browser.get(link), { ...who, email: 'other@example.com' })
    expect((await browser.follow(await accept(browser, page))).heading).toBe('Your account')
    const user = await userAt(who.email)
    const id = user?.id ?? ''
    expect(user).toMatchObject({ email_verified: true, enabled: true, username: who.username })
    expect((await app.admin('GET', `/users/${id}`)).body.roles).toEqual(['user'])
    const events = await app.events()
    expect(events.map(({ type, actor_id }) => [type, actor_id])).toEqual([
      ['user.created', id],
      ['user.registered', id],
      ['user.login', id],
    ])
    expect((await openBrowser(app).get(link)).status).toBe(410)
    expect((await app.admin('GET', '/invitations')).body.data).toEqual([])
  })

  test('PEO-07 is offered and taken only where the organization allows it', async () => {
    const browser = openBrowser(app)
    const form = await openForm(browser)
    const { link } = await register(browser, somebody().email)
    await allow({ registration: null })
    expect((await openBrowser(app).get('/account')).html).not.toContain('/oauth/sign-up')
    expect((await browser.submit(form, { email: somebody().email })).status).toBe(404)
    expect((await browser.get(link)).status).toBe(410)
  })

  test('PEO-07 a registration that is open when the policy changes creates no user', async () => {
    const who = somebody()
    const browser = openBrowser(app)
    const { link } = await register(browser, who.email)
    const page = await browser.submit(await browser.get(link), who)
    await allow({ registration: 'off' })
    expect((await accept(browser, page)).status).toBe(410)
    expect(await userAt(who.email)).toBeUndefined()
  })

  test('PEO-07 a mail that waits when the policy changes is not sent', async () => {
    const browser = openBrowser(app)
    const form = await openForm(browser)
    for (const policy of [
      { registration: 'off' },
      { registration: 'domains', allowed_domains: ['acme.example'] },
    ]) {
      await allow({ registration: 'open', allowed_domains: null })
      await browser.submit(form, { email: somebody().email })
      await allow(policy)
      expect(await letters()).toEqual([])
    }
    const invitations = await app.context.store.read(async q => q.select().from(q.tables.invitations))
    expect(invitations.filter(({ created_at }) => created_at === app.clock.now())).toEqual([])
  })

  test('PEO-07 PEO-03 creates one user, even when two forms are sent at once', async () => {
    const { email } = somebody()
    const browser = openBrowser(app)
    const { link } = await register(browser, email)
    const people = [somebody(), somebody()]
    const forms = []
    for (const who of people) {
      const own = openBrowser(app)
      forms.push({ own, page: await own.submit(await own.get(link), who) })
    }
    await app.events()
    const answers = await Promise.all(forms.map(({ own, page }) => accept(own, page)))
    expect(answers.map(({ status }) => status).sort()).toEqual([303, 410])
    const names = people.map(({ username }) => username)
    expect((await users()).filter(({ username }) => names.includes(username))).toMatchObject([{ email }])
    expect((await app.events()).map(({ type }) => type)).toEqual([
      'user.created',
      'user.registered',
      'user.login',
    ])
  })

  test('PEO-07 by domain takes no other address, and needs a domain', async () => {
    const refused = { status: 422, body: { details: [{ field: 'settings.registration' }] } }
    expect(
      await app.admin('PUT', '/organizations/default', { settings: { registration: 'domains' } }),
    ).toMatchObject(refused)
    await allow({ registration: 'domains', allowed_domains: ['example.com'] })
    expect(
      await app.admin('PUT', '/organizations/default', { settings: { allowed_domains: null } }),
    ).toMatchObject(refused)
    const browser = openBrowser(app)
    for (const email of [
      'bob@other.example',
      'bob@sub.example.com',
      'bob',
      '',
      `${'a'.repeat(250)}@example.com`,
    ])
      expect([email, (await browser.submit(await openForm(browser), { email })).status]).toEqual([email, 400])
    expect(await letters()).toEqual([])
    expect((await register(browser, somebody().email)).link).not.toBe('')
    await allow({ registration: 'open' })
  })

  test('PEO-07 needs a mail server', async () => {
    const silent = await startApp()
    const answer = await silent.admin('PUT', '/organizations/default', { settings: { registration: 'open' } })
    expect(answer).toMatchObject({ status: 422, body: { details: [{ field: 'settings.registration' }] } })
    const created = { name: 'Acme', slug: 'acme', settings: { registration: 'open' } }
    expect((await silent.admin('POST', '/organizations', created)).status).toBe(422)
  })

  test('PEO-08 gives the same answer for an address that has a user, who gets a mail', async () => {
    const { email, username } = somebody()
    await addUser(app, username, { email })
    const known = await register(openBrowser(app), email.toUpperCase())
    const unknown = await register(openBrowser(app), somebody().email)
    const shown = ({ answer }: typeof known) => ({
      status: answer.status,
      html: answer.html.replaceAll(/[\w-]{40,}/g, ''),
      cookies: answer.headers.getSetCookie().length,
    })
    expect(shown(known)).toEqual(shown(unknown))
    expect(known.letter).toMatchObject({ subject: 'You already have an account at Gatehouse' })
    expect(known.link).toBe('http://localhost:8080/account?organization=default')
  })

  test('PEO-09 continues in the application, with a passkey and recovery codes', async () => {
    const who = somebody()
    const browser = openBrowser(app)
    const { link } = await register(browser, who.email, authorizeUrl('shop'))
    const page = await browser.submit(await browser.get(link), who)
    const options = JSON.parse(unescapeHtml(/data-options="([^"]*)"/.exec(page.html)?.[1] ?? '{}'))
    const codes = await send(browser, page, 'credential', { credential: newPasskey().create(options) })
    expect(codes.heading).toBe('Save your recovery codes')
    expect(answerOf(await browser.follow(await browser.submit(codes, {})))).toMatchObject({
      code: expect.any(String),
    })
  })

  test('PEO-09 ends at the account in another browser', async () => {
    const who = somebody()
    const { link } = await register(openBrowser(app), who.email, authorizeUrl('shop'))
    const other = openBrowser(app)
    const page = await other.submit(await other.get(link), who)
    expect((await other.follow(await accept(other, page))).heading).toBe('Your account')
  })

  test('PEO-11 takes no name that looks like a name of the staff', async () => {
    await addUser(app, 'maria', { roles: ['admin'] })
    const who = somebody()
    const browser = openBrowser(app)
    const { link } = await register(browser, who.email)
    for (const username of ['Adm1n', 'supp0rt', 'no_reply', 'mar1a', 'd3fault']) {
      const page = await browser.submit(await browser.get(link), { ...who, username })
      expect([username, page.status]).toEqual([username, 400])
      expect(page.html).toContain('This is already taken.')
    }
    expect((await browser.submit(await browser.get(link), who)).status).toBe(200)
  })

  test('PEO-13 an uncompleted registration is deleted after a day', async () => {
    const { link } = await register(openBrowser(app), somebody().email)
    app.clock.advance(DAY)
    expect((await openBrowser(app).get(link)).status).toBe(410)
    await sweep(app.context)
    expect(await app.context.store.read(async q => q.select().from(q.tables.invitations))).toEqual([])
  })
})

describe('approval', () => {
  const waiting = async () => (await app.admin('GET', '/registrations')).body.data as Json[]

  beforeEach(async () => {
    for (const { id } of await waiting()) await app.admin('DELETE', `/users/${id}`)
    await app.events()
  })

  const wait = async () => {
    await allow({ registration: 'approval' })
    const who = somebody()
    const browser = openBrowser(app)
    const { link } = await register(browser, who.email)
    const page = await browser.submit(await browser.get(link), who)
    const answer = await accept(browser, page)
    const user = await userAt(who.email)
    return { who, answer, id: user?.id ?? '' }
  }

  test('PEO-10 is waited for, and lets the user in', async () => {
    const { who, answer, id } = await wait()
    expect(answer).toMatchObject({ status: 200, heading: 'Waiting for approval' })
    expect((await app.events()).map(({ type }) => type)).toEqual([
      'organization.updated',
      'user.created',
      'user.registered',
    ])
    expect(await waiting()).toMatchObject([{ id, username: who.username, email: who.email }])
    const browser = openBrowser(app)
    expect((await signIn(browser, await browser.get('/account'), who.username)).status).toBe(401)
    await app.events()
    const approved = await app.admin('POST', `/registrations/${id}/approve`)
    expect(approved).toMatchObject({ status: 200, body: { id, enabled: true } })
    expect((await app.events()).map(({ type }) => type)).toEqual(['user.approved', 'user.enabled'])
    expect(await letters()).toMatchObject([{ to: who.email, subject: 'You can sign in to Gatehouse now' }])
    expect(await waiting()).toEqual([])
    expect((await signIn(browser, await browser.get('/account'), who.username)).heading).toBe('Your account')
    expect((await app.admin('POST', `/registrations/${id}/approve`)).status).toBe(404)
  })

  test('PEO-10 ends when the user is deleted, and when `enabled` is set', async () => {
    const [first, second] = [await wait(), await wait()]
    expect((await app.admin('DELETE', `/users/${first.id}`)).status).toBe(204)
    await app.events()
    await letters()
    const change = { enabled: true, first_name: 'Grace' }
    expect((await app.admin('PUT', `/users/${second.id}`, change)).status).toBe(200)
    expect((await app.events()).map(({ type }) => type)).toEqual([
      'user.approved',
      'user.updated',
      'user.enabled',
    ])
    expect(await letters()).toMatchObject([
      { to: second.who.email, subject: 'You can sign in to Gatehouse now' },
    ])
    expect(await waiting()).toEqual([])
    // A user who was approved and then disabled is no new registration. If the list showed this user, an
    // approval could enable the user again.
    expect((await app.admin('PUT', `/users/${second.id}`, { enabled: false })).status).toBe(200)
    expect(await waiting()).toEqual([])
    expect((await app.admin('POST', `/registrations/${second.id}/approve`)).status).toBe(404)
    expect((await app.admin('PUT', `/users/${second.id}`, { enabled: true })).status).toBe(200)
    expect((await app.events()).map(({ type }) => type)).toEqual(['user.disabled', 'user.enabled'])
    expect(await letters()).toEqual([])
    for (const { id } of [first, second])
      expect((await app.admin('POST', `/registrations/${id}/approve`)).status).toBe(404)
  })

  test('PEO-10 when approval is switched on while a form is open, the user of the form is disabled', async () => {
    const who = somebody()
    const browser = openBrowser(app)
    const { link } = await register(browser, who.email)
    const page = await browser.submit(await browser.get(link), who)
    await allow({ registration: 'approval' })
    expect((await accept(browser, page)).heading).toBe('Waiting for approval')
    expect(await userAt(who.email)).toMatchObject({ enabled: false })
  })
})

describe('PEO-12 mails of registration are bounded', () => {
  test('for a network, also in browsers that a user of the organization knows', async () => {
    const user = await addUser(app, 'mallory')
    let count = 0
    for (let n = 0; n < 3; n++) {
      const browser = openBrowser(app, { ip: '198.51.100.77' })
      await signIn(browser, await browser.get('/account'), user.username)
      browser.cookies.delete('gatehouse_login_8080')
      await letters()
      for (let m = 0; m < 15; m++)
        if ((await register(browser, `n${n}m${m}@flooded${n}${m}.example`)).letter) count++
    }
    expect(count).toBe(20)
  })

  test('for a mailbox, with the same answer, also across organizations and tags', async () => {
    await addOrganization(app, 'acme', { settings: { registration: 'open' } })
    let count = 0
    for (let n = 0; n < 15; n++) {
      const browser = openBrowser(app, { ip: `198.51.${n}.1` })
      const url = n % 2 ? '/account' : '/account?organization=acme'
      const { answer, letter } = await register(browser, `carol+${n}@example.com`, url)
      expect(answer.heading).toBe('Check your email')
      if (letter) count++
    }
    expect(count).toBe(10)
  })

  test('for a network, whose answer has the wait', async () => {
    const browser = openBrowser(app, { ip: '203.0.113.7' })
    const form = await openForm(browser)
    const statuses = []
    for (let n = 0; n < 21; n++)
      statuses.push((await browser.submit(form, { email: somebody().email })).status)
    expect(statuses).toEqual([...Array(20).fill(200), 429])
    await letters()
  })
})
