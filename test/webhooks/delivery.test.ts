import { afterAll, afterEach, beforeEach, describe, expect, setSystemTime, test } from 'bun:test'
import { mkdtempSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { sweepEvents } from '#src/audit/retention.ts'
import type { Outbound } from '#src/context.ts'
import { selfSigned } from '#src/dev/self-signed.ts'
import { guideSections } from '#src/guide/pages.ts'
import { outboundFetch } from '#src/http/outbound.ts'
import { DAY, HOUR, MINUTE, SECOND } from '#src/lib/duration.ts'
import { deliverMails } from '#src/links/mail-delivery.ts'
import { captureMail } from '#src/mail/captured.ts'
import { purge } from '#src/operations/purge.ts'
import { sealWebhookSecret } from '#src/webhooks/signature.ts'
import { type Json, startApp, type TestApp } from '#test/support/app.ts'
import { create } from '#test/support/callers.ts'
import { addOrganization, addUser } from '#test/support/people.ts'
import { deliverAll } from './deliver.ts'
import { startReceiver, verifyMessage } from './receiver.ts'

let receiver: ReturnType<typeof startReceiver>
let app: TestApp
let hook: Json
const mail = captureMail()

const add = (more: Json = {}) =>
  create(app, '/webhooks', { name: 'Shop', url: receiver.url, events: ['user.*'], ...more })
const status = (code: number, headers?: Record<string, string>) => () =>
  new Response('x', { status: code, ...(headers && { headers }) })
const deliver = () => deliverAll(app.context)
const types = () => receiver.received.map(({ body }) => body.type)
const shown = async () => (await app.admin('GET', `/webhooks/${hook.id}`)).body
const log = async () => (await app.admin('GET', `/webhooks/${hook.id}/deliveries?order=asc`)).body.data

beforeEach(async () => {
  receiver?.stop()
  mail.clear()
  receiver = startReceiver()
  app = await startApp({ outbound_allow: [receiver.target] }, { mail })
  hook = await add()
})
afterEach(() => void setSystemTime())
afterAll(() => receiver.stop())

/** Loads the program of the guide that verifies with this key. */
const verifierOfGuide = async (public_key: string): Promise<(headers: Headers, body: string) => boolean> => {
  const { blocks = [] } =
    guideSections.flatMap(({ pages }) => pages).find(({ subject }) => subject === 'webhooks') ?? {}
  const programs = blocks.flatMap(block => (block.type === 'code' ? [block.text] : []))
  const program = programs.find(text => text.includes('isGenuine')) ?? ''
  const code = program.replace('process.env.WEBHOOK_PUBLIC_KEY', JSON.stringify(public_key))
  const file = join(mkdtempSync(join(tmpdir(), 'gatehouse-')), 'verify.mjs')
  await Bun.write(file, code)
  return (await import(file)).isGenuine
}

describe('a delivery', () => {
  test('WHK-01, WHK-02 is an event of the audit log, which standardwebhooks verifies', async () => {
    const user = await addUser(app, 'ada')
    await deliver()
    const [message] = receiver.received
    const { body: events } = await app.admin('GET', '/events?type=user.created')
    const { type, timestamp, ...data } = events.data[0]
    expect(message?.id).toBe(events.data[0].id)
    expect(message?.body).toEqual({ type: 'user.created', timestamp, data })
    expect(data.target_id).toBe(user.id)
    expect(message?.timestamp).toBe(Math.floor(app.clock.now() / SECOND))
    expect(message && verifyMessage(hook.secret, message)).toEqual(message?.body)
    expect(() => message && verifyMessage(`whsec_${Buffer.alloc(32).toString('base64')}`, message)).toThrow()
  })

  test('WHK-02 is signed with Ed25519 where the webhook says so, as the program of the guide verifies', async () => {
    const signed = await add({ name: 'Signed', signature: 'v1a' })
    expect(signed.secret).toBeNull()
    await addUser(app, 'ada')
    await deliver()
    const message = receiver.received.find(({ signature }) => signature.startsWith('v1a,'))
    if (!message) throw new Error('one message')
    const isGenuine = await verifierOfGuide(signed.public_key)
    const { headers, raw, timestamp, signature } = message
    const verify = (more = {}, body = raw, seconds = 0) => {
      setSystemTime((timestamp + seconds) * 1000)
      return isGenuine(new Headers({ ...headers, ...more }), body)
    }
    expect(verify()).toBe(true)
    expect(verify({ 'webhook-signature': `v1,AAAA v1a,AAAA ${signature}` })).toBe(true)
    const forged = {
      'webhook-id': 'evt_other',
      'webhook-timestamp': `${timestamp + 1}`,
      'webhook-signature': '',
    }
    for (const [name, value] of Object.entries(forged))
      expect([name, verify({ [name]: value })]).toEqual([name, false])
    expect([verify({}, `${raw} `), verify({}, raw, 300), verify({}, raw, -300)]).toEqual([
      false,
      false,
      false,
    ])
  })

  test('WHK-03 is signed by both secrets while a rotation overlaps', async () => {
    const { body } = await app.admin('POST', `/webhooks/${hook.id}/rotate-secret`, { overlap: 3600 })
    expect(body.secret).not.toBe(hook.secret)
    await addUser(app, 'ada')
    await deliver()
    app.clock.advance(HOUR)
    await addUser(app, 'bob')
    await deliver()
    const [first, second] = receiver.received
    if (!first || !second) throw new Error('two messages')
    for (const secret of [hook.secret, body.secret]) verifyMessage(secret, first)
    verifyMessage(body.secret, second)
    expect(() => verifyMessage(hook.secret, second)).toThrow()
  })

  test('WHK-04 has the events of the filter and of the organization, in order; others cost nothing', async () => {
    const { id: organization_id } = await addOrganization(app, 'acme')
    app.context.config.outbound_allow.push(`acme=${receiver.target}`)
    const own = await add({ name: 'Acme', organization_id, events: ['*'] })
    const all = await add({ name: 'All', all_organizations: true, events: ['user.created', 'role.*'] })
    await addUser(app, 'ada')
    await addUser(app, 'eve', { organization_id })
    await create(app, '/roles', { name: 'r', permissions: [], organization_id })
    await deliver()
    const of = (id: string) =>
      app
        .admin('GET', `/webhooks/${id}/deliveries?order=asc`)
        .then(({ body }) => body.data.map((row: Json) => row.event_type))
    expect(await of(hook.id)).toEqual(['user.created'])
    expect((await of(own.id)).filter((type: string) => !type.startsWith('token'))).toEqual([
      'webhook.created',
      'user.created',
      'role.created',
    ])
    expect(await of(all.id)).toEqual(['user.created', 'user.created', 'role.created'])
  })

  test('WHK-05 of a deleted user is left out, except the deletion', async () => {
    const user = await addUser(app, 'gone')
    await app.admin('DELETE', `/users/${user.id}`)
    await deliver()
    expect(types()).toEqual(['user.deleted'])
    await purge(app.context)
    await addUser(app, 'next')
    await deliver()
    expect(types()).toEqual(['user.deleted', 'user.created'])
  })

  test('WHK-05 is not lost when older events are moved into files', async () => {
    const data_dir = mkdtempSync(join(tmpdir(), 'gatehouse-'))
    const settings = { outbound_allow: [receiver.target], event_retention: HOUR, data_dir }
    const brief = await startApp(settings)
    await create(brief, '/webhooks', { name: 'Shop', url: receiver.url, events: ['user.created'] })
    receiver.state.answer = status(500)
    await addUser(brief, 'ada')
    await deliverAll(brief.context)
    brief.clock.advance(2 * HOUR)
    const count = () => brief.context.store.read(q => q.$count(q.tables.events))
    await sweepEvents(brief.context)
    expect(await count()).toBe(1)
    receiver.state.answer = status(200)
    await deliverAll(brief.context)
    await sweepEvents(brief.context)
    expect(await count()).toBe(0)
    await addUser(brief, 'bob')
    await deliverAll(brief.context)
    expect(types()).toEqual(['user.created', 'user.created', 'user.created'])
  })
})

describe('a receiver that fails', () => {
  test('WHK-06 for an hour gets its events in order once it is back, each with its id', async () => {
    receiver.state.answer = status(503)
    const users = [await addUser(app, 'ada'), await addUser(app, 'bob')]
    for (let waited = 0; waited < HOUR; waited += MINUTE) {
      await deliver()
      app.clock.advance(MINUTE)
    }
    expect(new Set(receiver.received.map(({ id }) => id)).size).toBe(1)
    expect(receiver.received.length).toBeLessThan(8)
    const { id } = receiver.received[0] ?? {}
    receiver.received.length = 0
    receiver.state.answer = status(200)
    app.clock.advance(3 * HOUR)
    await deliver()
    expect(receiver.received.map(({ body }) => body.data.target_id)).toEqual(users.map(user => user.id))
    expect(receiver.received[0]?.id).toBe(id ?? '')
    expect(await shown()).toMatchObject({ failing_since: null, failure: null })
  })

  test('WHK-07 with Retry-After is not asked before', async () => {
    receiver.state.answer = status(429, { 'retry-after': '3600' })
    await addUser(app, 'ada')
    await deliver()
    app.clock.advance(HOUR - 1)
    await deliver()
    expect(receiver.received).toHaveLength(1)
    app.clock.advance(1)
    await deliver()
    expect(receiver.received).toHaveLength(2)
  })

  test('WHK-08 with 410 is switched off, with an event and a mail', async () => {
    const admin = await addUser(app, 'admin', { roles: ['admin'] })
    const grace = await addUser(app, 'grace')
    const group = await create(app, '/groups', { name: 'operators', roles: ['admin'] })
    await app.admin('PUT', `/groups/${group.id}/members/${grace.id}`)
    await deliver()
    receiver.received.length = 0
    receiver.state.answer = status(410)
    await addUser(app, 'ada')
    await app.events()
    await deliver()
    expect(await app.events()).toMatchObject([
      { type: 'webhook.disabled', actor_id: null, target_id: hook.id, metadata: { reason: 'gone' } },
    ])
    expect(await shown()).toMatchObject({ enabled: false, disabled_reason: 'gone' })
    await deliverMails(app.context)
    const subject = 'Webhook Shop of Gatehouse is switched off'
    expect(mail.mails.map(({ to, subject }) => [to, subject]).sort()).toEqual([
      [admin.email, subject],
      [grace.email, subject],
    ])
    app.clock.advance(2 * DAY)
    await deliver()
    expect(receiver.received).toHaveLength(1)
  })

  test('WHK-08 for 24 hours is switched off, and continues when it is switched on again', async () => {
    receiver.state.answer = status(500)
    await addUser(app, 'ada')
    for (let waited = 0; waited < DAY + 2 * HOUR; waited += 10 * MINUTE) {
      await deliver()
      app.clock.advance(10 * MINUTE)
    }
    expect(await shown()).toMatchObject({ enabled: false, disabled_reason: 'failing' })
    receiver.received.length = 0
    receiver.state.answer = status(204)
    await addUser(app, 'bob')
    await deliver()
    expect(receiver.received).toEqual([])
    const { status: answered } = await app.admin('PUT', `/webhooks/${hook.id}`, { enabled: true })
    expect(answered).toBe(200)
    await deliver()
    expect(types()).toEqual(['user.created', 'user.created'])
  })

  const answers: Record<string, [() => Response | Promise<Response>, RegExp]> = {
    'a redirect': [() => Response.redirect('http://127.0.0.1:1/', 302), /answered 302/],
    'an endless body': [
      () => new Response(new ReadableStream({ pull: c => c.enqueue(new Uint8Array(65_536)) })),
      /not allowed or got no complete answer/,
    ],
  }
  for (const [name, [answer, failure]] of Object.entries(answers))
    test(`WHK-09 by ${name} is a failure that the log shows`, async () => {
      receiver.state.answer = answer
      await addUser(app, 'ada')
      await deliver()
      expect(await log()).toMatchObject([
        { event_type: 'user.created', failure: expect.stringMatching(failure) },
      ])
    })

  test('WHK-09 at a private address is never called', async () => {
    const { id } = await add({ name: 'Private', url: 'http://127.0.0.2:1/' })
    await addUser(app, 'ada')
    await deliver()
    const { body } = await app.admin('GET', `/webhooks/${id}/deliveries`)
    expect(body.data).toMatchObject([{ status: null, failure: expect.stringMatching(/not allowed/) }])
  })

  test('WHK-09 by hanging, by a bad certificate or by a name with a private address is a failure', async () => {
    const certificate = await selfSigned('localhost')
    const secure = Bun.serve({
      port: 0,
      hostname: '127.0.0.1',
      tls: certificate,
      fetch: () => new Response(),
    })
    const silent = startReceiver()
    // The time of the call is over when its request has arrived.
    const over = new AbortController()
    silent.state.answer = () => {
      over.abort()
      return new Promise(() => {})
    }
    const outbound_allow = [silent.target, `localhost:${secure.port}`]
    const resolve = async () => [{ address: '127.0.0.1', family: 4 }]
    const call = outboundFetch({ outbound_allow }, { resolve })
    const fetch: Outbound = (url, init) =>
      call(url, url === silent.url ? { ...init, signal: over.signal } : init)
    const own = await startApp({ outbound_allow }, { fetch })
    const urls = {
      hanging: silent.url,
      certificate: `https://localhost:${secure.port}/`,
      private: 'https://internal.example/',
    }
    for (const [name, url] of Object.entries(urls))
      await create(own, '/webhooks', { name, url, events: ['user.created'] })
    await addUser(own, 'ada')
    await deliverAll(own.context)
    const { body } = await own.admin('GET', '/webhooks?order=asc')
    expect(body.data.map((each: Json) => [each.name, each.failure])).toEqual(
      Object.keys(urls).map(name => [name, expect.stringMatching(/not allowed or got no complete answer/)]),
    )
    expect(silent.received).toHaveLength(1)
    silent.stop()
    secure.stop(true)
  })

  test('WHK-10 among a thousand others with a filter that fits everything: each gets an event once', async () => {
    const sent = new Map<string, number>()
    const fetch: Outbound = async url => {
      sent.set(String(url), (sent.get(String(url)) ?? 0) + 1)
      return new Response(null)
    }
    const own = await startApp({}, { fetch })
    await create(own, '/webhooks', { name: 'w', url: 'https://w.example/', events: ['*'] })
    await own.context.store.write(async tx => {
      const row = (await tx.select().from(tx.tables.webhooks))[0] as Json
      const rows = Array.from({ length: 999 }, (_, i) => {
        const id = `hook_${i}` as const
        const secret = sealWebhookSecret(own.context, { id }, Buffer.alloc(32))
        return { ...row, id, secret, name: `${i}`, url: `https://w.example/${i}` }
      })
      for (let at = 0; at < rows.length; at += 100)
        await tx.insert(tx.tables.webhooks).values(rows.slice(at, at + 100))
    })
    await deliverAll(own.context)
    expect(sent.size).toBe(1_000)
    expect(new Set(sent.values()).size).toBe(1)
  })

  test('WHK-10 delays no other webhook', async () => {
    const silent = Promise.withResolvers<Response>()
    const heard = Promise.withResolvers<void>()
    const other = startReceiver()
    other.state.answer = () => {
      heard.resolve()
      return new Response(null)
    }
    app.context.config.outbound_allow.push(other.target)
    await add({ name: 'Other', url: other.url })
    receiver.state.answer = () => silent.promise
    await addUser(app, 'ada')
    const delivery = deliver()
    await heard.promise
    silent.resolve(new Response(null))
    await delivery
    other.stop()
  })
})

test('WHK-11 a replay sends the events from a time on again, in order, with the same ids', async () => {
  await addUser(app, 'ada')
  app.clock.advance(HOUR)
  const from = new Date(app.clock.now()).toISOString()
  for (const name of ['bob', 'eve', 'kim']) await addUser(app, name)
  await deliver()
  const ids = receiver.received.map(({ id }) => id)
  receiver.received.length = 0
  expect((await app.admin('POST', `/webhooks/${hook.id}/replay`, { from })).status).toBe(200)
  await deliver()
  expect(receiver.received.map(({ id }) => id)).toEqual(ids.slice(1))
})

test('WHK-11 one event is sent again at once, also by a webhook that is off', async () => {
  await addUser(app, 'ada')
  await deliver()
  const [{ event_id }] = await log()
  await app.admin('PUT', `/webhooks/${hook.id}`, { enabled: false })
  const { status: code, body } = await app.admin('POST', `/webhooks/${hook.id}/deliveries`, { event_id })
  expect([code, body.status]).toEqual([201, 204])
  expect(receiver.received.map(({ id }) => id)).toEqual([event_id, event_id])
  expect(await log()).toHaveLength(2)
})

test('WHK-12 the log keeps the latest 500 attempts', async () => {
  await app.context.store.write(async tx => {
    const row = { webhook_id: hook.id, organization_id: 'org_default' as const, event_id: 'evt_1' as const }
    const more = { event_type: 'x', created_at: 1, duration: 1, status: 200, answer: '' }
    await tx.insert(tx.tables.webhook_deliveries).values(Array(700).fill({ ...row, ...more }))
  })
  await addUser(app, 'ada')
  await deliver()
  const count = await app.context.store.read(q => q.$count(q.tables.webhook_deliveries))
  expect(count).toBe(500)
})
