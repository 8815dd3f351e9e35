/** Tests the stream of new events: GET /events/stream. */

import { afterEach, beforeEach, describe, expect, spyOn, test } from 'bun:test'
import { SQL } from 'bun'
import { inArray } from 'drizzle-orm'
import { hostActor, record } from '#src/audit/record.ts'
import { endFollowing } from '#src/audit/tails.ts'
import { HOUR } from '#src/lib/duration.ts'
import type { Store } from '#src/storage/store.ts'
import { type Json, startApp, type TestApp } from '#test/support/app.ts'
import { openBrowser } from '#test/support/browser.ts'
import { callerOf, create } from '#test/support/callers.ts'
import { testOnPostgres } from '#test/support/on-postgres.ts'
import { addClient, addOrganization, addUser, logInTo } from '#test/support/people.ts'
import { freshStore, isPostgres, openBeside } from '#test/support/store.ts'
import { redeem } from '#test/support/tokens.ts'
import { until } from '#test/support/until.ts'

let store: Awaited<ReturnType<typeof freshStore>>
let app: TestApp
let token: string
beforeEach(async () => {
  store = await freshStore()
  app = await startApp({}, { store })
  token = await callerOf(app, 'org_default', ['events:read'])
})
afterEach(() => endFollowing(app.context))

const open = (query = '', bearer = token) =>
  app.call(`/api/v1/admin/events/stream${query}`, { headers: { authorization: `Bearer ${bearer}` } })

/**
 * Returns `next`, which reads the next message of a stream, and `cancel`. `next` returns undefined at the end
 * of the stream.
 */
const readerOf = (answer: Response) => {
  const reader = answer.body?.pipeThrough(new TextDecoderStream()).getReader()
  let text = ''
  const next = async (): Promise<{ id?: string; event?: string; data?: Json } | undefined> => {
    for (;;) {
      const end = text.indexOf('\n\n')
      if (end < 0) {
        const { value, done } = (await reader?.read()) ?? { done: true }
        if (done) return undefined
        text += value
        continue
      }
      const lines = text.slice(0, end).split('\n')
      text = text.slice(end + 2)
      const fields = Object.fromEntries(lines.map(line => line.split(/: ?(.*)/s)))
      if (fields.data !== undefined) return { ...fields, data: JSON.parse(fields.data) }
    }
  }
  return { next, cancel: () => reader?.cancel() }
}

const update = {
  type: 'user.updated',
  target_type: 'user',
  organization_id: 'org_default',
  ...hostActor,
} as const
const say = (writer: Store, target_id: string, more: Json = {}) =>
  writer.write(tx => record(app.context, tx, { ...update, target_id, ...more }))

test('EVT-20 each new event is sent once, in order, as the list shows it; earlier events are not sent', async () => {
  await say(store, 'usr_before')
  const answer = await open()
  expect([answer.status, answer.headers.get('content-type'), answer.headers.get('cache-control')]).toEqual([
    200,
    'text/event-stream',
    'no-store',
  ])
  const { next } = readerOf(answer)
  const user = await addUser(app, 'alice')
  await say(store, 'usr_second')
  const [first, second] = [await next(), await next()]
  expect(first?.data).toMatchObject({ type: 'user.created', target_id: user.id })
  expect(first?.id).toBe(first?.data.id)
  expect((await app.admin('GET', `/events/${first?.id}`)).body).toEqual(first?.data)
  expect(second?.data.target_id).toBe('usr_second')
})

test('EVT-20 events are sent that are written at once after the newest ones were removed', async () => {
  await say(store, 'usr_before')
  const { next } = readerOf(await open())
  const removed = ['usr_first', 'usr_second']
  for (const target of removed) await say(store, target)
  for (const target of removed) expect((await next())?.data.target_id).toBe(target)
  // A failover that loses events sets the sequence back.
  if (isPostgres) {
    await using sql = new SQL({ url: store.path, max: 1 })
    await sql.unsafe("SELECT setval('events_seq_seq', (SELECT max(seq) - 2 FROM events))")
  }
  await store.write(async tx => {
    const { events } = tx.tables
    await tx.delete(events).where(inArray(events.target_id, removed))
    for (const target of ['usr_third', 'usr_fourth', 'usr_fifth'])
      await record(app.context, tx, { ...update, target_id: target })
  })
  await say(store, 'usr_sixth')
  for (const target of ['usr_third', 'usr_fourth', 'usr_fifth', 'usr_sixth'])
    expect((await next())?.data.target_id).toBe(target)
})

test('EVT-20 a stream that opens beside another one sends no earlier event', async () => {
  const first = readerOf(await open())
  await say(store, 'usr_before')
  const second = readerOf(await open())
  await say(store, 'usr_after')
  expect([await first.next(), await first.next()].map(message => message?.data.target_id)).toEqual([
    'usr_before',
    'usr_after',
  ])
  expect((await second.next())?.data.target_id).toBe('usr_after')
})

testOnPostgres('EVT-20 a stream sends the events of transactions that were open at its start', async () => {
  if (!isPostgres) return
  const first = readerOf(await open())
  const [writing, held] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()]
  const during = store.write(async tx => {
    await record(app.context, tx, { ...update, target_id: 'usr_during' })
    writing.resolve()
    await held.promise
  })
  await writing.promise
  await say(store, 'usr_before')
  const second = readerOf(await open())
  held.resolve()
  await during
  await say(store, 'usr_after')
  const targets = async ({ next }: typeof first, count: number) => {
    const messages = []
    for (let n = 0; n < count; n++) messages.push((await next())?.data.target_id)
    return messages.toSorted()
  }
  expect(await targets(first, 3)).toEqual(['usr_after', 'usr_before', 'usr_during'])
  expect(await targets(second, 2)).toEqual(['usr_after', 'usr_during'])
})

testOnPostgres('EVT-20 a stream that opens during a transaction sends no earlier event', async () => {
  if (!isPostgres) return
  await say(store, 'usr_before')
  const sql = new SQL({ url: store.path, max: 1 })
  const { next } = await sql
    .begin(async held => {
      await held.unsafe('SELECT pg_current_xact_id()')
      const opening = open()
      await say(store, 'usr_during')
      return { opening }
    })
    .then(async ({ opening }) => readerOf(await opening))
  await say(store, 'usr_after')
  expect(['usr_during', 'usr_after']).toContain((await next())?.data.target_id)
  await sql.close()
})

test('EVT-20 events of another copy arrive too, and those that fit no filter are left out', async () => {
  const beside = await openBeside(store.path)
  const { next } = readerOf(await open('?type=user.updated&target_id=usr_wanted'))
  await addUser(app, 'alice')
  await say(store, 'usr_other')
  await say(beside, 'usr_wanted')
  expect((await next())?.data).toMatchObject({ type: 'user.updated', target_id: 'usr_wanted' })
  await beside.close()
})

test('EVT-20 a filter that the event list refuses is refused here too', async () => {
  for (const query of ['?type=user.exploded', '?actor_id=', '?from=2026-01-01', '?limit=5'])
    expect([query, (await open(query)).status]).toEqual([query, 422])
})

test('EVT-20 a stream that is ended while it opens is refused', async () => {
  const streams = app.context.tails.open
  const added = spyOn(streams, 'add').mockImplementationOnce(tail => {
    queueMicrotask(() => endFollowing(app.context))
    return Set.prototype.add.call(streams, tail)
  })
  const answer = await open()
  added.mockRestore()
  expect([answer.status, answer.headers.get('retry-after'), streams.size]).toEqual([503, '1', 0])
  expect((await answer.json()).error).toBe('temporarily_unavailable')
  expect((await open()).status).toBe(200)
})

test('EVT-21 a caller of a tenant gets only the events of that tenant, with any filter', async () => {
  const acme = await addOrganization(app, 'acme')
  const beta = await addOrganization(app, 'beta')
  const own = await callerOf(app, acme.id, ['events:read'])
  const all = readerOf(await open('', own))
  const foreign = readerOf(await open(`?organization_id=${beta.id}`, own))
  const chosen = readerOf(await open(`?organization_id=${beta.id}`))
  for (const [target, { id }] of [
    ['usr_beta', beta],
    ['usr_acme', acme],
  ] as const)
    await say(store, target, { organization_id: id })
  expect((await all.next())?.data.target_id).toBe('usr_acme')
  expect((await chosen.next())?.data.target_id).toBe('usr_beta')
  endFollowing(app.context)
  expect([await foreign.next(), await all.next(), await chosen.next()]).toEqual([
    undefined,
    undefined,
    undefined,
  ])
})

describe('EVT-22 the stream ends with the refusal', () => {
  let user: Json
  let reader: ReturnType<typeof readerOf>
  beforeEach(async () => {
    await create(app, '/roles', { name: 'auditor', permissions: ['events:read'] })
    user = await addUser(app, 'alice', { roles: ['auditor', 'user'] })
    const client = await addClient(app, 'tool', { scopes: ['openid', 'events:read'] })
    const { code } = await logInTo(openBrowser(app), 'tool', 'alice', { scope: 'openid events:read' })
    const { access_token } = (await redeem(app, client, code ?? '')).body
    reader = readerOf(await open('?type=role.created', access_token))
  })

  const endings: [what: string, status: number, act: () => Promise<unknown>][] = [
    ['when the session is revoked', 401, () => app.admin('DELETE', `/users/${user.id}/sessions`)],
    ['when the user is disabled', 401, () => app.admin('PUT', `/users/${user.id}`, { enabled: false })],
    ['when the user is deleted', 401, () => app.admin('DELETE', `/users/${user.id}`)],
    ['when the role is taken', 403, () => app.admin('PUT', `/users/${user.id}`, { roles: ['user'] })],
    ['when the token expires', 401, async () => app.clock.advance(HOUR)],
  ]
  for (const [what, status, act] of endings)
    test(what, async () => {
      await act()
      expect(await reader.next()).toMatchObject({ event: 'error', data: { status } })
      expect(await reader.next()).toBeUndefined()
      expect(app.context.tails.open.size).toBe(0)
    })

  test('when the client, or its organization, is deleted', async () => {
    const acme = await addOrganization(app, 'acme')
    const own = readerOf(await open('', await callerOf(app, acme.id, ['events:read'])))
    const other = readerOf(await open('?type=role.created'))
    const clients = (await app.admin('GET', '/clients?limit=100')).body.data
    const caller = clients.find(
      ({ organization_id, name }: Json) => organization_id !== acme.id && name === 'Caller',
    )
    await app.admin('DELETE', `/clients/${caller.client_id}`)
    expect(await other.next()).toMatchObject({ event: 'error', data: { status: 403 } })
    await app.admin('DELETE', `/organizations/${acme.id}`)
    let last: Json
    for (let message = await own.next(); message; message = await own.next()) last = message
    expect(last).toMatchObject({ event: 'error', data: { status: 401 } })
  })
})

describe('EVT-23 streams are bounded', () => {
  test('to five for a caller; a closed stream makes room', async () => {
    const answers = await Promise.all(Array.from({ length: 6 }, () => open()))
    expect(answers.map(({ status }) => status).sort()).toEqual([200, 200, 200, 200, 200, 429])
    expect(answers.find(({ status }) => status === 429)?.headers.get('retry-after')).toBe('15')
    expect((await open('', await callerOf(app, 'org_default', ['events:read']))).status).toBe(200)
    await answers.find(({ status }) => status === 200)?.body?.cancel()
    expect((await open()).status).toBe(200)
  })

  test('to 200 for a copy of the server', async () => {
    const callers = await Promise.all(
      Array.from({ length: 40 }, () => callerOf(app, 'org_default', ['events:read'])),
    )
    for (const caller of callers)
      for (let n = 0; n < 5; n++) expect((await open('', caller)).status).toBe(200)
    expect(app.context.tails.open.size).toBe(200)
    expect((await open()).status).toBe(429)
  })

  test('to 100 for an organization other than the default one, so that streams are left for others', async () => {
    const { id } = await addOrganization(app, 'many-streams')
    const callers = await Promise.all(Array.from({ length: 21 }, () => callerOf(app, id, ['events:read'])))
    const statuses: number[] = []
    for (const caller of callers) for (let n = 0; n < 5; n++) statuses.push((await open('', caller)).status)
    expect(statuses).toEqual([...Array(100).fill(200), ...Array(5).fill(429)])
    expect((await open()).status).toBe(200)
  })

  test('to 150 for all organizations but the default one, so that streams are left for its callers', async () => {
    const organizations = [await addOrganization(app, 'first'), await addOrganization(app, 'second')]
    const statuses: number[] = []
    for (const { id } of organizations)
      for (let i = 0; i < 16; i++) {
        const caller = await callerOf(app, id, ['events:read'])
        for (let n = 0; n < 5; n++) statuses.push((await open('', caller)).status)
      }
    expect(statuses).toEqual([...Array(150).fill(200), ...Array(10).fill(429)])
    expect((await open()).status).toBe(200)
  })

  /** Records events of 4,000 characters in one write, about users with consecutive numbers. */
  const sayMany = (count: number) =>
    store.write(async tx => {
      const metadata = { text: 'x'.repeat(4000) }
      for (let n = 0; n < count; n++)
        await record(app.context, tx, { ...update, target_id: `usr_${n}`, metadata })
    })

  test('never by a burst of events, which a reader that keeps up gets in full', async () => {
    const { next } = readerOf(await open())
    await sayMany(600)
    for (let n = 0; n < 600; n++) expect((await next())?.data.target_id).toBe(`usr_${n}`)
    expect(app.context.tails.open.size).toBe(1)
  })

  test('in the events that wait for a slow reader', async () => {
    expect((await open()).status).toBe(200)
    const metadata = { text: 'x'.repeat(4000) }
    for (let n = 0; n < 80; n++) await say(store, 'usr_x', { metadata })
    await until(() => app.context.tails.open.size === 0)
  })

  test('and the end of a slow stream leaves the others open', async () => {
    expect((await open()).status).toBe(200)
    const { next } = readerOf(await open())
    await sayMany(80)
    for (let n = 0; n < 80; n++) expect((await next())?.data.target_id).toBe(`usr_${n}`)
    await until(() => app.context.tails.open.size === 1)
    await say(store, 'usr_later')
    expect((await next())?.data.target_id).toBe('usr_later')
  })

  test('and a stream that is closed during the check of its caller leaves the others open', async () => {
    const { body } = await open()
    const { next } = readerOf(await open())
    const [tail] = app.context.tails.open
    const look = tail?.look
    if (!tail || !look) throw new Error('no stream is open')
    tail.look = async told => {
      const looked = look(told)
      if (told.length > 0) await body?.cancel()
      await looked
    }
    for (const target_id of ['usr_first', 'usr_second']) {
      await say(store, target_id)
      expect((await next())?.data.target_id).toBe(target_id)
    }
    expect(app.context.tails.open.size).toBe(1)
  })

  test('a lost connection leaves none', async () => {
    const server = Bun.serve({
      hostname: '127.0.0.1',
      port: 0,
      fetch: (request, server) => app.fetch(request, server),
    })
    const gone = new AbortController()
    const headers = { authorization: `Bearer ${token}` }
    const { status } = await fetch(`${server.url}api/v1/admin/events/stream`, {
      headers,
      signal: gone.signal,
    })
    expect([status, app.context.tails.open.size]).toEqual([200, 1])
    gone.abort()
    await until(() => app.context.tails.open.size === 0)
    await server.stop(true)
  })
})
