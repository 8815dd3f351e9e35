import { beforeEach, describe, expect, test } from 'bun:test'
import type { Outbound } from '#src/context.ts'
import { deliverMails } from '#src/links/mail-delivery.ts'
import { captureMail } from '#src/mail/captured.ts'
import { applySeed } from '#src/seed/apply.ts'
import { exportSeed } from '#src/seed/export.ts'
import { readSeed } from '#src/seed/read.ts'
import { deliverWebhooks } from '#src/webhooks/delivery.ts'
import { type Json, startApp, type TestApp } from '#test/support/app.ts'
import { callerOf, create } from '#test/support/callers.ts'
import { addOrganization, addUser } from '#test/support/people.ts'
import { allSettled, deliverAll } from './deliver.ts'
import { startReceiver, verifyMessage } from './receiver.ts'

const app = await startApp()
const shop = { name: 'Shop', url: 'https://shop.example/events', events: ['user.*'] }

describe('WHK-14 the permissions', () => {
  test('WHK-14 of changes include events:read', async () => {
    const hook = await create(app, '/webhooks', { ...shop, name: 'Guarded' })
    const token = await callerOf(app, 'org_default', ['webhooks:read', 'webhooks:create', 'webhooks:update'])
    for (const [method, path, body] of [
      ['POST', '/webhooks', shop],
      ['PUT', `/webhooks/${hook.id}`, { enabled: false }],
      ['POST', `/webhooks/${hook.id}/replay`, { from: '2026-01-01T00:00:00Z' }],
    ] as const) {
      const { status, body: answer } = await app.admin(method, path, body, token)
      expect([status, answer.error_description]).toEqual([403, 'The permission events:read is required.'])
    }
    expect((await app.admin('GET', `/webhooks/${hook.id}`, undefined, token)).status).toBe(200)
  })

  test('WHK-14 a secret is in the answer that made it, and in no other', async () => {
    const hook = await create(app, '/webhooks', { ...shop, name: 'Secret' })
    expect(hook.secret).toMatch(/^whsec_[A-Za-z0-9+/]{43}=$/)
    const { body } = await app.admin('GET', `/webhooks/${hook.id}`)
    expect(JSON.stringify(body)).not.toContain('whsec_')
    const rows = await app.context.store.read(q => q.select().from(q.tables.webhooks))
    const stored = rows.map(({ secret }) => secret.toString('base64')).join()
    expect(stored).not.toContain(hook.secret.slice('whsec_'.length, 40))
  })
})

describe('WHK-15 a webhook is refused', () => {
  const bad: Record<string, Json> = {
    'without events': { events: [] },
    'with an unknown event': { events: ['user.vanished'] },
    'with a filter of many stars': { events: ['*****'] },
    'with a relative address': { url: '/hook' },
    'with credentials in the address': { url: 'https://a:b@shop.example/' },
    'with a fragment': { url: 'https://shop.example/#x' },
    'with white space in the address': { url: 'https://shop.example/ ' },
    'with a control character in the address': { url: 'https://shop.example/\0' },
    'with another scheme': { url: 'file:///etc/passwd' },
  }
  for (const [name, change] of Object.entries(bad))
    test(`WHK-15 ${name}`, async () => {
      const { status, body } = await app.admin('POST', '/webhooks', { ...shop, ...change })
      expect([status, body.details[0].field.split('.')[0]]).toEqual([422, Object.keys(change)[0]])
    })

  test('WHK-15 for all organizations, outside the default one', async () => {
    const { id: organization_id } = await addOrganization(app, 'acme')
    const input = { ...shop, organization_id, all_organizations: true }
    const hook = await create(app, '/webhooks', { ...shop, organization_id })
    for (const [method, path, sent] of [
      ['POST', '/webhooks', input],
      ['PUT', `/webhooks/${hook.id}`, { all_organizations: true }],
    ] as const) {
      const { status, body } = await app.admin(method, path, sent)
      expect([status, body.details[0].field]).toEqual([422, 'all_organizations'])
    }
    expect((await app.admin('GET', `/webhooks/${hook.id}`)).body.all_organizations).toBe(false)
  })

  test('WHK-15 when the organization has a hundred', async () => {
    const { id: organization_id } = await addOrganization(app, 'many')
    for (let i = 0; i < 100; i++) await create(app, '/webhooks', { ...shop, organization_id, name: `${i}` })
    const { status } = await app.admin('POST', '/webhooks', { ...shop, organization_id, name: 'one more' })
    expect(status).toBe(409)
  })
})

test('WHK-16 a seed makes and changes a webhook, and an export has its secret when asked', async () => {
  const secret = `whsec_${Buffer.alloc(32, 3).toString('base64')}`
  const other = `whsec_${Buffer.alloc(32, 4).toString('base64')}`
  const own = await startApp()
  const apply = (more: Json) =>
    applySeed(own.context, readSeed({ webhooks: [{ organization: 'default', ...shop, ...more }] }))
  expect(await apply({ secret })).toHaveLength(1)
  expect(await apply({ secret })).toEqual([])
  const exported = await exportSeed(own.context, { secrets: true })
  expect(exported.webhooks).toMatchObject([{ ...shop, secret }])
  expect(JSON.stringify(await exportSeed(own.context, { secrets: false }))).not.toContain('whsec_')
  await own.events()
  await apply({ secret: other, events: ['*'] })
  expect((await own.events()).map(({ type }) => type)).toEqual(['webhook.updated', 'webhook.secret_rotated'])
  expect((await exportSeed(own.context, { secrets: true })).webhooks).toMatchObject([{ secret: other }])
  const { mistakes } = readSeed({ webhooks: [{ ...shop, secret: 'whsec_short' }] })
  expect(mistakes.map(({ path }) => path)).toEqual(['webhooks[0].secret'])
})

test.each([200, 410, 500])(
  'WHK-12 a webhook that is deleted before the answer %i leaves no log',
  async status => {
    const asked = Promise.withResolvers<void>()
    const answer = Promise.withResolvers<Response>()
    const fetch: Outbound = () => {
      asked.resolve()
      return answer.promise
    }
    const own = await startApp({}, { fetch })
    const hook = await create(own, '/webhooks', { ...shop, events: ['*'] })
    const delivery = deliverAll(own.context)
    await asked.promise
    expect((await own.admin('DELETE', `/webhooks/${hook.id}`)).status).toBe(204)
    await own.events()
    answer.resolve(new Response(null, { status }))
    await delivery
    expect(await own.context.store.read(q => q.$count(q.tables.webhook_deliveries))).toBe(0)
    expect(await own.events()).toEqual([])
  },
)

test('WHK-12 a webhook that is deleted while one event is sent leaves no log', async () => {
  const fetch: Outbound = async () => {
    expect((await own.admin('DELETE', `/webhooks/${hook.id}`)).status).toBe(204)
    return new Response(null)
  }
  const own = await startApp({}, { fetch })
  const hook = await create(own, '/webhooks', { ...shop, enabled: false })
  const [{ id: event_id } = {}] = (await own.admin('GET', '/events')).body.data
  const { status } = await own.admin('POST', `/webhooks/${hook.id}/deliveries`, { event_id })
  expect(status).toBe(404)
  expect(await own.context.store.read(q => q.$count(q.tables.webhook_deliveries))).toBe(0)
})

test('WHK-11 a webhook sends no event of another organization', async () => {
  const own = await startApp()
  const { id: organization_id } = await addOrganization(own, 'acme')
  const hook = await create(own, '/webhooks', { ...shop, organization_id })
  const user = await addUser(own, 'ada')
  const [{ id: event_id } = {}] = (await own.admin('GET', `/events?target_id=${user.id}`)).body.data
  const { status } = await own.admin('POST', `/webhooks/${hook.id}/deliveries`, { event_id })
  expect(status).toBe(404)
  expect((await own.admin('GET', `/webhooks/${hook.id}/deliveries`)).body.data).toEqual([])
})

test('WHK-03 WHK-04 after a rotation without overlap a running turn goes on with the new secret alone', async () => {
  const receiver = startReceiver()
  const own = await startApp({ outbound_allow: [receiver.target] })
  const hook = await create(own, '/webhooks', { ...shop, url: receiver.url, events: ['user.created'] })
  const users = [await addUser(own, 'ada'), await addUser(own, 'bob')]
  await own.events()
  let secret: string | undefined
  let beside: number | undefined
  receiver.state.answer = async () => {
    const path = `/webhooks/${hook.id}/rotate-secret`
    secret ??= (await own.admin('POST', path, { overlap: 0 })).body.secret
    beside ??= await deliverWebhooks(own.context)
    return new Response(null, { status: 204 })
  }
  await allSettled(own.context.store)
  expect([await deliverWebhooks(own.context), beside]).toEqual([1, 0])
  const [first, second] = receiver.received
  if (!first || !second || !secret) throw new Error('no message')
  verifyMessage(hook.secret, first)
  verifyMessage(secret, second)
  expect(receiver.received.map(({ body }) => body.data.target_id)).toEqual(users.map(({ id }) => id))
  const { body: stored } = await own.admin('GET', `/webhooks/${hook.id}/deliveries?order=asc`)
  expect(stored.data.map(({ event_id }: Json) => event_id)).toEqual([first.id, second.id])
  expect((await own.events()).map(({ type }) => type)).toEqual(['webhook.secret_rotated'])
  receiver.stop()
})

test('WHK-06 a rotation does not end the pause of a failing webhook', async () => {
  const fetch: Outbound = async () => new Response(null, { status: 500 })
  const own = await startApp({}, { fetch })
  const hook = await create(own, '/webhooks', { ...shop, events: ['user.created'] })
  await addUser(own, 'ada')
  await deliverAll(own.context)
  const row = async () => {
    const [found] = await own.context.store.read(async q => q.select().from(q.tables.webhooks))
    return { attempts: found?.attempts, next_attempt_at: found?.next_attempt_at }
  }
  const before = await row()
  expect(before).toEqual({ attempts: 1, next_attempt_at: expect.any(Number) })
  expect((await own.admin('POST', `/webhooks/${hook.id}/rotate-secret`, {})).status).toBe(200)
  expect([await row(), await deliverWebhooks(own.context)]).toEqual([before, 0])
})

describe('WHK-08 a webhook that is switched off again and again', () => {
  const mail = captureMail()
  const fetch: Outbound = async () => new Response(null, { status: 410 })
  const switchOff = async (own: TestApp, times: number, more: Json = {}) => {
    const hook = await create(own, '/webhooks', { ...shop, ...more })
    for (let i = 0; i < times; i++) {
      await own.admin('PUT', `/webhooks/${hook.id}`, { enabled: true })
      await addUser(own, `user${i}`)
      await deliverAll(own.context)
      expect((await own.admin('GET', `/webhooks/${hook.id}`)).body.enabled).toBe(false)
    }
    return hook
  }
  beforeEach(() => mail.clear())

  test('is reported to the enabled users of its organization who may change webhooks, also through a group', async () => {
    const own = await startApp({}, { fetch, mail })
    const { id: organization_id } = await addOrganization(own, 'acme')
    await create(own, '/roles', { name: 'hooks', permissions: ['webhooks:update'] })
    await create(own, '/roles', { name: 'reader', permissions: ['webhooks:read'] })
    const group = await create(own, '/groups', { name: 'Admins', roles: ['admin'] })
    await addUser(own, 'direct', { roles: ['hooks'] })
    for (const [name, enabled] of [
      ['member', true],
      ['left', false],
    ] as const) {
      const { id } = await addUser(own, name, { enabled })
      await own.admin('PUT', `/groups/${group.id}/members/${id}`)
    }
    await addUser(own, 'disabled', { roles: ['admin'], enabled: false })
    await addUser(own, 'other', { roles: ['reader'] })
    await addUser(own, 'foreign', { roles: ['admin'], organization_id })
    await switchOff(own, 1)
    await deliverMails(own.context)
    expect(mail.mails.map(({ to }) => to).sort()).toEqual(['direct@example.com', 'member@example.com'])
  })

  test('is named by its id in the mail if its name could be a link', async () => {
    const own = await startApp({}, { fetch, mail })
    await addUser(own, 'admin', { roles: ['admin'] })
    const { id } = await switchOff(own, 1, { name: 'Win at evil.example' })
    await deliverMails(own.context)
    expect(mail.mails).toMatchObject([{ subject: `Webhook ${id} of Gatehouse is switched off` }])
    expect(mail.mails[0]?.html).not.toContain('evil.example')
  })

  test('fills no mailbox, and leaves the mail of administrators to this mailbox', async () => {
    const own = await startApp({}, { fetch, mail })
    const admin = await addUser(own, 'admin', { roles: ['admin'] })
    await switchOff(own, 20)
    await deliverMails(own.context)
    expect(mail.mails).toHaveLength(6)
    const { body } = await own.admin('GET', '/events?type=webhook.disabled')
    expect(body.pagination.total).toBe(20)
    const path = `/users/${admin.id}`
    expect((await own.admin('PUT', path, { email: 'new@example.com' })).status).toBe(200)
    const changes = (await own.admin('GET', '/events?type=user.updated')).body
    expect(changes.data[0]).toMatchObject({ target_id: admin.id })
    mail.clear()
    await deliverMails(own.context)
    expect(mail.mails).toMatchObject([{ to: admin.email }])
  })
})
