import { beforeEach, expect, spyOn, test } from 'bun:test'
import { record } from '#src/audit/record.ts'
import { removeClient } from '#src/directory/clients/store.ts'
import { purge } from '#src/operations/purge.ts'
import { DELETE_BATCH } from '#src/storage/batches.ts'
import { beginPurge } from '#src/storage/purges.ts'
import { type Json, startApp, type TestApp } from '#test/support/app.ts'
import { create } from '#test/support/callers.ts'
import { addClient, addOrganization, addUser } from '#test/support/people.ts'
import { addCode, grantTokens } from '#test/support/tokens.ts'

let app: TestApp
beforeEach(async () => {
  app = await startApp()
})

const addEvents = ({ context }: TestApp, user: Json, count: number) =>
  context.store.write(async tx => {
    for (let i = 0; i < count; i++)
      await record(context, tx, {
        type: 'user.logout',
        actor: { id: user.id, email: user.email },
        target_id: user.id,
        target_type: 'user',
        organization_id: user.organization_id,
        client_info: { ip_address: '', user_agent: '' },
      })
  })

const dump = () =>
  app.context.store.read(async q => {
    const { signing_keys: _, ...tables } = q.tables
    return JSON.stringify(await Promise.all(Object.values(tables).map(table => q.select().from(table))))
  })

const countRows = () =>
  app.context.store.read(async q => {
    const { signing_keys: _, ...tables } = q.tables
    let rows = 0
    for (const table of Object.values(tables)) rows += await q.$count(table)
    return rows
  })

/** Returns how many rows each write removes during `work`. */
const batchesOf = async (work: () => Promise<unknown>): Promise<number[]> => {
  const { store } = app.context
  const { write } = store
  const removed: number[] = []
  let rows = await countRows()
  const counting: typeof write = async body => {
    const answer = await write(body)
    const left = await countRows()
    removed.push(rows - left)
    rows = left
    return answer
  }
  Object.assign(store, { write: counting })
  await work()
  Object.assign(store, { write })
  return removed
}

test('R-20 data of a deleted user is hidden at once and removed in bounded batches', async () => {
  const [alice, bob] = [await addUser(app, 'alice'), await addUser(app, 'bob')]
  await addEvents(app, alice, 3 * DELETE_BATCH)
  await addEvents(app, bob, 10)
  const [deleting] = await batchesOf(() => app.admin('DELETE', `/users/${alice.id}`))
  expect(deleting).toBeLessThan(DELETE_BATCH + 10)
  expect(await dump()).toContain('alice@example.com')
  expect((await app.admin('GET', `/events?actor_id=${alice.id}`)).body.data).toEqual([])
  expect((await app.admin('GET', `/users/${alice.id}`)).status).toBe(404)
  const batches = await batchesOf(() => purge(app.context))
  expect(batches.length).toBeGreaterThan(2)
  expect(Math.max(...batches)).toBeLessThanOrEqual(DELETE_BATCH)
  expect(await dump()).not.toContain('alice@example.com')
  expect((await app.admin('GET', `/events?target_id=${alice.id}`)).body.data).toMatchObject([
    { type: 'user.deleted' },
  ])
  expect((await app.admin('GET', `/events?actor_id=${bob.id}`)).body.pagination.total).toBe(10)
  expect(await purge(app.context)).toBe(0)
})

test('R-20 M-10 a deleted organization: all of its data is removed, and no data of others', async () => {
  const acme = await addOrganization(app, 'acme')
  const beta = await addOrganization(app, 'beta')
  for (const { id, slug } of [acme, beta]) {
    const client = await addClient(app, `${slug}-app`, { organization_id: id })
    await create(app, '/groups', { name: 'Staff', organization_id: id })
    for (let i = 0; i < 30; i++) {
      const user = await addUser(app, `${slug}-${i}`, { organization_id: id })
      await grantTokens(app, client, user)
      await addCode(app, client, user)
      if (i === 7) await addEvents(app, user, 2 * DELETE_BATCH)
    }
  }
  const before = await countRows()
  await app.admin('DELETE', `/organizations/${acme.id}`)
  expect((await app.admin('GET', '/users')).body.pagination.total).toBe(30)
  expect((await app.admin('GET', '/users?role=user')).body.pagination.total).toBe(30)
  expect((await app.admin('GET', '/users?search=acme')).body).toMatchObject({
    data: [],
    pagination: { total: 0 },
  })
  const again = await addOrganization(app, 'acme')
  const users = await app.admin('GET', `/users?organization_id=${again.id}`)
  expect(users.body).toMatchObject({ data: [], pagination: { total: 0 } })
  const batches = await batchesOf(() => purge(app.context))
  expect(batches.length).toBeGreaterThan(3)
  // A cascade deletes further rows, such as role assignments and group memberships.
  expect(Math.max(...batches)).toBeLessThan(3 * DELETE_BATCH)
  const left = await dump()
  expect(left.replaceAll(`"target_id":"${acme.id}"`, '')).not.toContain(acme.id)
  expect(left).not.toContain('acme-1@example.com')
  expect(left).toContain('beta-29@example.com')
  expect((await app.admin('GET', '/users')).body.pagination.total).toBe(30)
  expect(await countRows()).toBeGreaterThan(before / 3)
  const deleted = (await app.admin('GET', `/events?target_id=${acme.id}`)).body.data
  expect(deleted).toMatchObject([{ type: 'organization.deleted', organization_id: 'org_default' }])
})

test('R-20 a batch that removes more rows than its limit leaves no row of the users behind', async () => {
  const { id: organization_id } = await addOrganization(app, 'acme')
  const users = [
    await addUser(app, 'ann', { organization_id }),
    await addUser(app, 'ben', { organization_id }),
    await addUser(app, 'cleo', { organization_id }),
  ]
  // Each client id has a consent of every user. A batch of client ids therefore selects more rows than the
  // number of ids.
  await app.context.store.write(tx =>
    tx.insert(tx.tables.consents).values(
      users.flatMap(({ id: user_id }) =>
        Array.from({ length: DELETE_BATCH }, (_, i) => ({
          user_id,
          client_id: `dcr_${i}`,
          organization_id,
          scopes: ['openid'],
          created_at: 0,
          updated_at: 0,
        })),
      ),
    ),
  )
  await app.admin('DELETE', `/organizations/${organization_id}`)
  await purge(app.context)
  expect(await app.context.store.read(q => q.$count(q.tables.consents))).toBe(0)
})

test('USR-22 events about a deleted user are not listed while they wait for the purge', async () => {
  const [ada, bob] = [await addUser(app, 'ada'), await addUser(app, 'bob')]
  const group = await create(app, '/groups', { name: 'Staff' })
  for (const { id } of [ada, bob]) await app.admin('PUT', `/groups/${group.id}/members/${id}`)
  const about = async () =>
    (await app.admin('GET', '/events?type=group.updated&order=asc')).body.data.map(
      ({ metadata }: Json) => metadata.member_added,
    )
  expect(await about()).toEqual([ada.id, bob.id])
  await app.context.store.write(tx => beginPurge(tx, 'user', ada.id, app.clock.now()))
  expect(await about()).toEqual([bob.id])
})

test('CLI-05 no client takes the id of one that is deleted at the same time', async () => {
  const client = await addClient(app, 'shop')
  const { store } = app.context
  const write = store.write.bind(store)
  const spy = spyOn(store, 'write').mockImplementationOnce((async (body: Parameters<typeof write>[0]) => {
    await write(tx => removeClient(tx, client.client_id, app.clock.now()))
    return write(body)
  }) as never)
  const input = {
    client_id: 'shop',
    name: 'Shop',
    type: 'confidential',
    grant_types: ['client_credentials'],
    scopes: [],
  }
  const { status, body } = await app.admin('POST', '/clients', input)
  spy.mockRestore()
  expect([status, body.error_description]).toEqual([
    409,
    'A client with this client_id is still being deleted.',
  ])
  while ((await purge(app.context)) > 0);
  expect((await app.admin('POST', '/clients', input)).status).toBe(201)
})
