import { beforeEach, describe, expect, test } from 'bun:test'
import { hostActor } from '#src/audit/record.ts'
import { updateUser } from '#src/directory/users/service.ts'
import { DAY } from '#src/lib/duration.ts'
import { deliverMails } from '#src/links/mail-delivery.ts'
import { captureMail } from '#src/mail/captured.ts'
import { type Json, startApp } from '#test/support/app.ts'
import { formOf, openBrowser } from '#test/support/browser.ts'
import { create } from '#test/support/callers.ts'
import { enrolTotp, linkWith, openEnrolment, sendForm } from '#test/support/factors.ts'
import {
  addClient,
  addOrganization,
  addUser,
  authorizeUrl,
  logInTo,
  PASSWORD,
  signIn,
} from '#test/support/people.ts'

const mail = captureMail()
const app = await startApp({}, { mail })
const acme = await addOrganization(app, 'acme')
await addClient(app, 'web')
await addClient(app, 'acme-web', { organization_id: acme.id })
const NEW = 'Another-horse-8'

const gone = { status: 410, heading: 'This link doesn’t work any more' }
let users = 0
/** Each browser has its own IP address, because requests are counted by address. */
let machines = 0
const elsewhere = () => openBrowser(app, { ip: `198.51.100.${++machines}` })

const newUser = async (more = {}) => {
  const user = await addUser(app, `user${++users}`, more)
  await app.events()
  return user
}
/** Delivers the queued mails, and returns the recipient and the subject of each mail. */
const post = async () => {
  mail.clear()
  await deliverMails(app.context)
  return mail.mails.map(({ to, subject }) => [to, subject])
}
const linkIn = (path: string): string => {
  const link = /http:\/\/localhost:8080(\/account\/[\w-]+\?token=[\w-]{43})/.exec(
    mail.mails.at(-1)?.text ?? '',
  )?.[1]
  if (!link?.startsWith(path)) throw new Error(`no link to ${path}`)
  return link
}

beforeEach(async () => {
  await post()
  await app.events()
})

describe('verification', () => {
  const start = async () => {
    const user = await newUser()
    const browser = elsewhere()
    await signIn(browser, await browser.get('/account'), user.username)
    await post()
    await app.events()
    return { user, browser, page: await browser.get('/account/profile') }
  }
  const verified = async (user: { id: string }) =>
    (await app.admin('GET', `/users/${user.id}`)).body.email_verified

  test('through a link requested on the account page', async () => {
    const { user, browser, page } = await start()
    const sent = await browser.submit(page, {}, '/account/profile/verify')
    expect(sent.location).toBe('/account/profile?notice=verification_sent')
    expect((await browser.follow(sent)).html).toContain('role="status"')
    expect(await app.events()).toEqual([])
    expect(await post()).toEqual([[user.email, 'Confirm your email address for Gatehouse']])
    const form = await browser.get(linkIn('/account/verify-email'))
    expect(form.html).toContain(user.email)
    expect(await verified(user)).toBe(false)
    const done = await browser.submit(form)
    expect(done.html).toContain('Email address confirmed')
    expect(done.html).toContain('/account?organization=')
    expect(await verified(user)).toBe(true)
    expect((await app.events()).map(({ type, actor_id, metadata }) => [type, actor_id, metadata])).toEqual([
      ['user.updated', user.id, { fields: ['email_verified'] }],
    ])
    expect(await browser.submit(form)).toMatchObject(gone)
    const reloaded = await browser.get('/account/profile?notice=verification_sent')
    expect(reloaded.html).not.toContain('/account/profile/verify')
    expect(reloaded.html).not.toContain('role="status"')
  })

  test('PEO-43 is done only where the user is signed in', async () => {
    const { user, browser, page } = await start()
    await browser.submit(page, {}, '/account/profile/verify')
    await post()
    const [url, phone] = [linkIn('/account/verify-email'), elsewhere()]
    const asked = await phone.get(url)
    expect(asked.html).toContain('Sign in to the account of this address in this browser first')
    expect(asked.forms).toEqual([])
    phone.cookies.set('gatehouse_browser_8080', browser.cookies.get('gatehouse_browser_8080') ?? '')
    const { fields } = formOf(await browser.get(url))
    const refused = await phone.post('/account/verify-email', fields)
    expect(refused.html).toContain('Sign in to the account of this address in this browser first')
    expect(await verified(user)).toBe(false)
    expect(await app.events()).toEqual([])
    const form = await signIn(
      phone,
      await phone.get(linkWith(asked, '/account/verify-email/sign-in')),
      user.username,
    )
    expect((await phone.submit(form)).html).toContain('Email address confirmed')
    expect(await verified(user)).toBe(true)
  })

  test('the link is for one address and one day', async () => {
    const { user, browser, page } = await start()
    await browser.submit(page, {}, '/account/profile/verify')
    await post()
    const url = linkIn('/account/verify-email')
    await app.admin('PUT', `/users/${user.id}`, { email: `moved.${user.email}` })
    expect(await elsewhere().get(url)).toMatchObject(gone)
    await app.admin('PUT', `/users/${user.id}`, { email: user.email })
    expect((await elsewhere().get(url)).status).toBe(200)
    app.clock.advance(DAY)
    expect(await elsewhere().get(url)).toMatchObject(gone)
    expect(await verified(user)).toBe(false)
  })

  test('a link verifies no other address that the user gets while the form is handled', async () => {
    const { user, browser, page } = await start()
    await browser.submit(page, {}, '/account/profile/verify')
    await post()
    const form = await browser.get(linkIn('/account/verify-email'))
    const { store } = app.context
    const { write } = store
    const email = `moved.${user.email}`
    store.write = async body => {
      store.write = write
      for (const change of [{ email }, { pending_email: user.email }])
        await updateUser(app.context, user.id, change, hostActor)
      await app.events()
      return write(body)
    }
    expect(await browser.submit(form)).toMatchObject(gone)
    expect((await app.admin('GET', `/users/${user.id}`)).body).toMatchObject({ email, email_verified: false })
    expect(await app.events()).toEqual([])
  })

  test('link and queued mail survive a change of the letter case only', async () => {
    const { user, browser, page } = await start()
    await browser.submit(page, {}, '/account/profile/verify')
    await post()
    const url = linkIn('/account/verify-email')
    await browser.submit(page, {}, '/account/profile/verify')
    const email = user.email.toUpperCase()
    await app.admin('PUT', `/users/${user.id}`, { email })
    await app.events()
    expect(await post()).toEqual([[user.email, 'Confirm your email address for Gatehouse']])
    expect((await browser.submit(await browser.get(url))).html).toContain('Email address confirmed')
    expect((await app.admin('GET', `/users/${user.id}`)).body).toMatchObject({ email, email_verified: true })
    expect((await app.events()).map(({ type, actor_id, metadata }) => [type, actor_id, metadata])).toEqual([
      ['user.updated', user.id, { fields: ['email_verified'] }],
    ])
  })

  test('a mail that waits is not sent once the address is verified', async () => {
    const { user, browser, page } = await start()
    await browser.submit(page, {}, '/account/profile/verify')
    await app.admin('PUT', `/users/${user.id}`, { email_verified: true })
    expect(await post()).toEqual([])
    const links = await app.context.store.read(async q => q.select().from(q.tables.links))
    expect(links.filter(({ user_id }) => user_id === user.id)).toEqual([])
  })

  test('is sent at most three times an hour', async () => {
    const { browser, page } = await start()
    for (let i = 0; i < 5; i++)
      expect((await browser.submit(page, {}, '/account/profile/verify')).status).toBe(303)
    expect(await post()).toHaveLength(3)
  })
})

describe('notices', () => {
  test('of a new browser, but not of the first browser or a known one', async () => {
    const user = await newUser()
    const first = openBrowser(app, { ip: '203.0.113.9' })
    await logInTo(first, 'web', user.username)
    expect(await post()).toEqual([])
    await logInTo(first, 'web', user.username, { prompt: 'login' })
    expect(await post()).toEqual([])
    const agent = { 'user-agent': 'Mozilla/5.0 (X11; Linux x86_64) Firefox/140.0' }
    const second = openBrowser(app, { ip: '203.0.113.10', headers: agent })
    await logInTo(second, 'web', user.username)
    expect(await post()).toEqual([[user.email, 'New sign-in to Gatehouse']])
    const { text, html } = mail.mails[0] ?? {}
    for (const line of ['Browser: Firefox on Linux', 'From: 203.0.113.10', 'Application: The web'])
      expect(text).toContain(line)
    expect(text).toContain('on January 16, 2026 at 12:00 PM UTC')
    const security = 'http://localhost:8080/account/security?organization=default'
    expect(text).toContain(security)
    expect(html).toMatch(
      /<td class="button"[^>]*><a href="http:\/\/localhost:8080\/account\/security\?organization=default"[^>]*>Review security<\/a>/,
    )
    expect([...second.cookies.keys()].sort()).toEqual([
      'gatehouse_browser_8080',
      'gatehouse_device_8080',
      'gatehouse_login_8080',
    ])
  })

  test('PAG-41 the time is in the time zone of the profile, else of the browser, with non-breaking hyphens', async () => {
    for (const [zone, zoneinfo, time] of [
      ['Asia/Kolkata', undefined, '5:30 PM GMT+5:30'],
      ['Asia/Kolkata', 'America/New_York', '7:00 AM EST'],
      ['America/Bogota', 'no/zone', '7:00 AM GMT\u20115'],
      ['<b>', undefined, '12:00 PM UTC'],
      ['Nowhere/Land', undefined, '12:00 PM UTC'],
    ] as const) {
      const user = await newUser(zoneinfo === undefined ? {} : { attributes: { zoneinfo } })
      await logInTo(openBrowser(app, { ip: '203.0.113.9' }), 'web', user.username)
      const second = openBrowser(app, { ip: '203.0.113.10' })
      second.cookies.set('time_zone', zone)
      await logInTo(second, 'web', user.username)
      await post()
      expect(mail.mails.at(-1)?.text).toContain(time)
    }
  })

  test('PAG-41 a notice of an administrator’s change names no browser and no address', async () => {
    const user = await newUser()
    await app.admin('POST', `/users/${user.id}/reset-password`, { password: NEW })
    expect(await post()).toHaveLength(1)
    expect(mail.mails.at(-1)?.text).not.toMatch(/Browser:|From:|Application:/)
  })

  test.each<Json>([{}, { settings: { mfa_required: true } }])(
    'are not sent for the first login, by an invitation: %j',
    async more => {
      const { id } = await addOrganization(app, `org${++users}`, more)
      const invitation = { delivery: 'link', organization_id: id, max_uses: 2 }
      const { invitation_url } = await create(app, '/invitations', invitation)
      const email = `user${++users}@example.com`
      const who = { first_name: 'Bob', last_name: 'Roe', username: 'bob', email }
      const browser = elsewhere()
      const page = await browser.submit(await browser.get(invitation_url), who)
      const given = { password: PASSWORD, password_repeat: PASSWORD }
      const next = await browser.follow(await sendForm(browser, page, 'password', given))
      if (more.settings) await enrolTotp(app, browser, next)
      expect((await browser.get('/account')).heading).toBe('Your account')
      expect((await post()).filter(([, subject]) => subject?.startsWith('New sign-in'))).toEqual([])
    },
  )

  test('are not sent before the second factor', async () => {
    const user = await newUser()
    const browser = elsewhere()
    await enrolTotp(app, browser, await openEnrolment(browser, user.username))
    await post()
    const other = elsewhere()
    await signIn(other, await other.get(authorizeUrl('web')), user.username)
    expect(await post()).toEqual([])
    expect(other.cookies.has('gatehouse_device_8080')).toBe(false)
  })

  test('of added and removed factors, and of used recovery codes', async () => {
    const user = await newUser()
    const browser = elsewhere()
    const { page } = await enrolTotp(app, browser, await openEnrolment(browser, user.username))
    expect(await post()).toEqual([[user.email, 'A new way to sign in to Gatehouse']])
    expect(mail.mails[0]?.text).toContain('“Authenticator app” was added')
    const [code = ''] = [...page.html.matchAll(/<code class="recovery-code">([^<]+)/g)].map(
      ([, text = '']) => text,
    )
    const other = elsewhere()
    const step = await signIn(other, await other.get(authorizeUrl('web')), user.username)
    const form = await other.get(linkWith(step, 'method=recovery'))
    await other.submit(form, { recovery_code: code })
    const sent = await post()
    expect(sent).toEqual([
      [user.email, 'A recovery code was used at Gatehouse'],
      [user.email, 'New sign-in to Gatehouse'],
    ])
    expect(mail.mails[0]?.text).toContain('9 codes are left')
    await browser.submit(await browser.get('/account/security'), {}, '/account/security/remove')
    expect(await post()).toEqual([[user.email, 'A way to sign in to Gatehouse was removed']])
  })

  test('of a password set by an administrator', async () => {
    const user = await newUser()
    await app.admin('POST', `/users/${user.id}/reset-password`, { password: NEW })
    expect(await post()).toEqual([[user.email, 'Your password for Gatehouse was changed']])
  })
})

test('where no mail can be sent, no page offers it', async () => {
  const plain = await startApp()
  await addClient(plain, 'web')
  await addUser(plain, 'ada')
  const browser = openBrowser(plain)
  const login = await browser.get(authorizeUrl('web'))
  expect(login.html).not.toContain('reset-password')
  const { request = '', csrf_token = '' } = formOf(login).fields
  expect((await browser.get(`/oauth/reset-password?request=${request}`)).status).toBe(404)
  expect((await browser.post('/oauth/reset-password', { request, csrf_token, username: 'ada' })).status).toBe(
    404,
  )
  await signIn(browser, login, 'ada', PASSWORD)
  const profile = await browser.get('/account/profile')
  expect(profile.html).not.toContain('/account/profile/verify')
  const token = formOf(profile).fields.csrf_token ?? ''
  expect((await browser.post('/account/profile/verify', { csrf_token: token })).status).toBe(404)
})
