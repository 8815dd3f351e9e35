import { beforeEach, describe, expect, spyOn, test } from 'bun:test'
import type { AddressInfo } from 'node:net'
import { eq } from 'drizzle-orm'
import { SMTPServer } from 'smtp-server'
import type { Mail } from '#src/context.ts'
import { HOUR, MINUTE, SECOND } from '#src/lib/duration.ts'
import { deliverMails } from '#src/links/mail-delivery.ts'
import { mailQueue } from '#src/mail/outbox.ts'
import { smtpTransport } from '#src/mail/smtp.ts'
import { startApp } from '#test/support/app.ts'
import { type Browser, openBrowser } from '#test/support/browser.ts'
import { enrolTotp, linkWith, openEnrolment } from '#test/support/factors.ts'
import { addClient, addUser, authorizeUrl } from '#test/support/people.ts'

const sent: Mail[] = []
let works = true
let during: () => Promise<unknown> = async () => undefined
const send = async (mail: Mail) => {
  if (!works) throw new Error('the mail server is away')
  await during()
  sent.push(mail)
}
const app = await startApp({}, { mail: { send } })
await addClient(app, 'web')
await app.admin('PUT', '/organizations/default', { settings: { email_code: 'users' } })
let machines = 0

const deliver = async () => {
  sent.length = 0
  await deliverMails(app.context)
}

beforeEach(async () => {
  works = true
  await deliver()
  app.clock.advance(2 * HOUR)
})

/** Asks for a code in a new browser. Returns the browser and the page that asks for the code. */
const ask = async (username: string) => {
  const browser = openBrowser(app, { ip: `198.51.100.${++machines}` })
  const page = await browser.get(linkWith(await browser.get(authorizeUrl('web')), '/oauth/email-code'))
  const answer = await browser.submit(page, { username }, '/oauth/email-code')
  return { browser, page: await browser.get(answer.location ?? '') }
}

test('USR-22 a user deleted while the mail server takes the code leaves no event', async () => {
  const user = await addUser(app, 'gone', { email_verified: true })
  await ask(user.username)
  await app.events()
  during = () => app.admin('DELETE', `/users/${user.id}`)
  await deliver()
  during = async () => undefined
  expect(sent.map(({ to }) => to)).toEqual([user.email])
  expect((await app.events()).map(({ type }) => type)).toEqual(['user.deleted'])
})

describe('while the mail server is away', () => {
  test('MCD-05 a code by mail counts once for its mailbox, and is recorded when it is sent', async () => {
    const user = await addUser(app, 'ada', { email_verified: true })
    await app.events()
    works = false
    for (let i = 0; i < 3; i++) await ask(user.username)
    for (let minutes = 0; minutes < 30; minutes++) {
      await deliver()
      app.clock.advance(MINUTE)
    }
    expect([await app.context.store.read(q => q.$count(q.tables.mails)), await app.events()]).toEqual([0, []])
    works = true
    for (let i = 0; i < 2; i++) await ask(user.username)
    await deliver()
    expect(sent.map(({ to }) => to)).toEqual([user.email, user.email])
    expect((await app.events()).map(({ type, target_id }) => [type, target_id])).toEqual(
      Array(2).fill(['user.code_sent', user.id]),
    )
  })
})

describe('MCD-01 a code that is sent late does not end the code of a later request', () => {
  const codes = () => app.context.store.read(async q => q.select().from(q.tables.email_codes))

  test.each(['in another browser', 'on the same page'])('MCD-01 asked for %s', async place => {
    const user = await addUser(app, `late${++machines}`, { email_verified: true })
    works = false
    const { browser, page } = await ask(user.username)
    await deliver()
    app.clock.advance(SECOND)
    works = true
    if (place === 'on the same page') {
      const again = await browser.get(linkWith(page, 'again=1'))
      await browser.submit(again, { username: user.username }, '/oauth/email-code')
    } else await ask(user.username)
    await deliver()
    expect(sent.map(({ to }) => to)).toEqual([user.email])
    await app.events()
    const before = await codes()
    app.clock.advance(MINUTE)
    await deliver()
    expect([sent, await codes(), await app.events()]).toEqual([[], before, []])
  })

  test('MCD-01 it holds back no later mail whose server was killed before it made the code', async () => {
    const user = await addUser(app, `late${++machines}`, { email_verified: true })
    works = false
    await ask(user.username)
    await deliver()
    app.clock.advance(SECOND)
    await ask(user.username)
    const next_attempt_at = app.clock.now() + 2 * MINUTE
    await app.context.store.write(async tx => {
      const { mails } = tx.tables
      await tx.update(mails).set({ attempts: 1, next_attempt_at }).where(eq(mails.attempts, 0))
    })
    works = true
    for (let mail = 0; mail < 2; mail++) {
      app.clock.advance(MINUTE + SECOND)
      await deliver()
      expect(sent.map(({ to }) => to)).toEqual([user.email])
    }
  })
})

describe('a notice of a factor', () => {
  const rename = async (browser: Browser, name: string) => {
    const page = await browser.get('/account/security')
    const form = page.forms.find(({ action }) => action.startsWith('/account/security/rename'))
    await browser.submit(page, { ...form?.fields, name }, form?.action)
  }

  test.each([
    ['My phone', 'My phone'],
    ['Parcel held: pay at evil.example/x', 'Authenticator app'],
  ])('that is named %j calls it %j', async (name, shown) => {
    const user = await addUser(app, `owner${++machines}`)
    const browser = openBrowser(app)
    await enrolTotp(app, browser, await openEnrolment(browser, user.username))
    await rename(browser, name)
    await deliver()
    const [factor] = (await app.admin('GET', `/users/${user.id}/factors`)).body.data
    expect(factor.name).toBe(name)
    await app.admin('DELETE', `/users/${user.id}/factors`)
    await deliver()
    const [letter, ...more] = sent
    expect([letter?.to, more]).toEqual([user.email, []])
    expect(letter?.text).toContain(`“${shown}” was removed`)
    expect(`${letter?.subject}${letter?.text}${letter?.html}`).not.toContain('evil')
  })
})

test('an attempt that the mail server draws out ends before another sender may claim the mail', async () => {
  const [listening, begun, closed] = Array.from({ length: 3 }, () => Promise.withResolvers<void>())
  const server = new SMTPServer({
    authOptional: true,
    disabledCommands: ['STARTTLS'],
    onData: () => begun?.resolve(),
    onClose: () => closed?.resolve(),
  })
  server.listen(0, '127.0.0.1', listening?.resolve)
  await listening?.promise
  const smtp_url = `smtp://127.0.0.1:${(server.server.address() as AddressInfo).port}`
  const times: number[] = []
  const end = new AbortController()
  const timeout = spyOn(AbortSignal, 'timeout').mockImplementation(ms => {
    times.push(ms)
    return end.signal
  })
  const letter = { to: 'ada@example.com', subject: 'Hello', text: 'Hello', html: '' }
  const sending = smtpTransport({ smtp_url, mail_from: 'id@example.com' })?.send(letter)
  const outcome = sending?.then(
    () => 'sent',
    () => 'failed',
  )
  await begun?.promise
  timeout.mockRestore()
  expect(times.map(ms => ms < mailQueue(async () => {}).lease)).toEqual([true])
  end.abort()
  expect(await outcome).toBe('failed')
  await closed?.promise
  await new Promise<void>(done => server.close(done))
})
