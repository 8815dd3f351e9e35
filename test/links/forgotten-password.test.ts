import { beforeEach, describe, expect, test } from 'bun:test'
import { hostActor } from '#src/audit/record.ts'
import { MINUTE, SECOND } from '#src/lib/duration.ts'
import { deliverMails } from '#src/links/mail-delivery.ts'
import { captureMail } from '#src/mail/captured.ts'
import { forgetFailures } from '#src/sign-in/unlock.ts'
import { openApp, startApp } from '#test/support/app.ts'
import { answerOf, formOf, openBrowser, type Page } from '#test/support/browser.ts'
import { codeOf, enrolTotp, linkWith, openEnrolment } from '#test/support/factors.ts'
import {
  addClient,
  addOrganization,
  addUser,
  authorizeUrl,
  logInTo,
  signIn,
  signInLink,
} from '#test/support/people.ts'
import { restarting } from '#test/support/restarting.ts'

const mail = captureMail()
const app = await startApp({}, { mail })
const acme = await addOrganization(app, 'acme')
await addClient(app, 'web')
await addClient(app, 'acme-web', { organization_id: acme.id })
const NEW = 'Another-horse-8'
const choose = { password: NEW, password_repeat: NEW }
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
    mail.mails.find(({ text }) => text.includes(path))?.text ?? '',
  )?.[1]
  if (!link?.startsWith(path)) throw new Error(`no link to ${path}`)
  return link
}
const types = async () => (await app.events()).map(({ type, target_id }) => [type, target_id])

beforeEach(async () => {
  await post()
  await app.events()
})

describe('PAG-69 a forgotten password at a page of any organization', () => {
  /** Opens the page for a forgotten password from a login page that has refused a password. */
  const forgotten = async (username: string, organization: string) => {
    const browser = elsewhere()
    const login = await browser.get('/account')
    const refused = await browser.submit(login, { username, password: 'wrong', organization })
    return { browser, page: await browser.get(linkWith(refused, '/oauth/reset-password')) }
  }

  test('keeps the organization that was typed', async () => {
    const user = await newUser({ organization_id: acme.id })
    const { browser, page } = await forgotten(user.username, 'acme')
    await app.events()
    expect(formOf(page).fields.organization).toBe('acme')
    const answer = await browser.submit(page, { username: user.username })
    expect([answer.heading, await post()]).toEqual([
      'Check your email',
      [[user.email, 'Choose a new password for acme']],
    ])
  })

  test('finds the organization by the domain of an address', async () => {
    await app.admin('PUT', '/organizations/acme', { settings: { login_domains: ['far.example'] } })
    const user = await newUser({ organization_id: acme.id, email: 'finn@far.example' })
    const { browser, page } = await forgotten('someone', '')
    await browser.submit(page, { username: 'finn@far.example' })
    expect(await post()).toEqual([[user.email, 'Choose a new password for acme']])
  })

  test('gives the same answer for an organization that does not exist, and sends nothing', async () => {
    const user = await newUser()
    const answers = []
    for (const organization of ['acme', 'nowhere', 'a\\b']) {
      const { browser, page } = await forgotten(user.username, organization)
      const { status, html } = await browser.submit(page, { username: user.username })
      answers.push([status, html.replaceAll(/own-[\w-]+/g, '')])
    }
    expect(new Set(answers.map(String)).size).toBe(1)
    expect(await post()).toEqual([])
  })

  test('takes no organization when the request names one', async () => {
    const user = await newUser({ organization_id: acme.id })
    const browser = elsewhere()
    const page = await browser.get(linkWith(await browser.get(authorizeUrl('web')), '/oauth/reset-password'))
    expect(formOf(page).fields).not.toHaveProperty('organization')
    await browser.submit(page, { username: user.username, organization: 'acme' })
    expect(await post()).toEqual([])
  })
})

describe('a forgotten password', () => {
  const ask = async (username: string, client = 'web', browser = elsewhere()) => {
    const login = await browser.get(authorizeUrl(client))
    const page = await browser.get(linkWith(login, '/oauth/reset-password'))
    return { browser, page, answer: await browser.submit(page, { username }) }
  }

  test('is replaced through a link by mail; every login ends', async () => {
    const user = await newUser()
    const old = openBrowser(app)
    await logInTo(old, 'web', user.username)
    await post()
    const { browser, answer } = await ask(user.email.toUpperCase())
    expect(answer.html).toContain('sent an email to its address')
    expect(await app.events()).toEqual([])
    expect(await post()).toEqual([[user.email, 'Choose a new password for Gatehouse']])
    const page = await browser.get(linkIn('/account/reset-password'))
    expect(page.heading).toBe('Choose a new password')
    const account = await browser.follow(await browser.submit(page, choose))
    expect(account.heading).toBe('Your account')
    expect(await types()).toEqual([
      ['user.password_changed', user.id],
      ['user.login', user.id],
    ])
    expect((await old.get(authorizeUrl('web'))).heading).toBe('Sign in')
    expect(await post()).toEqual([
      [user.email, 'Your password for Gatehouse was changed'],
      [user.email, 'New sign-in to Gatehouse'],
    ])
    expect((await signIn(old, await old.get(authorizeUrl('web')), user.username)).status).toBe(401)
    expect(
      answerOf(await signIn(old, await old.get(authorizeUrl('web')), user.username, NEW)).code,
    ).toBeString()
  })

  test('the link works once, for half an hour, and opening it does not use it up', async () => {
    const user = await newUser()
    await ask(user.username)
    await post()
    const url = linkIn('/account/reset-password')
    for (let i = 0; i < 3; i++) expect((await elsewhere().get(url)).status).toBe(200)
    const browser = elsewhere()
    const page = await browser.get(url)
    expect((await browser.submit(page, { password: 'short', password_repeat: 'short' })).status).toBe(400)
    expect((await browser.submit(page, choose)).status).toBe(303)
    expect(await browser.get(url)).toMatchObject(gone)
    expect(await browser.submit(page, choose)).toMatchObject(gone)

    await ask(user.username)
    await post()
    const late = linkIn('/account/reset-password')
    app.clock.advance(30 * MINUTE)
    expect(await browser.get(late)).toMatchObject(gone)
  })

  test('only one of fifty uses of one link at once succeeds', async () => {
    const user = await newUser()
    await ask(user.username)
    await post()
    const browser = elsewhere()
    const page = await browser.get(linkIn('/account/reset-password'))
    const answers = await Promise.all(Array.from({ length: 50 }, () => browser.submit(page, choose)))
    expect(answers.filter(({ status }) => status === 303)).toHaveLength(1)
    expect((await types()).filter(([type]) => type === 'user.password_changed')).toHaveLength(1)
  })

  test('a new password revokes every open link', async () => {
    const user = await newUser()
    await ask(user.username)
    await post()
    const url = linkIn('/account/reset-password')
    const other = await signInLink(app, user)
    const browser = elsewhere()
    await browser.submit(await browser.get(other), choose)
    expect(await browser.get(url)).toMatchObject(gone)
  })

  test('does not bypass the second factor', async () => {
    const user = await newUser()
    const enrolling = elsewhere()
    const { key } = await enrolTotp(app, enrolling, await openEnrolment(enrolling, user.username))
    app.clock.advance(30 * SECOND)
    await post()
    const { browser } = await ask(user.username)
    await post()
    const page = await browser.get(linkIn('/account/reset-password'))
    await app.events()
    const step = await browser.follow(await browser.submit(page, choose))
    expect(step.heading).toBe('Two-step verification')
    expect((await browser.get('/account')).heading).toBe('Sign in')
    // Until the second factor is proven, the password and the sessions stay unchanged.
    expect((await types()).map(([type]) => type)).toEqual(['user.first_factor_proven'])
    expect((await enrolling.get('/account')).heading).toBe('Your account')
    const meanwhile = elsewhere()
    const old = await signIn(meanwhile, await meanwhile.get(authorizeUrl('web')), user.username)
    expect(old.heading).toBe('Two-step verification')
    expect((await browser.submit(step, { code: '000000' })).status).toBe(401)
    await app.events()
    const done = await browser.follow(await browser.submit(step, { code: codeOf(app, key) }))
    expect(done.heading).toBe('Your account')
    expect((await types()).map(([type]) => type)).toEqual(['user.password_changed', 'user.login'])
    expect((await enrolling.get('/account')).heading).toBe('Sign in')
    expect((await browser.submit(page, choose)).status).toBe(410)
    app.clock.advance(30 * SECOND)
    // A login that began with the old password cannot be completed.
    expect((await meanwhile.submit(old, { code: codeOf(app, key) })).status).toBe(400)
  })

  test('M-07 is bound to its organization', async () => {
    const user = await newUser({ organization_id: acme.id })
    await ask(user.username, 'web')
    expect(await post()).toEqual([])
    const { browser } = await ask(user.username, 'acme-web')
    expect(await post()).toEqual([[user.email, 'Choose a new password for acme']])
    const url = linkIn('/account/reset-password')
    expect(await browser.get(url.replace('reset-password', 'sign-in'))).toMatchObject(gone)
    expect(await browser.get(url.replace('reset-password', 'verify-email'))).toMatchObject(gone)
    const account = await browser.follow(await browser.submit(await browser.get(url), choose))
    expect(account.html).toContain('acme')
  })

  test('O-67 the address of the link comes only from the settings', async () => {
    const user = await newUser()
    const browser = elsewhere()
    const page = await browser.get(linkWith(await browser.get(authorizeUrl('web')), '/oauth/reset-password'))
    const { fields } = formOf(page)
    const headers = {
      host: 'evil.example',
      'x-forwarded-host': 'evil.example',
      forwarded: 'host=evil.example',
    }
    await browser.post('/oauth/reset-password', { ...fields, username: user.username }, headers)
    await post()
    expect(mail.mails.at(-1)?.text).not.toContain('evil.example')
    expect(linkIn('/account/reset-password')).toBeString()
  })

  test('O-34 users cannot be enumerated: one answer and one row in the outbox for any name', async () => {
    const known = await newUser()
    const disabled = await newUser()
    await app.admin('PUT', `/users/${disabled.id}`, { enabled: false })
    const foreign = await newUser({ organization_id: acme.id })
    const rows = () => app.context.store.read(async q => q.select().from(q.tables.mails))
    const attempt = async (username: string) => {
      const before = (await rows()).length
      const { browser, answer } = await ask(username)
      const { request = '', csrf_token = '' } = formOf(
        await browser.get(answer.html.match(/\/oauth\/login\?request=[\w-]+/)?.[0] ?? ''),
      ).fields
      return {
        status: answer.status,
        rows: (await rows()).length - before,
        cookies: browser.received.length,
        headers: [...answer.headers].filter(([name]) => name !== 'x-request-id'),
        html: answer.html
          .replaceAll(request, 'HANDLE')
          .replaceAll(csrf_token, 'CSRF')
          .replaceAll(answer.headers.get('x-request-id') ?? 'none', 'ID'),
      }
    }
    const wanted = await attempt(known.username)
    expect(wanted.rows).toBe(1)
    for (const name of ['nobody', 'nobody@example.com', disabled.username, foreign.email, 'x'.repeat(10_000)])
      expect(await attempt(name)).toEqual(wanted)
    expect(await post()).toEqual([[known.email, 'Choose a new password for Gatehouse']])
    expect(await app.events()).toEqual([])
  })

  test('O-35 one network gets three mails an hour for an account, and the answer does not show it', async () => {
    const user = await newUser()
    const browser = elsewhere()
    const answers: Page[] = []
    for (let i = 0; i < 6; i++)
      answers.push((await ask(i % 2 ? user.email : user.username, 'web', browser)).answer)
    expect(
      new Set(answers.map(({ status, html }) => `${status} ${html.includes('sent an email')}`)).size,
    ).toBe(1)
    // User name and e-mail address are counted separately: three requests for each.
    expect(await post()).toHaveLength(6)
    await ask(user.username, 'web', browser)
    expect(await post()).toEqual([])
    // Refused requests do not extend the wait.
    app.clock.advance(30 * MINUTE)
    for (let i = 0; i < 2; i++) await ask(user.username, 'web', browser)
    expect(await post()).toHaveLength(1)
    await app.context.store.write(tx => forgetFailures(app.context, tx, user, hostActor))
    await ask(user.username, 'web', browser)
    expect(await post()).toHaveLength(1)
  })

  test('O-35 a stranger’s constant requests do not stop mail to the owner', async () => {
    const user = await newUser()
    const stranger = elsewhere()
    const owner = elsewhere()
    for (let hours = 0; hours < 6; hours++) {
      for (let i = 0; i < 3; i++) await ask(user.username, 'web', stranger)
      await post()
      await ask(user.username, 'web', owner)
      expect(await post()).toEqual([[user.email, 'Choose a new password for Gatehouse']])
      app.clock.advance(55 * MINUTE)
    }
  })

  test('O-35 strangers in many networks cannot fill a mailbox, and the owner always gets a working link', async () => {
    const user = await newUser()
    let sent = 0
    let link = ''
    for (let minutes = 0; minutes < 2 * 60; minutes += 10) {
      for (let i = 0; i < 3; i++) await ask(user.username)
      const mails = await post()
      if (mails.length > 0) link = linkIn('/account/reset-password')
      sent += mails.length
      expect((await elsewhere().get(link)).status).toBe(200)
      app.clock.advance(10 * MINUTE)
    }
    expect(sent).toBeLessThan(30)
  })

  test('O-35 one address may ask twenty times an hour, over restarts, and an IPv6 network counts as one address', async () => {
    let answer: Page | undefined
    for (let i = 0; i < 20; i++) {
      const browser = openBrowser(app, { ip: `2001:db8::${i.toString(16)}` })
      answer = (await ask(`nobody${i}`, 'web', browser)).answer
      expect(answer.status).toBe(200)
    }
    const running = await openApp(app.context)
    const call: typeof app.call = async (path, { ip = '2001:db8::ffff', ...init } = {}) =>
      running.fetch(new Request(new URL(path, app.context.config.url), { redirect: 'manual', ...init }), {
        requestIP: () => ({ address: ip, port: 1, family: 'IPv6' }),
      })
    const browser = openBrowser({ call, context: app.context }, { ip: '2001:db8::ffff' })
    const login = await browser.get(authorizeUrl('web'))
    const page = await browser.get(linkWith(login, '/oauth/reset-password'))
    answer = await browser.submit(page, { username: 'ada' })
    expect([answer.status, answer.headers.get('retry-after')]).toEqual([429, '600'])
    expect((await ask('ada', 'web', openBrowser(app, { ip: '2001:db8:1::1' }))).answer.status).toBe(200)
  })

  test('an empty form says so; a form from another site is refused', async () => {
    const { browser, page, answer } = await ask(' ')
    expect([answer.status, answer.heading]).toEqual([400, 'Forgot your password?'])
    const { fields } = formOf(page)
    const evil = { origin: 'https://evil.example' }
    expect((await browser.post('/oauth/reset-password', { ...fields, username: 'ada' }, evil)).status).toBe(
      403,
    )
    const other = elsewhere()
    expect((await other.post('/oauth/reset-password', { ...fields, username: 'ada' })).status).toBe(403)
    expect(await post()).toEqual([])
  })
})

test('R-24 a restart between any two steps of a forgotten password changes nothing', async () => {
  const user = await newUser()
  const browser = openBrowser(restarting(app), { ip: '198.51.100.250' })
  const login = await browser.get(authorizeUrl('web'))
  const form = await browser.get(linkWith(login, '/oauth/reset-password'))
  await browser.submit(form, { username: user.username })
  await post()
  const page = await browser.get(linkIn('/account/reset-password'))
  const done = await browser.submit(page, choose)
  expect((await browser.follow(done)).heading).toBe('Your account')
  expect(await browser.submit(page, choose)).toMatchObject(gone)
  expect((await types()).filter(([type]) => type === 'user.password_changed')).toHaveLength(1)
})
