import { describe, expect, test } from 'bun:test'
import { and, count, eq, inArray, sql } from 'drizzle-orm'
import { DEFAULT_ORGANIZATION } from '#src/lib/ids.ts'
import { prepared } from '#src/storage/store.ts'
import { freshStore } from '#test/support/store.ts'
import { groupRow, organizationRow, userRow } from './rows.ts'

const findUser = prepared((q, { users }) =>
  q
    .select()
    .from(users)
    .where(
      and(
        eq(users.organization_id, sql.placeholder('organization_id')),
        eq(users.username_fold, sql.placeholder('name')),
      ),
    ),
)

const rename = prepared((q, { users }) =>
  q
    .update(users)
    .set({ last_login: sql`${sql.placeholder('at')}`, attributes: sql.placeholder('attributes') as never })
    .where(eq(users.username_fold, sql.placeholder('name')))
    .returning({
      id: users.id,
      enabled: users.enabled,
      last_login: users.last_login,
      attributes: users.attributes,
    }),
)

const withUser = async () => {
  const store = await freshStore()
  const user = userRow(DEFAULT_ORGANIZATION, 'ann')
  await store.write(tx => tx.insert(tx.tables.users).values({ ...user, attributes: { colour: 'red' } }))
  return { store, user }
}

describe('prepared', () => {
  test('runs on both connections, any number of times', async () => {
    const { store, user } = await withUser()
    const params = { organization_id: DEFAULT_ORGANIZATION, name: 'ann' }
    for (let i = 0; i < 3; i++) {
      const [read] = await store.read(q => findUser(q, params))
      const [written] = await store.write(tx => findUser(tx, params))
      expect(read).toMatchObject({ ...user, attributes: { colour: 'red' }, enabled: true, last_login: null })
      expect(written).toEqual(read)
    }
    expect(await store.read(q => findUser(q, { ...params, name: 'bob' }))).toEqual([])
  })

  test('is bound to its store', async () => {
    const { store } = await withUser()
    const empty = await freshStore()
    const params = { organization_id: DEFAULT_ORGANIZATION, name: 'ann' }
    expect(await store.read(q => findUser(q, params))).toHaveLength(1)
    expect(await empty.read(q => findUser(q, params))).toEqual([])
  })

  test('encodes and decodes by column', async () => {
    const { store, user } = await withUser()
    const rows = await store.write(tx => rename(tx, { at: 5, attributes: { n: [1] }, name: 'ann' }))
    expect(rows).toEqual([{ id: user.id, enabled: true, last_login: 5, attributes: { n: [1] } }])
  })

  test('refuses a placeholder without a value', async () => {
    const { store } = await withUser()
    const missing = store.read(q => findUser(q, { organization_id: DEFAULT_ORGANIZATION }))
    await expect(missing).rejects.toThrow('No value for the placeholder name')
  })
})

describe('rows', () => {
  test('of joins are nested objects, null where a left join found nothing', async () => {
    const { store, user } = await withUser()
    const group = groupRow(DEFAULT_ORGANIZATION, 'staff')
    const read = () =>
      store.read(q => {
        const { users, groups, group_members } = q.tables
        return q
          .select({ users, groups, name: groups.name, at: { id: users.id } })
          .from(users)
          .leftJoin(group_members, eq(group_members.user_id, users.id))
          .leftJoin(groups, eq(groups.id, group_members.group_id))
          .where(inArray(users.id, [user.id]))
      })
    expect(await read()).toEqual([
      {
        users: expect.objectContaining({ id: user.id, enabled: true }),
        groups: null,
        name: null,
        at: { id: user.id },
      },
    ])
    await store.write(async tx => {
      await tx.insert(tx.tables.groups).values(group)
      await tx.insert(tx.tables.group_members).values({ group_id: group.id, user_id: user.id })
    })
    expect(await read()).toEqual([
      expect.objectContaining({ groups: { ...group, description: '', member_count: 1 }, name: 'staff' }),
    ])
  })

  test('of expressions are decoded by the expression', async () => {
    const { store } = await withUser()
    const rows = await store.read(q =>
      q
        .select({
          total: count(),
          upper: sql<string>`upper(max(${q.tables.users.username}))`,
          text: sql`count(*)`.mapWith(String).as('text'),
        })
        .from(q.tables.users),
    )
    expect(rows).toEqual([{ total: 1, upper: 'ANN', text: '1' }])
    expect(await store.read(q => q.$count(q.tables.users, eq(q.tables.users.username, 'ann')))).toBe(1)
  })

  test('keep bytes, nulls and JSON null apart', async () => {
    const store = await freshStore()
    const { settings, signing_keys } = await store.read(async q => q.tables)
    const private_key = Buffer.from([0, 1, 255])
    await store.write(async tx => {
      await tx.insert(settings).values({ name: 'n', value: { a: null }, updated_at: 1 })
      await tx
        .insert(signing_keys)
        .values({ id: 'key_1', alg: 'ES256', public_jwk: {}, private_key, created_at: 1, active_at: 1 })
    })
    expect(await store.read(q => q.select().from(settings))).toEqual([
      { name: 'n', value: { a: null }, updated_at: 1 },
    ])
    const [key] = await store.read(q => q.select().from(signing_keys))
    expect(key).toMatchObject({ private_key, retired_at: null })
  })

  test('of tables have typed columns: a value of another type is refused', async () => {
    const store = await freshStore()
    const write = store.write(tx =>
      tx.insert(tx.tables.organizations).values({ ...organizationRow('x'), created_at: 'soon' as never }),
    )
    await expect(write).rejects.toThrow(
      /cannot store TEXT value in INTEGER column|invalid input syntax for type bigint/,
    )
  })
})
