import { expect, test } from 'bun:test'
import { applySeed, type SeedOptions } from '#src/seed/apply.ts'
import { readSeed } from '#src/seed/read.ts'
import type { Transaction } from '#src/storage/store.ts'
import { type Json, startApp } from '#test/support/app.ts'
import { addClient, addUser } from '#test/support/people.ts'
import { grantTokens } from '#test/support/tokens.ts'

/** Returns the app with a function that applies a seed and lists its writes and pauses in their order. */
const watched = async () => {
  const app = await startApp()
  const { store } = app.context
  const apply = async (seed: Json, options?: SeedOptions) => {
    const order: string[] = []
    const listed = {
      ...store,
      write: async <T>(body: (tx: Transaction) => Promise<T>): Promise<T> => {
        order.push('begins')
        const answer = await store.write(body)
        order.push('ends')
        return answer
      },
      drained: () => {
        order.push('pause')
        return store.drained()
      },
    }
    const changes = await applySeed({ ...app.context, store: listed }, readSeed(seed), options)
    return { changes, order }
  }
  return { app, apply }
}

const write = ['begins', 'ends']

test('a changed index is rebuilt after the transaction, in writes of its own; a plan leaves it', async () => {
  const { app, apply } = await watched()
  const definitions = [{ name: 'team', type: 'string', searchable: false }]
  const organization = { slug: 'default', settings: { user_attributes: definitions } }
  await apply({ organizations: [organization] })
  await addUser(app, 'ann', { attributes: { team: 'red' } })
  const searchable = definitions.map(definition => ({ ...definition, searchable: true }))
  const seed = { organizations: [{ slug: 'default', settings: { user_attributes: searchable } }] }
  expect((await apply(seed, { dry_run: true })).order).toEqual([])
  const { changes, order } = await apply(seed)
  expect(changes).toMatchObject([{ action: 'update', name: 'default', fields: ['settings'] }])
  expect(order).toEqual([...write, 'pause', ...write])
  const found = await app.admin('GET', '/users?attribute.team=red')
  expect(found.body.data).toMatchObject([{ username: 'ann' }])
})

test('the sessions of a pruned client end after the transaction, in writes of their own', async () => {
  const { app, apply } = await watched()
  const user = await addUser(app, 'ann')
  await grantTokens(app, await addClient(app, 'shop'), user)
  const seed = { clients: [] }
  expect((await apply(seed, { prune: true, dry_run: true })).order).toEqual([])
  const { changes, order } = await apply(seed, { prune: true })
  expect(changes).toMatchObject([{ action: 'delete', name: 'shop' }])
  expect(order.join(' ')).toStartWith(['pause', ...write, ...write, 'pause', ...write].join(' '))
  const [session] = await app.context.store.read(async q => q.select().from(q.tables.sessions))
  expect(session?.ended_at).toBeNumber()
  expect(await app.context.store.read(q => q.$count(q.tables.purges))).toBe(0)
})
