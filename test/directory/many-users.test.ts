import { afterAll, beforeAll, expect, test } from 'bun:test'
import { indexAttributes } from '#src/directory/organizations/attribute-store.ts'
import { saveOrganization } from '#src/directory/organizations/store.ts'
import { countByAttributes, listByAttributes } from '#src/directory/users/attribute-search-store.ts'
import type { PageQuery } from '#src/directory/users/list-store.ts'
import { countUsers, listUsers } from '#src/directory/users/search-store.ts'
import type { Store } from '#src/storage/store.ts'
import { HUGE } from '#test/bench/fill.ts'
import { filledStore } from '#test/support/store.ts'
import { turnsOf } from '#test/support/turns.ts'

/** Milliseconds allowed for filling the database. */
const FILLING = 120_000
const page: PageQuery = { sort: 'username', order: 'asc', after: undefined, limit: 20 }
const filter = { organization_id: HUGE }

let store: Store & { path: string }
beforeAll(async () => {
  store = await filledStore(25_000, 0)
}, FILLING)
afterAll(() => store.close())

/** Invalidates the cached totals of searches. */
const forget = () => store.write(async tx => tx.changed('users'))

test.each(['example ~', 'example qq', 'e ~'])(
  'other requests run while a search for %p compares many users',
  async search => {
    for (const sort of ['created_at', 'username', 'last_login'] as const) {
      await forget()
      const { turns } = await turnsOf(() => listUsers(store, { ...filter, search }, { ...page, sort }))
      expect([sort, turns > 2]).toEqual([sort, true])
    }
    await forget()
    const { turns } = await turnsOf(() => countUsers(store, { ...filter, search }))
    expect(turns).toBeGreaterThan(2)
  },
)

test(
  'other requests run while a search for a common attribute compares many users',
  async () => {
    const { users } = await store.read(async q => ({ users: await q.select().from(q.tables.users) }))
    const own = users.filter(({ organization_id }) => organization_id === HUGE)
    const names = ['color', 'size']
    for (let i = 0; i < own.length; i += 500)
      await store.write(tx =>
        indexAttributes(
          tx,
          own.slice(i, i + 500).map(({ id, organization_id, seq }) => ({
            id,
            organization_id,
            attributes: { color: 'red', size: seq % 5000 === 7 ? 'small' : 'large' },
          })),
          names,
        ),
      )
    await store.write(async tx => {
      const [organization] = (await tx.select().from(tx.tables.organizations)).filter(({ id }) => id === HUGE)
      const user_attributes = names.map(name => ({ name, type: 'string', searchable: true }))
      if (organization) await saveOrganization(tx, { ...organization, settings: { user_attributes } })
    })
    const few = own.filter(({ seq }) => seq % 5000 === 7).map(({ seq }) => seq)
    for (const [values, most] of [
      [{ color: 'red', size: 'small' }, few.length],
      [{ color: 'red' }, 10_001],
    ] as const) {
      await forget()
      const asked = Object.entries(values)
      const total = await turnsOf(() => countByAttributes(store, filter, asked))
      expect([total.result, total.turns > 1]).toEqual([most, true])
      await forget()
      const rows = await turnsOf(() =>
        listByAttributes(store, filter, asked, { ...page, sort: 'created_at' }),
      )
      const shown = rows.result.map(({ seq }) => seq)
      expect(shown).toEqual(
        (most === few.length ? few : own.map(({ seq }) => seq)).sort((a, b) => a - b).slice(0, 20),
      )
      expect(rows.turns).toBeGreaterThan(1)
    }
  },
  FILLING,
)

test('a page across slices in the order of creation has each user once', async () => {
  const all = { ...page, sort: 'created_at', limit: 9_000 } as const
  const users = await listUsers(store, filter, { ...all, order: 'desc' })
  const found = await listUsers(store, { ...filter, search: 'example e' }, { ...all, order: 'desc' })
  expect(found.map(({ seq }) => seq)).toEqual(users.map(({ seq }) => seq))
  expect(found).toHaveLength(9_000)
})

test('a total that two calls ask for is counted once', async () => {
  await forget()
  const search = 'example q'
  let reads = 0
  const counting: Store = {
    ...store,
    read: body => {
      reads++
      return store.read(body)
    },
  }
  await countUsers(counting, { ...filter, search })
  const alone = reads
  await forget()
  reads = 0
  await Promise.all([1, 2, 3].map(() => countUsers(counting, { ...filter, search })))
  // The calls share one count. Each call makes one further read before the count.
  expect(reads).toBe(alone + 2)
})
