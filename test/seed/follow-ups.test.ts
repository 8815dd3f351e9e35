import { expect, test } from 'bun:test'
import { DAY } from '#src/lib/duration.ts'
import { newId, type UserId } from '#src/lib/ids.ts'
import { hashSecret } from '#src/lib/secrets.ts'
import { applySeed, type SeedOptions } from '#src/seed/apply.ts'
import { readSeed } from '#src/seed/read.ts'
import { DELETE_BATCH } from '#src/storage/batches.ts'
import type { Transaction } from '#src/storage/store.ts'
import { type Json, startApp } from '#test/support/app.ts'
import { addClient, addOrganization, addUser, REDIRECT } from '#test/support/people.ts'
import { grantTokens, refresh } from '#test/support/tokens.ts'

/**
 * Returns the app with a function that applies a seed and lists its writes and pauses in their order. The
 * writes from the number `failing` on fail, as if the process were killed.
 */
const watched = async () => {
  const app = await startApp()
  const { store } = app.context
  const apply = async (seed: Json, options?: SeedOptions, failing = Infinity) => {
    const order: string[] = []
    let writes = 0
    const listed = {
      ...store,
      write: async <T>(body: (tx: Transaction) => Promise<T>): Promise<T> => {
        if (++writes >= failing) throw new Error('The disk is full.')
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

test('a failure after the transaction keeps no session of a blocked client, and leaves an index to be rebuilt', async () => {
  const { app, apply } = await watched()
  const acme = await addOrganization(app, 'acme')
  const configure = (settings: Json) =>
    apply({ organizations: ['default', 'acme'].map(slug => ({ slug, settings })) })
  await configure({ client_registration: 'open' })
  const registered = await app.call('/oauth/register', {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({
      redirect_uris: [REDIRECT],
      grant_types: ['authorization_code', 'refresh_token'],
      token_endpoint_auth_method: 'none',
    }),
  })
  const client: Json = await registered.json()
  const users = [await addUser(app, 'ann'), await addUser(app, 'bob', { organization_id: acme.id })]
  const tokens = await Promise.all(users.map(user => grantTokens(app, client, user)))
  const blocked_clients = [client.client_id]
  const user_attributes = [{ name: 'team', type: 'string', searchable: true }]
  const seed = {
    organizations: [
      { slug: 'default', settings: { blocked_clients, user_attributes } },
      { slug: 'acme', settings: { blocked_clients } },
    ],
  }
  // The fourth write rebuilds the index of the default organization.
  await expect(apply(seed, {}, 4)).rejects.toThrow('The disk is full.')
  await configure({ blocked_clients: null })
  for (const { refresh_token } of tokens)
    expect((await refresh(app, client, refresh_token)).body.error).toBe('invalid_grant')
  const purges = await app.context.store.read(async q => q.select().from(q.tables.purges))
  expect(purges).toMatchObject([{ kind: 'attribute_index' }])
})

test('remembered browsers that an interrupted withdrawal left are removed in the transaction, without a pause', async () => {
  const { app, apply } = await watched()
  const { id } = await addUser(app, 'ann')
  const now = app.clock.now()
  await app.context.store.write(async tx => {
    for (let n = 0; n < DELETE_BATCH; n++)
      await tx.insert(tx.tables.remembered_browsers).values({
        id: newId('brw', now),
        user_id: id as UserId,
        organization_id: 'org_default',
        browser_hash: hashSecret(String(n)),
        ip_address: '192.0.2.10',
        user_agent: 'A browser',
        created_at: now,
        expires_at: now + DAY,
      })
  })
  const seed = { organizations: [{ slug: 'default', settings: { remember_browser_days: 30 } }] }
  expect((await apply(seed)).order).toEqual(write)
  expect(await app.context.store.read(q => q.$count(q.tables.remembered_browsers))).toBe(0)
})
