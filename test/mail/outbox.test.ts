import { afterAll, beforeEach, describe, expect, test } from 'bun:test'
import type { AddressInfo } from 'node:net'
import { SMTPServer } from 'smtp-server'
import type { Mail } from '#src/context.ts'
import { DAY, HOUR, MINUTE, SECOND } from '#src/lib/duration.ts'
import { openLogger } from '#src/lib/log.ts'
import { deliverMails, startMailDelivery } from '#src/links/mail-delivery.ts'
import { captureMail } from '#src/mail/captured.ts'
import { enqueueNotice, mailQueue } from '#src/mail/outbox.ts'
import { ANSWER_TIMEOUT, smtpOptions, smtpTransport } from '#src/mail/smtp.ts'
import type { MailKind } from '#src/storage/mail-kinds.ts'
import { type Json, startApp, type TestApp } from '#test/support/app.ts'
import { addUser } from '#test/support/people.ts'

const failing = () => {
  const sent: Mail[] = []
  const state = { works: true }
  return {
    state,
    sent,
    send: async (mail: Mail) => {
      if (!state.works) throw new Error('the server is away')
      sent.push(mail)
    },
  }
}

describe('the outbox', () => {
  let mail: ReturnType<typeof failing>
  let app: TestApp
  let ada: Json
  beforeEach(async () => {
    mail = failing()
    app = await startApp({}, { mail })
    ada = await addUser(app, 'ada')
  })
  const rows = () => app.context.store.read(async q => q.select().from(q.tables.mails))
  const put = (user = ada, kind: MailKind = 'password_changed') =>
    app.context.store.write(tx =>
      enqueueNotice(app.context, tx, kind, { ...user, organization_id: 'org_default' }, {}),
    )

  test('keeps a failed mail, retries at growing intervals, and sends it once', async () => {
    mail.state.works = false
    await put()
    const waits: number[] = []
    for (let i = 0; i < 9; i++) {
      expect(await deliverMails(app.context)).toBe(1)
      const [row] = await rows()
      const wait = (row?.next_attempt_at ?? 0) - app.clock.now()
      waits.push(wait / SECOND)
      app.clock.advance(wait - 1)
      expect(await deliverMails(app.context)).toBe(0)
      app.clock.advance(1)
    }
    const pauses = [15, 60, 240, 960, 3840, 15_360, 21_600, 21_600, 21_600]
    expect(waits).toEqual(pauses.map(() => expect.any(Number)))
    expect(waits.map((wait, i) => Math.abs(wait / (pauses[i] ?? 0) - 1) <= 0.2001)).toEqual(
      pauses.map(() => true),
    )
    mail.state.works = true
    expect(await deliverMails(app.context)).toBe(1)
    expect(await deliverMails(app.context)).toBe(0)
    expect(mail.sent.map(({ to, subject }) => [to, subject])).toEqual([
      ['ada@example.com', 'Your password for Gatehouse was changed'],
    ])
    expect(await rows()).toEqual([])
  })

  test('drops a mail that has become useless', async () => {
    mail.state.works = false
    await put()
    await deliverMails(app.context)
    app.clock.advance(3 * DAY)
    mail.state.works = true
    await deliverMails(app.context)
    expect(mail.sent).toEqual([])
    expect(await rows()).toEqual([])
  })

  test('two senders at the same time send each mail once', async () => {
    for (let i = 0; i < 5; i++) await put()
    await Promise.all([deliverMails(app.context), deliverMails(app.context), deliverMails(app.context)])
    expect(mail.sent).toHaveLength(5)
  })

  test('R-24 a mail whose sender died is sent by the next one', async () => {
    await put()
    const begun = Promise.withResolvers<void>()
    const send = () => {
      begun.resolve()
      return new Promise<void>(() => {})
    }
    void deliverMails({ ...app.context, mail: { send } })
    await begun.promise
    expect(await deliverMails(app.context)).toBe(0)
    app.clock.advance(5 * MINUTE)
    expect(await deliverMails(app.context)).toBe(1)
    expect(mail.sent).toHaveLength(1)
  })

  test.each([0, 1])('keeps a mail with the number of a removed one: %i attempts', async attempts => {
    await put()
    const bob = await addUser(app, 'bob')
    const send = async () => {
      await app.admin('DELETE', `/users/${ada.id}`)
      app.clock.advance(attempts)
      await put(bob)
      await app.context.store.write(tx => tx.update(tx.tables.mails).set({ attempts }))
    }
    const first = (sent: Mail) => (sent.to === ada.email ? send() : mail.send(sent))
    await deliverMails({ ...app.context, mail: { send: first } })
    expect(mail.sent.map(({ to }) => to)).toEqual([bob.email])
    expect(await rows()).toEqual([])
  })

  test('sends at most twenty notices of a kind an hour to one user, and what a person waits for before them', async () => {
    const bob = await addUser(app, 'bob', { email_verified: false })
    for (let i = 0; i < 50; i++) await put()
    await put(ada, 'email_changed')
    await app.admin('POST', `/users/${bob.id}/send-verification`)
    await deliverMails(app.context)
    const subjects = mail.sent.map(({ subject }) => subject)
    expect(subjects).toEqual([
      'Confirm your email address for Gatehouse',
      ...Array(20).fill('Your password for Gatehouse was changed'),
      'Your email address for Gatehouse was changed',
    ])
    app.clock.advance(HOUR)
    for (let i = 0; i < 50; i++) await put()
    await deliverMails(app.context)
    expect(mail.sent).toHaveLength(42)
  })

  test('is deleted with its user, and sends nothing to a deleted user', async () => {
    const user = await addUser(app, 'gone')
    await app.context.store.write(tx =>
      enqueueNotice(app.context, tx, 'password_changed', { ...user, organization_id: 'org_default' }, {}),
    )
    await app.admin('DELETE', `/users/${user.id}`)
    expect(await rows()).toEqual([])
  })

  test('is emptied as soon as it has a mail', async () => {
    const arrived = Promise.withResolvers<Mail>()
    const quick = await startApp({}, { mail: { send: async sent => arrived.resolve(sent) } })
    const user = await addUser(quick, 'bob')
    const stop = startMailDelivery(quick.context)
    await quick.context.store.write(tx =>
      enqueueNotice(quick.context, tx, 'password_changed', { ...user, organization_id: 'org_default' }, {}),
    )
    expect((await arrived.promise).to).toBe('bob@example.com')
    await stop()
  })

  test('at a stop, finishes the mail that is being sent and begins no other', async () => {
    const begun = Promise.withResolvers<void>()
    const accepted = Promise.withResolvers<void>()
    const slow = await startApp(
      {},
      {
        mail: {
          send: async sent => {
            mail.sent.push(sent)
            begun.resolve()
            await accepted.promise
          },
        },
      },
    )
    const { context } = slow
    const user = await addUser(slow, 'bob', { email_verified: false })
    const stop = startMailDelivery(context)
    for (let i = 0; i < 3; i++) await slow.admin('POST', `/users/${user.id}/send-verification`)
    await begun.promise
    const stopped = stop()
    accepted.resolve()
    await stopped
    expect(mail.sent).toHaveLength(1)
    expect(await context.store.read(q => q.$count(q.tables.mails))).toBe(2)
  })

  test('stores nothing where no mail server is configured', async () => {
    const plain = await startApp()
    const user = await addUser(plain, 'bob')
    await plain.context.store.write(tx =>
      enqueueNotice(plain.context, tx, 'password_changed', { ...user, organization_id: 'org_default' }, {}),
    )
    expect(await plain.context.store.read(async q => q.select().from(q.tables.mails))).toEqual([])
  })
})

describe('SMTP', () => {
  const received: { from: string; to: string[]; data: string }[] = []
  const server = new SMTPServer({
    authOptional: true,
    disabledCommands: ['STARTTLS'],
    onAuth: ({ username, password }, _, done) =>
      username === 'gate' && password === 'house' ? done(null, { user: 'gate' }) : done(new Error('no')),
    onData: (stream, session, done) => {
      let text = ''
      stream.on('data', chunk => {
        text += chunk
      })
      stream.on('end', () => {
        const { mailFrom, rcptTo } = session.envelope
        received.push({
          from: mailFrom ? mailFrom.address : '',
          to: rcptTo.map(({ address }) => address),
          data: text,
        })
        done()
      })
    },
  })
  const listening = Promise.withResolvers<void>()
  server.listen(0, '127.0.0.1', listening.resolve)
  const address = async (credentials = '') => {
    await listening.promise
    return `smtp://${credentials}127.0.0.1:${(server.server.address() as AddressInfo).port}`
  }
  afterAll(() => server.close())

  const letter = { to: 'ada@example.com', subject: 'Grüße', text: 'Hello', html: '<p>Hello</p>' }

  test('delivers both forms from the configured sender, marked as auto-generated', async () => {
    const mail_from = 'Gatehouse <id@example.com>'
    const transport = smtpTransport({ smtp_url: await address('gate:house@'), mail_from })
    await transport?.send(letter)
    const [mail] = received
    expect([mail?.from, mail?.to]).toEqual(['id@example.com', ['ada@example.com']])
    for (const part of ['Auto-Submitted: auto-generated', 'text/plain', 'text/html', 'Subject: =?UTF-8?'])
      expect(mail?.data).toContain(part)
  })

  test('a server that scans a mail before it answers gets it once: the answer may take two minutes', () => {
    expect(ANSWER_TIMEOUT).toBe(2 * MINUTE)
    expect(smtpOptions('smtp://mail.example', ANSWER_TIMEOUT).socketTimeout).toBe(ANSWER_TIMEOUT)
    expect(mailQueue(async () => {}).lease).toBeGreaterThan(ANSWER_TIMEOUT)
  })

  test('the log has the codes of a refusal, never the address that the server repeats', async () => {
    const strict = new SMTPServer({
      authOptional: true,
      disabledCommands: ['STARTTLS'],
      onRcptTo: ({ address }, _, done) =>
        done(Object.assign(new Error(`5.1.1 <${address}>: unknown`), { responseCode: 550 })),
    })
    const ready = Promise.withResolvers<void>()
    strict.listen(0, '127.0.0.1', ready.resolve)
    await ready.promise
    const smtp_url = `smtp://127.0.0.1:${(strict.server.address() as AddressInfo).port}`
    const lines: string[] = []
    const log = openLogger('info', line => lines.push(line))
    const transport = smtpTransport({ smtp_url, mail_from: 'id@example.com' })
    const app = await startApp({}, { log, ...(transport && { mail: transport }) })
    const user = await addUser(app, 'ada')
    await app.admin('POST', `/users/${user.id}/send-verification`)
    await deliverMails(app.context)
    const [line = ''] = lines.filter(each => each.includes('mail not sent'))
    expect(JSON.parse(line)).toMatchObject({ code: 'EENVELOPE', command: 'RCPT TO', answer: '550 5.1.1' })
    expect(lines.join('')).not.toContain(user.email)
    await new Promise<void>(closed => strict.close(closed))
  })

  test('reports what the server refuses', async () => {
    const transport = smtpTransport({ smtp_url: await address('gate:wrong@'), mail_from: 'id@example.com' })
    expect(await transport?.send(letter).catch(error => error.responseCode)).toBe(535)
  })

  describe('to another machine', () => {
    // The kernel routes 0.0.0.0 to this machine, but the server does not treat this address as local.
    const elsewhere = async (query = '') => `${(await address()).replace('127.0.0.1', '0.0.0.0')}/${query}`
    const send = async (smtp_url: string) =>
      smtpTransport({ smtp_url, mail_from: 'id@example.com' })?.send({ ...letter, subject: smtp_url })

    test('nothing is sent unencrypted unless the URL says so', async () => {
      const count = received.length
      expect(await send(await elsewhere()).catch(error => error.code)).toBe('ETLS')
      expect(await send(await elsewhere('?ignoreTLS=true')).catch(error => error.code)).toBe('ETLS')
      expect(received).toHaveLength(count)
      await send(await elsewhere('?requireTLS=false'))
      expect(received).toHaveLength(count + 1)
    })

    test('STARTTLS is used, and the certificate is verified', async () => {
      const sessions: boolean[] = []
      const secure = new SMTPServer({
        authOptional: true,
        onData: (stream, session, done) => {
          sessions.push(session.secure)
          stream.on('end', done).resume()
        },
      })
      const ready = Promise.withResolvers<void>()
      secure.listen(0, '127.0.0.1', ready.resolve)
      await ready.promise
      const url = `smtp://0.0.0.0:${(secure.server.address() as AddressInfo).port}/`
      expect(await send(url).catch(({ message }) => message)).toMatch(/self.signed|certificate/i)
      await send(`${url}?tls.rejectUnauthorized=false`)
      expect(sessions).toEqual([true])
      await new Promise<void>(closed => secure.close(closed))
    })
  })

  test('is enabled only with both settings', () => {
    expect(smtpTransport({ smtp_url: undefined, mail_from: 'a@b.c' })).toBeUndefined()
    expect(smtpTransport({ smtp_url: 'smtp://x', mail_from: undefined })).toBeUndefined()
  })
})

test('captured mail keeps the newest', async () => {
  const mail = captureMail(2)
  for (const subject of ['1', '2', '3']) await mail.send({ to: '', subject, text: '', html: '' })
  expect(mail.mails.map(({ subject }) => subject)).toEqual(['2', '3'])
  mail.clear()
  expect(mail.mails).toEqual([])
})
