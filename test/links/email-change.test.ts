import { beforeEach, describe, expect, test } from 'bun:test'
import { HOUR, MINUTE, SECOND } from '#src/lib/duration.ts'
import { deliverMails } from '#src/links/mail-delivery.ts'
import { captureMail } from '#src/mail/captured.ts'
import { type Json, startApp } from '#test/support/app.ts'
import { type Browser, formOf, openBrowser } from '#test/support/browser.ts'
import { codeOf, enrolTotp, linkWith, openEnrolment } from '#test/support/factors.ts'
import { addClient, addUser, authorizeUrl, PASSWORD, signIn } from '#test/support/people.ts'

const mail = captureMail()
const app = await startApp({}, { mail })
await addClient(app, 'web')
const gone = { status: 410, heading: 'This link doesn’t work any more' }
const ASKED = 'Your email address for Gatehouse is about to change'
const CONFIRM = 'Confirm your email address for Gatehouse'
const CHANGED = 'Your email address for Gatehouse was changed'
let users = 0

const post = async () => {
  mail.clear()
  await deliverMails(app.context)
  return mail.mails.map(({ to, subject }) => [to, subject])
}
const linkIn = (): string => {
  const texts = mail.mails.map(({ text }) => /http:\/\/localhost:8080(\/account\/verify-email\S+)/.exec(text))
  return texts.find(Boolean)?.[1] ?? 'no link'
}
const stored = async (user: Json) => (await app.admin('GET', `/users/${user.id}`)).body
const signedIn = async (more: Json = {}) => {
  const user = await addUser(app, `user${++users}`, more)
  const browser = openBrowser(app)
  await signIn(browser, await browser.get('/account'), user.username)
  await post()
  await app.events()
  return { user, browser, wanted: `new.${user.email}` }
}
const ask = async (browser: Browser, email: string) =>
  browser.submit(await browser.get('/account/profile'), { email }, '/account/profile')
const asked = async (more: Json = {}) => {
  const person = await signedIn(more)
  await ask(person.browser, person.wanted)
  await post()
  return { ...person, link: linkIn() }
}
const askReset = async (username: string) => {
  const browser = openBrowser(app, { ip: `198.51.100.${users}` })
  const page = await browser.get(linkWith(await browser.get(authorizeUrl('web')), '/oauth/reset-password'))
  await browser.submit(page, { username })
}
const facts = async () => (await app.events()).map(({ type, metadata }) => [type, metadata])

beforeEach(async () => {
  await post()
  await app.events()
  app.clock.advance(HOUR)
})

describe('a new address', () => {
  test('takes effect when confirmed by mail; until then the old one stays', async () => {
    const { user, browser, wanted } = await signedIn({ email_verified: true })
    const answer = await ask(browser, wanted)
    expect(answer.location).toBe('/account/profile?notice=verification_sent')
    expect(await facts()).toEqual([['user.updated', { fields: ['pending_email'] }]])
    expect(await post()).toEqual([
      [wanted, CONFIRM],
      [user.email, ASKED],
    ])
    const link = linkIn()
    const text = `the new address of your account ${user.username} at Gatehouse. Open the link in a browser in which you are signed in`
    expect(mail.mails[0]?.text).toContain(text)
    expect(mail.mails[0]?.html).toContain(text)
    const told = (await browser.follow(answer)).html
    expect([told.split(wanted).length, told.includes(`we sent to ${wanted}`)]).toEqual([2, true])
    expect(await stored(user)).toMatchObject({ email: user.email, email_verified: true })
    const other = openBrowser(app)
    expect((await signIn(other, await other.get('/account'), wanted)).status).toBe(401)
    await askReset(wanted)
    expect(await post()).toEqual([])
    await askReset(user.username)
    expect(await post()).toEqual([[user.email, 'Choose a new password for Gatehouse']])

    await app.events()
    const page = await browser.get(link)
    expect(page.html).toContain(`the address of your account ${user.username}`)
    const done = await browser.submit(page)
    expect(done.html).toContain('Email address confirmed')
    expect((await browser.get(linkWith(done, '/account?organization='))).heading).toBe('Your account')
    expect(await stored(user)).toMatchObject({ email: wanted, email_verified: true })
    expect(await facts()).toEqual([['user.updated', { fields: ['email'] }]])
    expect(await post()).toEqual([[user.email, CHANGED]])
    expect(mail.mails[0]?.text).not.toMatch(/Browser:|From:|Application:/)
    expect(await browser.get(link)).toMatchObject(gone)
    expect((await browser.get('/account/profile')).html).not.toContain('/account/profile/verify')
    expect((await signIn(other, await other.get('/account'), wanted)).heading).toBe('Your account')
  })

  test('if mistyped, is of no use to the recipient of the mail: only the owner of the account can confirm it', async () => {
    const { user, browser, wanted, link } = await asked()
    const stranger = openBrowser(app)
    const neighbour = (await signedIn()).browser
    for (const other of [stranger, neighbour]) {
      const page = await other.get(link)
      expect(page.html).toContain('Sign in to your account in this browser first')
      expect(page.forms).toEqual([])
      expect(page.html).not.toContain(`${user.username}?`)
      const { fields } = formOf(await browser.get(link))
      expect((await other.post('/account/verify-email', fields)).status).toBe(403)
    }
    const left = openBrowser(app)
    left.cookies.set('gatehouse_browser_8080', browser.cookies.get('gatehouse_browser_8080') ?? '')
    const { fields } = formOf(await browser.get(link))
    const refused = await left.post('/account/verify-email', fields)
    expect(refused.html).toContain('Sign in to your account in this browser first')
    expect((await stored(user)).email).toBe(user.email)
    await signIn(stranger, await stranger.get('/account'), user.username)
    expect((await stranger.submit(await stranger.get(link))).html).toContain('Email address confirmed')
    expect((await stored(user)).email).toBe(wanted)
  })

  test('waits until its owner signs in', async () => {
    const { user, wanted, link } = await asked()
    const token = link.split('token=')[1] ?? ''
    const phone = openBrowser(app)
    const login = await phone.get(linkWith(await phone.get(link), '/account/verify-email/sign-in'))
    expect(login.html).not.toContain(user.username)
    const requests = await app.context.store.read(async q => q.select().from(q.tables.authorization_requests))
    expect(JSON.stringify(requests)).toContain('/account/verify-email')
    expect(JSON.stringify(requests)).not.toContain(token)
    const page = await signIn(phone, login, user.username)
    expect([page.heading, phone.cookies.get('gatehouse_link_8080')]).toEqual([
      'Confirm your email address',
      token,
    ])
    expect((await phone.submit(page)).html).toContain('Email address confirmed')
    expect((await stored(user)).email).toBe(wanted)
    expect(phone.cookies.has('gatehouse_link_8080')).toBe(false)
    expect(await phone.get('/account/verify-email')).toMatchObject(gone)
  })

  test('cannot be confirmed in a login that lacks the factor which the owner has added since', async () => {
    const { user, browser: thief, wanted, link } = await asked()
    const owner = openBrowser(app)
    const { key } = await enrolTotp(app, owner, await openEnrolment(owner, user.username))
    const page = await thief.get(link)
    expect(page.html).toContain('Sign in to your account in this browser first')
    expect(page.forms).toEqual([])
    expect((await stored(user)).email).toBe(user.email)
    app.clock.advance(30 * SECOND)
    const asking = await thief.get(linkWith(page, '/account/verify-email/sign-in'))
    expect(asking.heading).toBe('Two-step verification')
    const proven = await thief.submit(asking, { code: codeOf(app, key) }, '/oauth/second-factor')
    expect((await thief.submit(await thief.follow(proven))).html).toContain('Email address confirmed')
    expect((await stored(user)).email).toBe(wanted)
  })

  test('cannot be confirmed by another user, who is not sent in circles', async () => {
    const { user, link } = await asked()
    const neighbour = await addUser(app, `neighbour${users}`)
    await app.events()
    const browser = openBrowser(app)
    const login = await browser.get(linkWith(await browser.get(link), '/account/verify-email/sign-in'))
    const page = await signIn(browser, login, neighbour.username)
    expect([page.status, page.heading, page.forms]).toEqual([200, 'Confirm your email address', []])
    expect(page.html).toContain('Sign in to your account in this browser first')
    expect(await facts()).toEqual([])
    const again = await browser.get(linkWith(page, '/account/verify-email/sign-in'))
    expect((await signIn(browser, again, user.username)).forms).not.toEqual([])
    expect((await stored(user)).email).toBe(user.email)
  })

  test('can be taken by another user before it is confirmed', async () => {
    const { user, browser, wanted, link } = await asked()
    const owner = await addUser(app, 'owner', { email: wanted })
    await app.events()
    const refused = await browser.submit(await browser.get(link))
    expect([refused.status, refused.html.includes('This is already taken')]).toEqual([400, true])
    expect(await app.events()).toEqual([])
    expect((await stored(user)).email).toBe(user.email)
    await app.admin('DELETE', `/users/${owner.id}`)
    expect((await browser.submit(await browser.get(link))).status).toBe(200)
  })

  test('O-34 that another user has gets the same answer, and no mail', async () => {
    const { browser: first, user: other, wanted } = await signedIn()
    const { browser } = await signedIn()
    const free = await ask(first, wanted)
    const taken = await ask(browser, other.email.toUpperCase())
    expect([taken.status, taken.location]).toEqual([free.status, free.location])
    expect((await post()).map(([, subject]) => subject)).toEqual([CONFIRM, ASKED, ASKED])
  })

  test.each([
    [
      'its owner chooses a new password',
      async ({ browser }: { browser: Browser; user: Json }) => {
        const page = await browser.get('/account/change-password')
        const password = 'Another-horse-8'
        await browser.submit(page, { current_password: PASSWORD, password, password_repeat: password })
      },
    ],
    [
      'an administrator sets a password',
      ({ user }: { user: Json }) =>
        app.admin('POST', `/users/${user.id}/reset-password`, { password: PASSWORD }),
    ],
    [
      'all sessions are revoked',
      ({ user }: { user: Json }) => app.admin('DELETE', `/users/${user.id}/sessions`),
    ],
    [
      'the user is disabled',
      async ({ user }: { user: Json }) => {
        await app.admin('PUT', `/users/${user.id}`, { enabled: false })
        await app.admin('PUT', `/users/${user.id}`, { enabled: true })
      },
    ],
    [
      'an administrator changes the address',
      ({ user }: { user: Json }) =>
        app.admin('PUT', `/users/${user.id}`, { email: `moved.${user.email}`, email_verified: true }),
    ],
    [
      'another one is asked for',
      async ({ browser }: { browser: Browser }) => void (await ask(browser, `other${users}@example.com`)),
    ],
    [
      'its owner keeps the old one',
      async ({ browser }: { browser: Browser }) => {
        const page = await browser.get('/account/profile')
        await browser.submit(page, { discard: '1' }, '/account/profile/verify')
      },
    ],
  ])('is discarded when %s', async (_, end) => {
    const person = await asked()
    const { user, link } = person
    await end(person)
    const { email } = await stored(user)
    const browser = openBrowser(app)
    expect(await browser.get(link)).toMatchObject(gone)
    expect((await stored(user)).email).toBe(email)
    expect(email).not.toBe(person.wanted)
  })

  test('is confirmed by no link that went to another address, however late its mail is sent', async () => {
    const { user, browser, wanted } = await signedIn()
    await app.admin('POST', `/users/${user.id}/send-verification`)
    const send = () => Promise.reject(new Error('no such mailbox'))
    expect(await deliverMails({ ...app.context, mail: { send } })).toBe(1)
    await ask(browser, wanted)
    await deliverMails(app.context)
    expect((await browser.submit(await browser.get(linkIn()))).html).toContain('Email address confirmed')
    await ask(browser, user.email)
    app.clock.advance(MINUTE)
    const links = (await post()).filter(([, subject]) => subject === CONFIRM)
    expect(links).toEqual([
      [user.email, CONFIRM],
      [user.email, CONFIRM],
    ])
  })

  test('is in the data download while pending', async () => {
    const { browser, wanted } = await asked()
    const page = await browser.get('/account/data')
    expect(
      JSON.parse((await browser.submit(page, {}, '/account/data/download')).html).user.pending_email,
    ).toBe(wanted)
  })

  test('O-35 can be requested three times an hour, for one mailbox by all users together', async () => {
    const { user, browser } = await signedIn()
    let sent = 0
    for (let i = 0; i < 3; i++) {
      expect((await ask(browser, `v${i}@victim.example`)).status).toBe(303)
      sent += (await post()).length
    }
    expect(sent).toBe(6)
    await app.events()
    const change = { first_name: 'Augusta', email: 'v4@victim.example' }
    const refused = await browser.submit(await browser.get('/account/profile'), change, '/account/profile')
    expect([refused.status, refused.headers.get('retry-after')]).toEqual([429, '3600'])
    expect(refused.html).toContain(
      'This address wasn’t saved: there were too many changes. Wait 60\u00a0minutes',
    )
    expect(formOf(refused, '/account/profile').fields).toMatchObject(change)
    expect(await stored(user)).toMatchObject({ first_name: 'Augusta', email: user.email })
    expect(await facts()).toEqual([['user.updated', { fields: ['first_name'] }]])
    await browser.submit(await browser.get('/account/profile'), {}, '/account/profile/verify')
    expect(await app.events()).toEqual([])
    expect(await post()).toEqual([])
    const answers: number[] = []
    for (let i = 0; i < 3; i++) {
      const { browser: each } = await signedIn()
      for (let j = 0; j < 3; j++) answers.push((await ask(each, `one+${i}${j}@victim.example`)).status)
    }
    expect(answers).toEqual([303, 303, 303, 303, 303, 303, 429, 429, 429])
  })

  test('three forms at once make one change, one event and one mail to each address', async () => {
    const { user, browser, wanted } = await signedIn()
    const page = await browser.get('/account/profile')
    const send = () => browser.submit(page, { email: wanted }, '/account/profile')
    const answers = await Promise.all([send(), send(), send()])
    expect(answers.map(({ status }) => status)).toEqual([303, 303, 303])
    expect(await app.events()).toHaveLength(1)
    expect(await post()).toEqual([
      [wanted, CONFIRM],
      [user.email, ASKED],
    ])
  })

  test.each([
    ['You won! Visit http://evil.example', 'now'],
    ['evil.example', ''],
    ['www.evil', 'example'],
    ['Call', '0900 123456'],
    ['x'.repeat(200), ''],
  ])('a name such as %.20j is left out of the greeting', async (first_name, last_name) => {
    const { browser, wanted } = await signedIn({ first_name, last_name })
    await ask(browser, wanted)
    await post()
    expect(mail.mails[0]?.text).toContain(`Hello ${wanted},`)
    for (const { text, html } of mail.mails) expect(text + html).not.toMatch(/evil|0900|xxxx/)
  })

  test.each([
    ['Dr. Ada', 'Lovelace'],
    ['María José', 'O’Neill-Smith Jr.'],
  ])('%j %j is greeted by name', async (first_name, last_name) => {
    const { browser, wanted } = await signedIn({ first_name, last_name })
    await ask(browser, wanted)
    await post()
    expect(mail.mails[0]?.text).toContain(`Hello ${first_name} ${last_name},`)
  })
})

describe('an address changed by an administrator', () => {
  test('is unverified, and the old address is notified', async () => {
    const { user, wanted } = await signedIn({ email_verified: true })
    const { body } = await app.admin('PUT', `/users/${user.id}`, { email: wanted })
    expect(body).toMatchObject({ email: wanted, email_verified: false })
    expect(await facts()).toEqual([['user.updated', { fields: ['email_verified', 'email'] }]])
    expect(await post()).toEqual([[user.email, CHANGED]])
  })

  test('is verified where the same change says so', async () => {
    const { user, wanted } = await signedIn()
    const whole = await stored({ id: user.id })
    const { body } = await app.admin('PUT', `/users/${user.id}`, { email: wanted, email_verified: true })
    expect(body).toMatchObject({ email: wanted, email_verified: true })
    const back = { ...body, email: whole.email }
    expect((await app.admin('PUT', `/users/${user.id}`, back)).body.email_verified).toBe(true)
  })

  test('is unchanged when only the case differs', async () => {
    const { user } = await signedIn({ email_verified: true })
    const { body } = await app.admin('PUT', `/users/${user.id}`, { email: user.email.toUpperCase() })
    expect(body.email_verified).toBe(true)
    expect(await post()).toEqual([])
  })

  test('is set at once, never pending', async () => {
    const { user } = await signedIn()
    expect((await app.admin('PUT', `/users/${user.id}`, { pending_email: 'x@example.com' })).status).toBe(422)
  })
})

test('a disabled user cannot verify an address', async () => {
  const { user, browser } = await signedIn()
  await app.admin('POST', `/users/${user.id}/send-verification`)
  await post()
  const link = linkIn()
  const page = await browser.get(link)
  expect(page.status).toBe(200)
  await app.admin('PUT', `/users/${user.id}`, { enabled: false })
  await app.events()
  expect(await browser.get(link)).toMatchObject(gone)
  expect(await browser.submit(page)).toMatchObject(gone)
  expect(await app.events()).toEqual([])
})

test('without mail an address cannot be verified, so it cannot be changed', async () => {
  const plain = await startApp()
  const user = await addUser(plain, 'ada')
  const browser = openBrowser(plain)
  const page = await signIn(browser, await browser.get('/account/profile'), 'ada')
  expect(page.html).toContain(
    'Your address is ada@example.com. This server can’t send email yet, so only an administrator can change it.',
  )
  expect(Object.keys(formOf(page, '/account/profile').fields)).not.toContain('email')
  await plain.events()
  const change = { first_name: 'Augusta', email: 'squat@example.com' }
  expect((await browser.submit(page, change, '/account/profile')).status).toBe(303)
  const { body } = await plain.admin('GET', `/users/${user.id}`)
  expect(body).toMatchObject({ first_name: 'Augusta', email: 'ada@example.com' })
  expect((await plain.events()).map(({ metadata }) => metadata)).toEqual([{ fields: ['first_name'] }])
})
