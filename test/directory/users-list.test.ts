import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'bun:test'
import { eq } from 'drizzle-orm'
import { keysetOf, type PageQuery } from '#src/directory/users/list-store.ts'
import { countUsers, listUsers, type UserFilter } from '#src/directory/users/search-store.ts'
import type { UserRow } from '#src/directory/users/store.ts'
import { fold } from '#src/lib/text.ts'
import type { Store } from '#src/storage/store.ts'
import { HUGE, MIDDLE, small } from '#test/bench/fill.ts'
import { type Json, startApp, type TestApp } from '#test/support/app.ts'
import { listAll, refused } from '#test/support/callers.ts'
import { addOrganization, addUser } from '#test/support/people.ts'
import { hearStatements, plansOf } from '#test/support/statements.ts'
import { filledStore } from '#test/support/store.ts'

const sorts = ['created_at', 'username', 'email', 'last_login'] as const
const orders = ['asc', 'desc'] as const

describe('GET /users', () => {
  let app: TestApp
  const people = ['dora', 'Anna', 'carl', 'Bert', 'emil', 'fay']
  beforeEach(async () => {
    app = await startApp()
    const acme = await addOrganization(app, 'acme')
    for (const [i, name] of people.entries()) {
      app.clock.advance(1000)
      await addUser(app, name, {
        email: `${'zyxwvu'[i]}@example.com`,
        first_name: name === 'fay' ? 'Zoë' : 'F',
        enabled: i % 2 === 0,
        email_verified: i < 2,
        roles: i < 3 ? ['user', 'admin'] : [],
        ...(i === 4 && { organization_id: acme.id }),
      })
    }
    for (const [name, at] of [
      ['Bert', 3000],
      ['dora', 9000],
      ['fay', 5000],
    ] as const)
      await app.context.store.write(async tx => {
        const { users } = tx.tables
        const [user] = (await tx.select().from(users)).filter(({ username }) => username === name)
        await tx
          .update(users)
          .set({ last_login: at })
          .where(eq(users.id, user?.id ?? 'usr_'))
      })
  })
  const names = async (query: string) => (await listAll(app, `/users${query}`)).map(user => user.username)

  test('USR-03 newest first by default; every sort in both directions, users without a login last', async () => {
    expect(await names('')).toEqual(people.toReversed())
    expect(await names('?order=asc')).toEqual(people)
    expect(await names('?sort=username&order=asc')).toEqual(['Anna', 'Bert', 'carl', 'dora', 'emil', 'fay'])
    expect(await names('?sort=username')).toEqual(['fay', 'emil', 'dora', 'carl', 'Bert', 'Anna'])
    expect(await names('?sort=email&order=asc')).toEqual(people.toReversed())
    expect(await names('?sort=email&order=desc')).toEqual(people)
    expect(await names('?sort=last_login&order=asc')).toEqual(['Bert', 'fay', 'dora', 'Anna', 'carl', 'emil'])
    expect(await names('?sort=last_login&order=desc')).toEqual([
      'dora',
      'fay',
      'Bert',
      'emil',
      'carl',
      'Anna',
    ])
  })

  test('USR-02 filters, alone and combined', async () => {
    expect(await names('?enabled=false&order=asc')).toEqual(['Anna', 'Bert', 'fay'])
    expect(await names('?enabled=true&email_verified=true')).toEqual(['dora'])
    expect(await names('?email_verified=false&sort=username&order=asc')).toEqual([
      'Bert',
      'carl',
      'emil',
      'fay',
    ])
    expect(await names('?role=admin&sort=username&order=asc')).toEqual(['Anna', 'carl', 'dora'])
    expect(await names('?role=admin&organization_id=org_default&enabled=false')).toEqual(['Anna'])
    expect(await names('?role=ghost')).toEqual([])
    expect(await names('?organization_id=org_default&order=asc')).not.toContain('emil')
  })

  test('USR-04 search matches parts of user name, address and both names, in any case; SQL and FTS syntax is literal', async () => {
    expect(await names('?search=AR')).toEqual(['carl'])
    expect(await names('?search=N&role=admin')).toEqual(['Anna'])
    expect(await names('?search=zo%C3%AB')).toEqual(['fay'])
    expect(await names('?search=ZO%C3%8B')).toEqual(['fay'])
    expect(await names('?search=z%40example.com')).toEqual(['dora'])
    expect(await names('?search=%20carl%20')).toEqual(['carl'])
    expect(await names('?search=')).toHaveLength(6)
    for (const term of [
      '%',
      '_',
      'a%l',
      '"',
      '""',
      "'",
      'a OR b',
      'dora*',
      'NOT',
      '(',
      'NEAR(a b)',
      '^dora',
      '\\',
      'a AND carl',
      '-dora',
      'search_text:dora',
      '\ue000',
    ])
      expect([term, await names(`?search=${encodeURIComponent(term)}`)]).toEqual([term, []])
  })

  test('USR-04 each word of a search may be in another field, in any order; short and repeated words too', async () => {
    await addUser(app, 'tbx', { email: 'tb@example.org', first_name: 'Tom', last_name: 'van Berger' })
    await addUser(app, 'tom', { email: 'tom@example.org', first_name: 'Thomas', last_name: 'Meier' })
    for (const term of [
      'Tom van Berger',
      'tom BERGER',
      'berger  tom',
      'tom v',
      'v b',
      'tb tom',
      'rger tb@',
      'va va',
    ])
      expect([term, await names(`?search=${encodeURIComponent(term)}`)]).toEqual([term, ['tbx']])
    expect(await names('?search=tom%20example.org')).toEqual(['tom', 'tbx'])
    expect(await names('?search=berger%20meier')).toEqual([])
    expect(await names('?search=tom%20%22')).toEqual([])
  })

  test('API-12 the envelope: total, limit, has_more, next_cursor', async () => {
    const { body } = await app.admin('GET', '/users?limit=4')
    expect(body.pagination).toEqual({ total: 6, limit: 4, has_more: true, next_cursor: expect.any(String) })
    const next = await app.admin('GET', `/users?limit=4&cursor=${body.pagination.next_cursor}`)
    expect(next.body.pagination).toEqual({ total: 6, limit: 4, has_more: false })
    expect((await app.admin('GET', '/users')).body.pagination.limit).toBe(20)
    for (const [query, total] of [
      ['search=a', 6],
      ['enabled=false', 3],
      ['role=admin', 3],
      ['search=qq', 0],
    ] as const)
      expect([query, (await app.admin('GET', `/users?limit=1&${query}`)).body.pagination.total]).toEqual([
        query,
        total,
      ])
  })

  test('USR-01 a bad value or unknown name is 422', async () => {
    const bad = {
      limit: ['0', '101', 'x', '1.5', ''],
      sort: ['id', 'createdAt'],
      order: ['up'],
      enabled: ['1', 'yes', 'TRUE', ''],
      email_verified: ['0'],
      search: ['a\u0000', 'x'.repeat(257)],
      page: ['2'],
    }
    for (const [name, values] of Object.entries(bad))
      for (const value of values)
        expect([
          name,
          value,
          refused(await app.admin('GET', `/users?${name}=${encodeURIComponent(value)}`)),
        ]).toEqual([name, value, [name]])
    expect(refused(await app.admin('GET', '/users?enabled=true&enabled=false'))).toEqual(['enabled'])
  })

  test('R-23 a cursor that was changed, or made for another query, is 400', async () => {
    const { next_cursor: cursor } = (await app.admin('GET', '/users?limit=2')).body.pagination
    for (const query of [
      `cursor=${cursor}x`,
      'cursor=',
      'cursor=abc',
      `sort=email&cursor=${cursor}`,
      `order=asc&cursor=${cursor}`,
      `enabled=true&cursor=${cursor}`,
      `cursor=${cursor.slice(1)}`,
    ]) {
      const { status, body } = await app.admin('GET', `/users?limit=2&${query}`)
      expect([query, status, body.error]).toEqual([query, 400, 'invalid_request'])
    }
    expect((await app.admin('GET', `/users?limit=3&cursor=${cursor}`)).status).toBe(200)
  })

  test.each(sorts.flatMap(sort => orders.map(order => [sort, order] as const)))(
    'R-23 sorted by %s %s: while users are added and deleted, each remaining user is shown once',
    async (sort, order) => {
      const app = await startApp()
      const stable: string[] = []
      for (let i = 0; i < 12; i++) stable.push((await addUser(app, `stable-${(i * 7) % 12}`)).id)
      const going = await Promise.all([0, 1, 2, 3, 4].map(i => addUser(app, `s-going-${i}`)))
      const shown: string[] = []
      let cursor = ''
      for (let i = 0; ; i++) {
        const { body } = await app.admin('GET', `/users?limit=3&sort=${sort}&order=${order}${cursor}`)
        shown.push(...body.data.map((user: Json) => user.id))
        if (!body.pagination.has_more) break
        cursor = `&cursor=${body.pagination.next_cursor}`
        await addUser(app, `${'amz'[i % 3]}-new-${i}`)
        const leaving = going.pop()
        if (leaving) await app.admin('DELETE', `/users/${leaving.id}`)
      }
      expect(new Set(shown).size).toBe(shown.length)
      expect(stable.filter(id => !shown.includes(id))).toEqual([])
    },
  )
})

/** With this many users, the search uses each of the strategies in search-store. */
const USERS = 25_000
let store: Store & { path: string }
let everybody: (UserRow & { texts: string[] })[]
let holders: Map<string, Set<string>>
const statements = new Set<string>()
let stopHearing: () => void

const key = {
  created_at: 'seq',
  username: 'username_fold',
  email: 'email_fold',
  last_login: 'last_login',
} as const

/** Returns the expected users of a list by filtering all users in memory. */
const fitting = (filter: UserFilter): UserRow[] => {
  const words = fold(filter.search ?? '').split(' ')
  return everybody.filter(
    user =>
      (filter.organization_id === undefined || user.organization_id === filter.organization_id) &&
      (filter.enabled === undefined || user.enabled === filter.enabled) &&
      (filter.email_verified === undefined || user.email_verified === filter.email_verified) &&
      (filter.role === undefined || holders.get(filter.role)?.has(user.id)) &&
      words.every(word => user.texts.some(text => text.includes(word))),
  )
}

const inOrder = (users: UserRow[], sort: PageQuery['sort'], order: PageQuery['order']): UserRow[] => {
  const way = order === 'asc' ? 1 : -1
  return users.toSorted((a, b) => {
    const [x, y] = [a[key[sort]], b[key[sort]]]
    if (x === y) return way * (a.seq - b.seq)
    if (x === null || y === null) return x === null ? 1 : -1
    return x < y ? -way : way
  })
}

const filters: UserFilter[] = [
  {},
  { enabled: false },
  { enabled: true, email_verified: true },
  { email_verified: false },
  { role: 'user' },
  { role: 'staff' },
  { role: 'admin' },
  { role: 'ghost' },
  { role: 'user', enabled: false },
  { search: 'example' },
  { search: 'zoe' },
  { search: 'globex' },
  { search: 'zoe.abbott' },
  { search: 'ZOE.ABBOTT', email_verified: true },
  { search: 'qqqqq' },
  { search: 'zz' },
  { search: 'ab' },
  { search: 'z' },
  { search: '~' },
  { search: 'zoe', enabled: false },
  { search: 'zoe', role: 'staff' },
  { search: 'acme', role: 'admin' },
  { search: '@acme' },
  { search: 'Abbott zoe' },
  { search: 'example globex' },
  { search: 'zoe abbott', role: 'staff' },
  { search: 'example z' },
  { search: 'zoe ~' },
  // Two characters in four code units: a short word that seems longer than an indexed one.
  { search: 'zoe 😀😀' },
  { search: 'zz ab' },
]
const scopes = [undefined, HUGE, MIDDLE, small(51)]
const scoped = scopes.flatMap(organization_id => filters.map(filter => ({ organization_id, ...filter })))

/** Milliseconds allowed for filling the database. */
const FILLING = 120_000

describe('among 25,000 users', () => {
  beforeAll(async () => {
    store = await filledStore(USERS, 0)
    stopHearing = hearStatements(text => statements.add(text))
    await store.read(async q => {
      everybody = (await q.select().from(q.tables.users)).map(user => ({
        ...user,
        texts: [user.username, user.email, user.first_name, user.last_name].map(fold),
      }))
      const rows = await q.select().from(q.tables.user_roles)
      holders = new Map(
        [...Map.groupBy(rows, ({ role_name }) => role_name)].map(([name, of]) => [
          name,
          new Set(of.map(({ user_id }) => user_id)),
        ]),
      )
    })
  }, FILLING)
  afterAll(async () => {
    stopHearing()
    await store.close()
  })

  test.each(scoped)(
    '%j: the first page, the next, a distant one and the total, in every order',
    async filter => {
      const users = fitting(filter)
      for (const sort of sorts)
        for (const order of orders) {
          const all = inOrder(users, sort, order)
          const numbers = (rows: UserRow[]) => rows.map(({ seq }) => seq)
          for (const start of [0, Math.min(5, all.length), Math.floor(all.length * 0.8)]) {
            const before = all[start - 1]
            const page = { sort, order, after: before && keysetOf(sort)(before), limit: 5 }
            const shown = await listUsers(store, filter, page)
            expect([sort, order, start, numbers(shown)]).toEqual([
              sort,
              order,
              start,
              numbers(all.slice(start, start + 5)),
            ])
          }
        }
      expect(await countUsers(store, filter)).toBe(Math.min(users.length, 10_001))
    },
  )

  test.each(['zoe', 'globex', 'ab', 'z', 'example', 'zz', 'zoe example', 'ab z'])(
    'a page of 101 in a search for %p, in every order',
    async search => {
      const users = fitting({ search })
      for (const sort of sorts)
        for (const order of orders) {
          const shown = await listUsers(store, { search }, { sort, order, after: undefined, limit: 101 })
          expect([sort, order, shown.map(({ seq }) => seq)]).toEqual([
            sort,
            order,
            inOrder(users, sort, order)
              .slice(0, 101)
              .map(({ seq }) => seq),
          ])
        }
    },
  )

  test('no statement scans a table of users or sorts more rows than it matched', async () => {
    const after = Object.fromEntries(sorts.map(sort => [sort, keysetOf(sort)(everybody[20_000] as UserRow)]))
    for (const filter of scoped) {
      for (const sort of sorts)
        for (const order of orders)
          for (const from of [undefined, after[sort]])
            await listUsers(store, filter, { sort, order, after: from, limit: 5 })
      await countUsers(store, filter)
    }
    stopHearing()
    const plans = await plansOf(
      store.path,
      [...statements].filter(
        text => /^select/i.test(text) && / from "?(users|user_roles|users_search|matches|\()/.test(text),
      ),
    )
    const isWholeTable = (text: string) => !/ where /.test(text)
    expect(plans.length).toBeGreaterThan(100)
    for (const { text, steps } of plans) {
      if (isWholeTable(text)) continue
      const scans = steps.filter(({ detail }) =>
        /^SCAN (users|user_roles)\b|Seq Scan on (users|user_roles)\b/.test(detail),
      )
      expect([text, scans]).toEqual([text, []])
      // A statement that reads the search index may sort, because it sorts only a few matches.
      const sorts = steps.filter(
        ({ isOutermost, detail }) => !isOutermost && /TEMP B-TREE FOR ORDER BY/.test(detail),
      )
      expect([text, text.includes('users_search') ? [] : sorts]).toEqual([text, []])
    }
  })
})
