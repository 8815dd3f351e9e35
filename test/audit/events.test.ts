import { beforeEach, describe, expect, test } from 'bun:test'
import { anonymousActor, record } from '#src/audit/record.ts'
import { eventTypes } from '#src/audit/types.ts'
import { type Json, START, startApp, type TestApp } from '#test/support/app.ts'
import { callerOf, listAll, refused } from '#test/support/callers.ts'
import { addOrganization, addUser } from '#test/support/people.ts'

describe('GET /events', () => {
  let app: TestApp
  beforeEach(async () => {
    app = await startApp()
  })
  const list = async (query = '', token?: string) =>
    (await app.admin('GET', `/events${query}`, undefined, token)).body
  const types = async (query: string) => (await listAll(app, `/events${query}`)).map(({ type }) => type)

  test('EVT-05 shows each field; one event by its id', async () => {
    const user = await addUser(app, 'alice')
    const { data, pagination } = await list('?limit=1')
    expect(data[0]).toEqual({
      id: expect.stringMatching(/^evt_[0-9a-f-]{36}$/),
      type: 'user.created',
      actor_id: 'gatehouse-admin',
      actor_email: null,
      target_id: user.id,
      target_type: 'user',
      organization_id: 'org_default',
      ip_address: '127.0.0.1',
      user_agent: '',
      timestamp: '2026-01-15T12:00:00.000Z',
      metadata: { roles_added: ['user'] },
    })
    const { total } = pagination
    expect(pagination).toEqual({ total, limit: 1, has_more: true, next_cursor: expect.any(String) })
    expect((await listAll(app, '/events')).length).toBe(total)
    expect((await app.admin('GET', `/events/${data[0].id}`)).body).toEqual(data[0])
    for (const id of ['evt_0190a7c0-0000-7000-8000-000000000000', 'x'])
      expect((await app.admin('GET', `/events/${id}`)).status).toBe(404)
  })

  test('an event is found by its id when the clock steps back', async () => {
    for (const step of [60_000, -30_000, 0, 60_000]) {
      app.clock.advance(step)
      await app.context.store.write(tx =>
        record(app.context, tx, {
          type: 'user.updated',
          actor: anonymousActor,
          target_id: 'usr_x',
          target_type: 'user',
          organization_id: 'org_default',
          client_info: { ip_address: '', user_agent: '' },
        }),
      )
    }
    const { data } = await list('?type=user.updated')
    expect(data.length).toBe(4)
    for (const event of data) expect((await app.admin('GET', `/events/${event.id}`)).body).toEqual(event)
  })

  test('events are found by their ids when one millisecond has more events than ids', async () => {
    for (let n = 0; n < 200_000; n++) Bun.randomUUIDv7('hex', app.clock.now())
    const user = await addUser(app, 'late')
    const { data } = await list(`?target_id=${user.id}`)
    for (const event of data) expect((await app.admin('GET', `/events/${event.id}`)).body).toEqual(event)
  })

  test('EVT-02 every filter, newest first by default', async () => {
    const alice = await addUser(app, 'alice')
    app.clock.advance(1000)
    await app.admin('PUT', `/users/${alice.id}`, { enabled: false })
    app.clock.advance(1000)
    const bob = await addUser(app, 'bob')
    expect(await types(`?target_id=${alice.id}`)).toEqual(['user.disabled', 'user.created'])
    expect(await types(`?target_id=${alice.id}&order=asc`)).toEqual(['user.created', 'user.disabled'])
    expect(await types('?type=user.created')).toEqual(['user.created', 'user.created'])
    expect(await types(`?type=user.created&target_id=${bob.id}&actor_id=gatehouse-admin`)).toEqual([
      'user.created',
    ])
    expect(await types('?actor_id=nobody')).toEqual([])
    expect(await types('?ip_address=127.0.0.1&type=user.disabled')).toEqual(['user.disabled'])
    expect(await types('?ip_address=%3A%3Affff%3A127.0.0.1&type=user.disabled')).toEqual(['user.disabled'])
    expect(await types('?ip_address=192.0.2.9')).toEqual([])
    expect(await types('?organization_id=org_default&type=user.disabled')).toEqual(['user.disabled'])
    expect(await types('?organization_id=org_nowhere')).toEqual([])
    expect((await list('?type=user.created')).pagination.total).toBe(2)
  })

  test('EVT-03 from and to are inclusive, in any time zone or as whole days', async () => {
    const moments: [string, string[]][] = [
      ['from=2026-01-15T12:00:02Z', ['third', 'second']],
      ['from=2026-01-15T12:00:02.001Z', ['third']],
      ['to=2026-01-15T12:00:02.000Z', ['second', 'first']],
      ['to=2026-01-15T12:00:01.999Z', ['first']],
      ['from=2026-01-15T13:00:02%2B01:00&to=2026-01-15T07:00:02-05:00', ['second']],
      ['from=2026-01-15&to=2026-01-15', ['third', 'second', 'first']],
      ['from=2026-01-16', []],
      ['to=2026-01-14', []],
      ['from=2026-01-15T12:00:03Z&to=2026-01-15T12:00:01Z', []],
    ]
    for (const name of ['first', 'second', 'third']) {
      app.clock.advance(1000)
      await addUser(app, name)
    }
    for (const [query, names] of moments) {
      const { data, pagination } = await list(`?type=user.created&${query}`)
      const ids = data.map((event: Json) => event.target_id)
      const users = await Promise.all(ids.map((id: string) => app.admin('GET', `/users/${id}`)))
      expect([query, users.map(({ body }) => body.username), pagination.total]).toEqual([
        query,
        names,
        names.length,
      ])
    }
  })

  test('EVT-01 a bad value or unknown name is 422', async () => {
    const bad = {
      type: ['user', 'user.created,user.deleted', ''],
      from: [
        'yesterday',
        '2026',
        '2026-13-01',
        '2026-02-30',
        '2026-01-15T25:00:00Z',
        '2026-01-15T12:00:00',
        '1768478400',
        '2026-01-15 12:00:00Z',
        '',
      ],
      to: ['now', '2026-01-15T12:00:00 01:00'],
      ip_address: ['localhost', '999.1.1.1', ''],
      limit: ['0', '101'],
      order: ['newest'],
      sort: ['timestamp'],
      actor_id: ['a\u0000'],
    }
    for (const [name, values] of Object.entries(bad))
      for (const value of values) {
        const answer = await app.admin('GET', `/events?${name}=${encodeURIComponent(value)}`)
        expect([name, value, refused(answer)]).toEqual([name, value, [name]])
      }
  })

  test('M-01 M-11 a tenant sees only its own events', async () => {
    const [acme, beta] = [await addOrganization(app, 'acme'), await addOrganization(app, 'beta')]
    const token = await callerOf(app, acme.id, ['events:read'])
    await addUser(app, 'anna', { organization_id: acme.id })
    const bert = await addUser(app, 'bert', { organization_id: beta.id })
    const own = await list('', token)
    expect(new Set(own.data.map((event: Json) => event.organization_id))).toEqual(new Set([acme.id]))
    expect(own.pagination.total).toBe(own.data.length)
    expect((await list('?type=user.created', token)).pagination.total).toBe(1)
    for (const query of [
      `?target_id=${bert.id}`,
      `?organization_id=${beta.id}`,
      '?organization_id=org_default',
    ])
      expect([query, (await list(query, token)).pagination.total]).toEqual([query, 0])
    const [foreign] = (await list(`?target_id=${bert.id}`)).data
    expect((await app.admin('GET', `/events/${foreign.id}`, undefined, token)).status).toBe(404)
    expect((await app.admin('GET', `/events/${own.data[0].id}`, undefined, token)).status).toBe(200)
  })

  test('EVT-04 nothing changes or deletes an event', async () => {
    const [event] = (await list()).data
    for (const method of ['PUT', 'DELETE', 'POST'])
      expect((await app.admin(method, `/events/${event.id}`, {})).status).toBe(405)
    expect(app.routes.filter(({ path, method }) => path.startsWith('/events') && method !== 'GET')).toEqual(
      [],
    )
  })

  test('R-23 paging while events are written shows each event once, even within one millisecond', async () => {
    for (let i = 0; i < 10; i++) await addUser(app, `user-${i}`)
    const stable = (await app.context.store.read(q => q.select().from(q.tables.events))).map(({ id }) => id)
    for (const order of ['asc', 'desc']) {
      const shown: string[] = []
      let cursor = ''
      for (let i = 0; i < 100; i++) {
        const { data, pagination } = await list(`?limit=3&order=${order}${cursor}`)
        shown.push(...data.map((event: Json) => event.id))
        if (!pagination.has_more) break
        cursor = `&cursor=${pagination.next_cursor}`
        if (i < 3) await addUser(app, `new-${order}-${i}`)
      }
      expect(new Set(shown).size).toBe(shown.length)
      expect(stable.filter(id => !shown.includes(id))).toEqual([])
    }
  })

  test('events of deleted data are hidden before they are removed, except user.deleted', async () => {
    const acme = await addOrganization(app, 'acme')
    const user = await addUser(app, 'alice', { organization_id: acme.id })
    const { context } = app
    await context.store.write(async tx => {
      for (let i = 0; i < 600; i++)
        await record(context, tx, {
          type: 'user.logout',
          actor: i % 2 ? { id: user.id, email: user.email } : anonymousActor,
          target_id: i % 3 ? user.id : 'sess_x',
          target_type: 'user',
          organization_id: 'org_default',
          client_info: { ip_address: '', user_agent: '' },
          subject_id: user.id,
        })
    })
    await app.admin('DELETE', `/users/${user.id}`)
    const left = await context.store.read(q => q.select().from(q.tables.events))
    expect(left.filter(({ type }) => type === 'user.logout').length).toBeGreaterThan(0)
    expect(await types('?type=user.logout')).toEqual([])
    expect((await list('?type=user.logout')).pagination.total).toBe(0)
    expect(await types(`?target_id=${user.id}`)).toEqual(['user.deleted'])
    await app.admin('DELETE', `/organizations/${acme.id}`)
    expect((await list(`?organization_id=${acme.id}`)).data).toEqual([])
    const hidden = left.find(({ organization_id }) => organization_id === acme.id)
    expect((await app.admin('GET', `/events/${hidden?.id}`)).status).toBe(404)
  })
})

test('every event type of the specification can be recorded and filtered by', async () => {
  const app = await startApp()
  for (const type of eventTypes)
    expect([type, (await app.admin('GET', `/events?type=${type}`)).status]).toEqual([type, 200])
  expect(START).toBe(app.clock.now())
})
