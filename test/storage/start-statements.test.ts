/**
 * Compares the statements whose SQL is made at build time (src/storage/sqlite/made-statements.ts) with the
 * statements that drizzle builds. Each pair must have the same SQL, store the same values and return the same
 * values. Drizzle takes the columns from src/storage/tables.ts.
 */
import { expect, test } from 'bun:test'
import { readClient } from '#src/directory/clients/store.ts'
import { countAdmins } from '#src/directory/roles/store.ts'
import { insertLink } from '#src/directory/users/link-store.ts'
import { findUser } from '#src/directory/users/store.ts'
import { DEFAULT_ORGANIZATION, newId } from '#src/lib/ids.ts'
import { hashSecret } from '#src/lib/secrets.ts'
import { findSecretHash, hasOrganization, hasRows } from '#src/operations/start-store.ts'
import { getSetting, putSetting } from '#src/storage/settings.ts'
import made from '#src/storage/sqlite/made-statements.json' with { type: 'json' }
import { insertKey, type KeyRow, listKeys } from '#src/tokens/key-store.ts'
import { freshStore } from '#test/support/store.ts'
import { madeStatements } from '../../.ci/statements.ts'
import { clientRow, groupRow, holderRow, organizationRow, roleRow, userRow } from './rows.ts'

test('the file has the statements that drizzle builds', async () => {
  expect(await madeStatements()).toEqual(made as never)
})

test('a statement outside a transaction is refused', async () => {
  const store = await freshStore()
  const tx = await store.write(async tx => tx)
  await expect(getSetting(tx, 'a')).rejects.toMatchObject({ code: 'temporarily_unavailable' })
})

test('readClient and findUser: JSON, booleans and null', async () => {
  const store = await freshStore()
  const home = organizationRow('home')
  const client = { ...clientRow(home.id, 'app'), consent_required: true, claims: { a: { value: 'é "' } } }
  const user = userRow(home.id, 'alice')
  await store.write(async tx => {
    await tx.insert(tx.tables.organizations).values(home)
    await tx.insert(tx.tables.clients).values(client as never)
    await tx.insert(tx.tables.users).values(user)
  })
  await store.read(async q => {
    expect(await q.select().from(q.tables.clients)).toEqual([(await readClient(q, 'app')) as never])
    expect(await q.select().from(q.tables.users)).toEqual([(await findUser(q, home.id, user.id)) as never])
  })
})

test('insertKey and putSetting: JSON, bytes, large numbers and null', async () => {
  const store = await freshStore()
  const keys = [null, 2 ** 42].map(
    (time, i): KeyRow => ({
      id: `key_${i}`,
      alg: 'ES256',
      public_jwk: { x: `${i}` },
      private_key: Buffer.from([0, 255, i]),
      created_at: 1,
      active_at: i,
      retired_at: time,
      expires_at: time,
    }),
  )
  const value = { text: 'é "\\', list: [1, null, true] }
  await store.write(async tx => {
    for (const key of keys) await insertKey(tx, key)
    await putSetting(tx, 'a', 'earlier', 1)
    await putSetting(tx, 'a', value, 2)
  })
  await store.read(async q => {
    const { settings, signing_keys } = q.tables
    expect(await q.select().from(signing_keys).orderBy(signing_keys.id)).toEqual(keys)
    expect(await q.select().from(settings)).toEqual([{ name: 'a', value, updated_at: 2 }])
  })
})

test('getSetting', async () => {
  const store = await freshStore()
  const value = { text: 'é "\\', list: [1, null, true] }
  await store.write(tx => tx.insert(tx.tables.settings).values({ name: 'a', value, updated_at: 1 }))
  expect(await store.read(q => getSetting<unknown>(q, 'a'))).toEqual(value)
  expect(await store.read(q => getSetting<unknown>(q, 'b'))).toBeUndefined()
})

test('listKeys: all columns, in the order in which the keys begin to sign', async () => {
  const store = await freshStore()
  const common = { alg: 'RS256' as const, public_jwk: { n: 'a', e: 'AQAB' }, created_at: 1 }
  const keys = [
    { active_at: 9, retired_at: null, expires_at: null },
    { active_at: 2, retired_at: 2 ** 42, expires_at: 8 },
    { active_at: 2, retired_at: 7, expires_at: 8 },
  ].map((times, i) => ({ id: `key_${i}` as const, ...common, private_key: Buffer.from([i, 255]), ...times }))
  await store.write(tx => tx.insert(tx.tables.signing_keys).values(keys))
  const found = await store.read(listKeys)
  expect(found.map(({ id }) => id)).toEqual(['key_1', 'key_2', 'key_0'])
  expect(found.toSorted((x, y) => (x.id < y.id ? -1 : 1))).toEqual(keys)
})

test('findSecretHash, hasOrganization and hasRows', async () => {
  const store = await freshStore()
  const [organization, other] = [organizationRow('one'), organizationRow('two')]
  const secret_hash = hashSecret('secret')
  await store.write(async tx => {
    const { clients, organizations } = tx.tables
    expect(await hasRows(tx, 'webhooks')).toBe(false)
    await tx.insert(organizations).values([organization, other])
    const confidential = {
      ...clientRow(organization.id, 'service'),
      type: 'confidential' as const,
      secret_hash,
    }
    await tx.insert(clients).values([clientRow(organization.id, 'app'), confidential])
  })
  const hashOf = (client_id: string, within: typeof organization.id) =>
    store.read(q => findSecretHash(q, client_id, within))
  expect(await hashOf('service', organization.id)).toBe(secret_hash)
  expect(await hashOf('service', other.id)).toBeNull()
  expect(await hashOf('app', organization.id)).toBeNull()
  expect(await hashOf('nobody', organization.id)).toBeUndefined()
  expect(await store.read(q => hasOrganization(q, organization.id))).toBe(true)
  expect(await store.read(q => hasOrganization(q, newId('org', 1)))).toBe(false)
})

test('countAdmins: each user once, directly or through a group, and 2 for more than two', async () => {
  const store = await freshStore()
  const role = { ...roleRow(DEFAULT_ORGANIZATION, 'admin'), id: 'role_admin' as const }
  const group = groupRow(DEFAULT_ORGANIZATION, 'staff')
  const counts = await store.write(async tx => {
    const t = tx.tables
    await tx.insert(t.users).values(['ann', 'ben', 'cleo'].map(name => userRow(DEFAULT_ORGANIZATION, name)))
    await tx.insert(t.roles).values(role)
    await tx.insert(t.groups).values(group)
    await tx.insert(t.group_roles).values({ group_id: group.id, role_id: role.id })
    const none = await countAdmins(tx)
    const after: number[] = []
    for (const user of await tx.select().from(t.users)) {
      await tx.insert(t.group_members).values({ group_id: group.id, user_id: user.id })
      after.push(await countAdmins(tx))
      const [stored] = await tx.select().from(t.roles)
      if (stored) await tx.insert(t.user_roles).values(holderRow(user, stored))
      after.push(await countAdmins(tx))
    }
    return [none, ...after]
  })
  expect(counts).toEqual([0, 1, 1, 2, 2, 2, 2])
})

test('insertLink: all columns', async () => {
  const store = await freshStore()
  const common = { organization_id: DEFAULT_ORGANIZATION, created_at: 1, expires_at: 2 ** 42 }
  const links = [
    { ...common, kind: 'set_up' as const, user_id: null, email: null, permissions: null },
    {
      ...common,
      kind: 'sign_in' as const,
      user_id: newId('usr', 1),
      email: 'a@b.c',
      permissions: ['"', '*'],
    },
  ].map((link, i) => ({ link_hash: hashSecret(`token ${i}`), ...link }))
  await store.write(async tx => {
    for (const link of links) await insertLink(tx, link)
  })
  const stored = await store.read(async q => q.select().from(q.tables.links).orderBy(q.tables.links.kind))
  expect(stored).toEqual(links)
})
