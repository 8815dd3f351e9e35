import { describe, expect, test } from 'bun:test'
import { applySeed } from '#src/seed/apply.ts'
import { readSeed } from '#src/seed/read.ts'
import type { Transaction } from '#src/storage/store.ts'
import { startApp } from '#test/support/app.ts'
import { freshStore, isPostgres, openBeside } from '#test/support/store.ts'

describe('a file with more changes than one transaction holds on PostgreSQL', () => {
  const users = Array.from({ length: 60 }, (_, i) => ({
    username: `user${i}`,
    email: `user${i}@example.com`,
  }))

  /** Returns the app with a function that runs right before the n-th write of an apply. */
  const watched = async (before: (write: number) => unknown = () => {}) => {
    const app = await startApp()
    let writes = 0
    const store = {
      ...app.context.store,
      write: async <T>(body: (tx: Transaction) => Promise<T>): Promise<T> => {
        await before(++writes)
        return app.context.store.write(body)
      },
    }
    return { app, context: { ...app.context, store }, writes: () => writes }
  }

  test('is applied in several, with other writes between, and in none when it changes nothing', async () => {
    const { app, context, writes } = await watched()
    await app.events()
    expect(await applySeed(context, readSeed({ users }))).toHaveLength(60)
    expect(writes()).toBe(isPostgres ? 3 : 1)
    expect((await app.events()).map(({ type }) => type)).toEqual(Array(60).fill('user.created'))
    expect((await app.admin('GET', '/users')).body.pagination.total).toBe(60)
    expect(await applySeed(context, readSeed({ users }), { dry_run: true })).toEqual([])
    expect(writes()).toBe(isPostgres ? 3 : 1)
    expect(await applySeed(context, readSeed({ users }))).toEqual([])
    expect(writes()).toBe(isPostgres ? 3 : 2)
    const pruned = await applySeed(context, readSeed({ users: users.slice(0, 20) }), { prune: true })
    expect(pruned.map(({ action }) => action)).toEqual(Array(40).fill('delete'))
    expect((await app.admin('GET', '/users')).body.pagination.total).toBe(20)
  })

  test('is refused completely for a mistake at its end, which the rehearsal finds', async () => {
    const { app, context, writes } = await watched()
    await app.events()
    const wrong = [...users, { username: 'other', email: 'USER3@example.com' }]
    await expect(applySeed(context, readSeed({ users: wrong }))).rejects.toThrow(
      'seed has a mistake; nothing was applied.\n  seed: users[60]: Another user of the organization already has this e-mail address.',
    )
    expect(writes()).toBe(isPostgres ? 0 : 1)
    expect(await app.events()).toEqual([])
    expect((await app.admin('GET', '/users')).body.pagination.total).toBe(0)
  })

  test('is applied once when two copies start with it', async () => {
    const store = await freshStore()
    const app = await startApp({}, { store })
    await app.events()
    const other = await openBeside(store.path)
    const order: string[] = []
    const copies = [store, other].map(own => ({
      ...app.context,
      store: {
        ...own,
        rehearse: <T>(body: (tx: Transaction) => Promise<T>) => {
          order.push('rehearsed')
          return own.rehearse(body)
        },
        write: <T>(body: (tx: Transaction) => Promise<T>) => {
          order.push('written')
          return own.write(body)
        },
      },
    }))
    const done = await Promise.all(copies.map(copy => applySeed(copy, readSeed({ users }))))
    const [first, second] = [['rehearsed', ...Array(3).fill('written')], ['rehearsed']]
    expect(order).toEqual(isPostgres ? [...first, ...second] : ['written', 'written'])
    expect(done.map(({ length }) => length).sort()).toEqual([0, 60])
    expect((await app.events()).map(({ type }) => type)).toEqual(Array(60).fill('user.created'))
    await other.close()
  })

  test('reports how much was applied when other writes conflicted', async () => {
    const name = { first_name: 'Other', last_name: 'User' }
    const other = { ...name, username: 'other', email: 'user40@example.com', password: 'Correct-horse-7' }
    const { app, context } = await watched(
      write => write === (isPostgres ? 2 : 1) && app.admin('POST', '/users', other),
    )
    const kept = isPostgres ? 'its first 25 changes were applied, the others were not' : 'nothing was applied'
    await expect(applySeed(context, readSeed({ users }))).rejects.toThrow(
      `seed has a mistake; ${kept}.\n  seed: users[40]: Another user of the organization already has this e-mail address.`,
    )
    expect((await app.admin('GET', '/users')).body.pagination.total).toBe(isPostgres ? 26 : 1)
  })
})
