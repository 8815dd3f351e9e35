import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { type OwnEvent, readOwnEvents } from '#src/account/store.ts'
import { countEvents, type EventFilter, eventKeyset, listEvents } from '#src/audit/list-store.ts'
import { type EventRow, eventsBefore, removeEvents } from '#src/audit/store.ts'
import { DAY } from '#src/lib/duration.ts'
import { newId, type UserId } from '#src/lib/ids.ts'
import { countAll } from '#src/storage/counts.ts'
import type { Store } from '#src/storage/store.ts'
import { HUGE, MIDDLE, small } from '#test/bench/fill.ts'
import { hearStatements, plansOf } from '#test/support/statements.ts'
import { filledStore } from '#test/support/store.ts'

/** Milliseconds allowed for filling the database. */
const FILLING = 120_000

describe('among 40,000 events', () => {
  let store: Store & { path: string }
  let everything: EventRow[]
  const statements = new Set<string>()
  let stopHearing: () => void
  beforeAll(async () => {
    store = await filledStore(500, 40_000)
    stopHearing = hearStatements(text => statements.add(text))
    everything = await store.read(q => q.select().from(q.tables.events))
  }, FILLING)
  afterAll(async () => {
    stopHearing()
    await store.close()
  })

  const middle = Date.UTC(2025, 6, 1)
  const filters = (): EventFilter[] => {
    const rare = everything[123]
    const common = { ip_address: '192.0.2.1' }
    return [
      {},
      { type: 'token.refreshed' },
      { type: 'client.created' },
      { type: 'admin.settings_changed' },
      { actor_id: 'backend' },
      { actor_id: rare?.actor_id ?? '' },
      { target_id: rare?.target_id ?? '' },
      common,
      { ip_address: rare?.ip_address ?? '' },
      { from: middle },
      { to: middle },
      { from: middle, to: middle + DAY, type: 'token.issued' },
      { actor_id: 'backend', type: 'user.login' },
      { actor_id: 'backend', ...common },
      { actor_id: 'backend', target_id: rare?.target_id ?? '' },
      { type: 'token.refreshed', ...common, from: middle },
      { type: 'client.created', actor_id: 'backend', ...common },
    ]
  }

  const organizations = [undefined, HUGE, MIDDLE, small(51), newId('org', 0)]

  test.each(organizations)(
    'of organization %p: the first page, the next, a distant one and the total',
    async organization_id => {
      for (const some of filters()) {
        const filter = { ...some, organization_id }
        const fitting = everything.filter(
          event =>
            (['type', 'actor_id', 'target_id', 'ip_address', 'organization_id'] as const).every(
              name => filter[name] === undefined || event[name] === filter[name],
            ) &&
            event.timestamp >= (filter.from ?? 0) &&
            event.timestamp <= (filter.to ?? Number.POSITIVE_INFINITY),
        )
        for (const order of ['asc', 'desc'] as const) {
          const way = order === 'asc' ? 1 : -1
          const all = fitting.toSorted((a, b) => way * (a.timestamp - b.timestamp || a.seq - b.seq))
          for (const start of [0, Math.min(7, all.length), Math.floor(all.length * 0.9)]) {
            const before = all[start - 1]
            const after = before && eventKeyset(before)
            const shown = await listEvents(store, filter, { order, after, limit: 7 })
            expect([filter, order, start, shown]).toEqual([filter, order, start, all.slice(start, start + 7)])
          }
        }
        const total = await countEvents(store, filter)
        expect([filter, total]).toEqual([filter, Math.min(fitting.length, 10_001)])
        if (Object.keys(some).length === 0)
          expect(await store.read(q => countAll(q, 'events', organization_id))).toBe(fitting.length)
      }
    },
  )

  /** Awaits the work. Expects that the event loop turns more than `least` times meanwhile. */
  const turning = async <T>(work: Promise<T>, least: number): Promise<T> => {
    let [turns, isOver] = [0, false]
    const count = (): void => {
      turns += 1
      if (!isOver) setImmediate(count)
    }
    count()
    const result = await work
    isOver = true
    expect(turns).toBeGreaterThan(least)
    return result
  }

  test('other requests run while a page and a total compare many events', async () => {
    const filter = { actor_id: 'backend', ip_address: '192.0.2.1' }
    const fitting = everything.filter(
      ({ actor_id, ip_address }) => actor_id === filter.actor_id && ip_address === filter.ip_address,
    )
    // The server compares 10,000 events of the actor, 5,000 in each turn of the event loop.
    expect(await turning(listEvents(store, filter, { order: 'asc', limit: 40_000 }), 2)).toEqual(fitting)
    expect(await turning(countEvents(store, filter), 2)).toBe(fitting.length)
  })

  test('other requests run while the events of a user are read for the download of own data', async () => {
    const user_id = 'backend' as UserId
    const own = everything
      .filter(event => [event.actor_id, event.target_id, event.subject_id].includes(user_id))
      .toSorted((a, b) => b.timestamp - a.timestamp || b.seq - a.seq)
    expect(own.length).toBeGreaterThan(9_000)
    const read: OwnEvent[] = []
    await turning(
      readOwnEvents(store, user_id, events => void read.push(...events)),
      20,
    )
    expect(read.map(({ id }) => id)).toEqual(own.slice(0, 10_000).map(({ id }) => id))
  })

  test(
    'a remembered total above the counting limit is dropped when events are removed',
    async () => {
      const store = await filledStore(500, 40_000)
      const filter = { type: 'token.refreshed' }
      expect(await countEvents(store, filter)).toBe(10_001)
      const own = everything.filter(({ type }) => type === 'token.refreshed').slice(-5)
      const gone = await store.read(q => eventsBefore(q, own[0]?.timestamp ?? 0, everything.length))
      for (let start = 0; start < gone.length; start += 5_000)
        await store.write(tx => removeEvents(tx, gone.slice(start, start + 5_000)))
      expect(await countEvents(store, filter)).toBe(5)
      await store.close()
    },
    FILLING,
  )

  test('no statement scans the events or sorts them', async () => {
    const after = eventKeyset(everything[20_000] as EventRow)
    for (const organization_id of organizations)
      for (const filter of filters().map(some => ({ ...some, organization_id }))) {
        for (const order of ['asc', 'desc'] as const)
          for (const from of [undefined, after])
            await listEvents(store, filter, { order, after: from, limit: 7 })
        await countEvents(store, filter)
      }
    await store.read(q => eventsBefore(q, middle, 100))
    stopHearing()
    const asked = [...statements].filter(text => /^select/i.test(text) && / from "events" where /.test(text))
    expect(asked.length).toBeGreaterThan(30)
    for (const { text, steps } of await plansOf(store.path, asked)) {
      const slow = steps.filter(({ detail }) => /^SCAN events|TEMP B-TREE|Seq Scan on events/.test(detail))
      expect([text, slow]).toEqual([text, []])
    }
  })
})
