import { afterAll, describe, expect, test } from 'bun:test'
import { join } from 'node:path'
import type { Outbound } from '#src/context.ts'
import { HOUR, MINUTE, SECOND } from '#src/lib/duration.ts'
import { openLogger } from '#src/lib/log.ts'
import { startMailDelivery } from '#src/links/mail-delivery.ts'
import { captureMail } from '#src/mail/captured.ts'
import { enqueueMail } from '#src/mail/outbox.ts'
import { claimMail, listDueMails } from '#src/mail/store.ts'
import { deliverLogouts, startLogoutDelivery } from '#src/sessions/logout-delivery.ts'
import { listDueLogouts } from '#src/sessions/logout-store.ts'
import { openPostgres } from '#src/storage/postgres/store.ts'
import type { Store } from '#src/storage/store.ts'
import { startWebhookDelivery } from '#src/webhooks/delivery.ts'
import { startApp, type TestApp } from '#test/support/app.ts'
import { create } from '#test/support/callers.ts'
import { testOnPostgres } from '#test/support/on-postgres.ts'
import { addClient, addOrganization, addUser } from '#test/support/people.ts'
import { temporaryPostgres } from '#test/support/postgres.ts'
import { freshStore, isPostgres } from '#test/support/store.ts'
import { claimsOf, grantTokens } from '#test/support/tokens.ts'
import { until } from '#test/support/until.ts'
import { deliverAll } from '#test/webhooks/deliver.ts'

const jtiOf = (body: unknown): string =>
  claimsOf(String(new URLSearchParams(String(body)).get('logout_token'))).jti

/** Adds an organization, and queues `each` logouts for each of `targets` client ids. */
const enqueue = async (app: TestApp, slug: string, targets: number, each = 1): Promise<void> => {
  const { id: organization_id } = await addOrganization(app, slug)
  const now = app.clock.now()
  const rows = Array.from({ length: targets * each }, (_, i) => ({
    jti: `${slug}-${i}`,
    client_id: `${slug}-${i % targets}`,
    organization_id,
    uri: `https://${slug}.example/${i % targets}`,
    user_id: 'usr_1' as const,
    session_id: 'sess_1' as const,
    created_at: now,
    next_attempt_at: i < targets ? now : Number.MAX_SAFE_INTEGER,
    expires_at: now + 48 * HOUR,
  }))
  await app.context.store.write(async tx => {
    await tx.insert(tx.tables.logouts).values(rows)
    tx.changed('logouts')
  })
}

const waiting = ({ context }: TestApp) =>
  context.store.read(async q => (await q.select().from(q.tables.logouts)).filter(row => row.done_at === null))

describe('dead targets', () => {
  test('DEL-03 of one organization delay no other organization, and get four deliveries at once', async () => {
    const dead = Promise.withResolvers<Response>()
    const alive = Promise.withResolvers<void>()
    const four = Promise.withResolvers<void>()
    let atOnce = 0
    const fetch: Outbound = async url => {
      if (String(url).includes('dead')) {
        if (++atOnce === 4) four.resolve()
        return dead.promise
      }
      alive.resolve()
      return new Response(null)
    }
    const app = await startApp({}, { fetch })
    await enqueue(app, 'dead', 300)
    app.clock.advance(1)
    await enqueue(app, 'alive', 1)
    const delivery = deliverLogouts(app.context)
    await Promise.all([alive.promise, four.promise])
    expect(atOnce).toBe(4)
    dead.resolve(new Response(null))
    expect(await delivery).toBe(301)
    expect(await waiting(app)).toEqual([])
  })

  test('DEL-04 cost nothing between their attempts', async () => {
    const app = await startApp({}, { fetch: async () => new Response(null, { status: 503 }) })
    await enqueue(app, 'dead', 300, 2)
    await deliverLogouts(app.context)
    const due = await app.context.store.read(q => listDueLogouts(q, app.clock.now(), [], 1000))
    expect(due).toEqual([])
    let reads = 0
    const read: Store['read'] = body => {
      reads++
      return app.context.store.read(body)
    }
    expect(await deliverLogouts({ ...app.context, store: { ...app.context.store, read } })).toBe(0)
    expect(reads).toBe(1)
  })
})

test('DEL-02 a target gets its messages in order and one at a time, also after an hour without answer', async () => {
  const got: string[] = []
  let status = 503
  let running = 0
  const fetch: Outbound = async (_, { body }) => {
    expect(++running).toBe(1)
    await Promise.resolve()
    running--
    if (status === 200) got.push(jtiOf(body))
    return new Response(null, { status })
  }
  const app = await startApp({}, { fetch })
  await enqueue(app, 'one', 1, 5)
  for (let waited = 0; waited < HOUR; waited += MINUTE) {
    await Promise.all([deliverLogouts(app.context), deliverLogouts(app.context)])
    app.clock.advance(MINUTE)
  }
  expect(got).toEqual([])
  status = 200
  app.clock.advance(12 * MINUTE)
  await Promise.all([deliverLogouts(app.context), deliverLogouts(app.context)])
  expect(got).toEqual([0, 1, 2, 3, 4].map(i => `one-${i}`))
})

test('DEL-01 a killed sender loses no message, and another takes it after the lease', async () => {
  const asked = Promise.withResolvers<void>()
  let isBack = false
  const got: string[] = []
  const server = Bun.serve({
    port: 0,
    hostname: '127.0.0.1',
    fetch: async request => {
      got.push(jtiOf(await request.text()))
      asked.resolve()
      return isBack ? new Response(null) : new Promise<Response>(() => {})
    },
  })
  afterAll(() => server.stop(true))
  const target = `127.0.0.1:${server.port}`
  const store = await freshStore()
  const app = await startApp({ outbound_allow: [target] }, { store })
  const shop = await addClient(app, 'shop', { backchannel_logout_uri: `http://${target}/` })
  const user = await addUser(app, 'ada')
  for (let i = 0; i < 3; i++) {
    await grantTokens(app, shop, user)
    await app.admin('DELETE', `/users/${user.id}/sessions`)
  }
  const wanted = (await waiting(app)).map(({ jti }) => jti)
  const sender = Bun.spawn([process.execPath, join(import.meta.dir, 'sender.ts'), store.path, target], {
    stdout: 'ignore',
    stderr: 'inherit',
  })
  await asked.promise
  sender.kill('SIGKILL')
  await sender.exited
  isBack = true
  expect(await deliverLogouts(app.context)).toBe(0)
  app.clock.advance(2 * MINUTE)
  expect(await deliverLogouts(app.context)).toBe(3)
  expect(got).toEqual([wanted[0] ?? '', ...wanted])
  expect(await waiting(app)).toEqual([])
})

test('DEL-06 a server on SQLite frees at its start the messages that a killed server had claimed', async () => {
  const logouts: string[] = []
  const messages: string[] = []
  const both = Promise.withResolvers<void>()
  let isBack = false
  const server = Bun.serve({
    port: 0,
    hostname: '127.0.0.1',
    fetch: async request => {
      const id = request.headers.get('webhook-id')
      if (id) messages.push(id)
      else logouts.push(jtiOf(await request.text()))
      if (logouts.length > 0 && messages.length > 0) both.resolve()
      return isBack ? new Response(null) : new Promise<Response>(() => {})
    },
  })
  const target = `127.0.0.1:${server.port}`
  const store = await freshStore()
  const mail = captureMail()
  const app = await startApp({ outbound_allow: [target] }, { store, mail })
  const url = `http://${target}/`
  await create(app, '/webhooks', { name: 'Shop', url, events: ['session.revoked'] })
  const shop = await addClient(app, 'shop', { backchannel_logout_uri: url })
  const user = await addUser(app, 'ada')
  await grantTokens(app, shop, user)
  await app.admin('DELETE', `/users/${user.id}/sessions`)
  const sender = Bun.spawn([process.execPath, join(import.meta.dir, 'sender.ts'), store.path, target], {
    stdout: 'ignore',
    stderr: 'inherit',
  })
  await both.promise
  await app.context.store.write(async tx => {
    const { organization_id, id: user_id } = user
    await enqueueMail(app.context, tx, { kind: 'password_changed', organization_id, user_id }, {})
    const number = (await listDueMails(tx, app.clock.now(), [], 1))[0]?.number ?? 0
    const next_attempt_at = app.clock.now()
    await claimMail(tx, { number, next_attempt_at }, next_attempt_at + 2 * MINUTE, 1)
  })
  sender.kill('SIGKILL')
  await sender.exited
  isBack = true
  app.clock.advance(isPostgres ? 2 * MINUTE + SECOND : SECOND)
  const starts = [startLogoutDelivery, startWebhookDelivery, startMailDelivery]
  const stops = starts.map(start => start(app.context))
  await until(
    async () => (await waiting(app)).length === 0 && messages.length === 2 && mail.mails.length === 1,
  )
  expect(new Set([...logouts, ...messages]).size).toBe(2)
  await Promise.all(stops.map(stop => stop()))
  server.stop(true)
})

test('DEL-07 the log of the server says why a target cannot be reached, what administrators see does not', async () => {
  const lines: string[] = []
  const log = openLogger('warn', line => lines.push(line))
  const app = await startApp({}, { log })
  const url = 'https://10.1.2.3/secret-path'
  const hook = await create(app, '/webhooks', { name: 'Shop', url, events: ['session.revoked'] })
  const shop = await addClient(app, 'shop', { backchannel_logout_uri: url })
  const user = await addUser(app, 'ada')
  await grantTokens(app, shop, user)
  await app.admin('DELETE', `/users/${user.id}/sessions`)
  await deliverLogouts(app.context)
  await deliverAll(app.context)
  expect(lines).toHaveLength(2)
  for (const line of lines) {
    expect(JSON.parse(line)).toMatchObject({ target: 'https://10.1.2.3' })
    expect(line).toContain('The address is private')
    expect(line).not.toContain('secret-path')
  }
  for (const path of ['/clients/shop/logouts', `/webhooks/${hook.id}/deliveries`]) {
    const [{ failure }] = (await app.admin('GET', path)).body.data
    expect(failure).toBe('The call to the other server is not allowed or got no complete answer in time.')
  }
})

testOnPostgres(
  'DEL-05 two copies on PostgreSQL share the messages and send each once, in order',
  async () => {
    const { url, drop } = await temporaryPostgres(true)
    const stores: Store[] = await Promise.all([1, 2].map(() => openPostgres({ url, connections: 3 })))
    const got: [number, string][] = []
    const copyOf = (store: Store | undefined, number: number) =>
      startApp(
        {},
        {
          ...(store && { store }),
          fetch: async (_, { body }) => {
            got.push([number, jtiOf(body)])
            return new Response(null)
          },
        },
      )
    const one = await copyOf(stores[0], 1)
    const other = await copyOf(stores[1], 2)
    await enqueue(one, 'many', 10, 6)
    await Promise.all([deliverLogouts(one.context), deliverLogouts(other.context)])
    while ((await waiting(one)).length > 0)
      await Promise.all([deliverLogouts(one.context), deliverLogouts(other.context)])
    const jtis = got.map(([, jti]) => jti)
    expect(new Set(jtis).size).toBe(60)
    expect(jtis).toHaveLength(60)
    for (let client = 0; client < 10; client++) {
      const own = jtis.map(jti => Number(jti.split('-')[1])).filter(i => i % 10 === client)
      expect(own).toEqual([...own].sort((a, b) => a - b))
    }
    for (const store of stores) await store.close()
    await drop()
  },
)
