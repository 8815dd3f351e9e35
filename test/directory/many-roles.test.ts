import { afterAll, beforeEach, expect, test } from 'bun:test'
import { effectiveRoles } from '#src/directory/effective-roles-store.ts'
import { rolesReached } from '#src/directory/identity-providers/store.ts'
import type { GroupId, OrganizationId, RoleId, UserId } from '#src/lib/ids.ts'
import { permissions } from '#src/lib/permission.ts'
import { usersWith } from '#src/webhooks/holders-store.ts'
import { startApp, type TestApp } from '#test/support/app.ts'
import { create } from '#test/support/callers.ts'
import { addClient, addUser } from '#test/support/people.ts'
import { hearStatements, plansOf } from '#test/support/statements.ts'
import { freshStore, isPostgres } from '#test/support/store.ts'

const statements: string[] = []
afterAll(hearStatements(text => statements.push(text)))

const organization_id: OrganizationId = 'org_default'
const roleOf = (i: number): RoleId => `role_${String(i).padStart(3, '0')}`
const groupOf = (i: number): GroupId => `grp_${i}`

let app: TestApp & { path: string }
let user_id: UserId
beforeEach(async () => {
  const store = await freshStore()
  app = { ...(await startApp({}, { store })), path: store.path }
  user_id = (await addUser(app, 'alice')).id
  const times = { created_at: 0, updated_at: 0 }
  await store.write(async tx => {
    const { group_roles, groups, roles } = tx.tables
    await tx.insert(roles).values(
      Array.from({ length: 150 }, (_, i) => ({
        id: roleOf(i),
        organization_id,
        name: roleOf(i),
        permissions: [...permissions],
        ...times,
      })),
    )
    for (let g = 0; g < 4; g++) {
      await tx.insert(groups).values({ id: groupOf(g), organization_id, name: groupOf(g), ...times })
      const given = Array.from({ length: 100 }, (_, i) => ({
        group_id: groupOf(g),
        role_id: roleOf(i + g * 15),
      }))
      await tx.insert(group_roles).values(given)
    }
  })
})
const join = (...groups: number[]) =>
  app.context.store.write(tx =>
    tx.insert(tx.tables.group_members).values(groups.map(g => ({ group_id: groupOf(g), user_id }))),
  )
const names = async () =>
  (await app.context.store.read(q => effectiveRoles(q, user_id))).map(({ name }) => name)

test('a role that many groups of a user have is read once, with the user’s other roles', async () => {
  await join(0)
  statements.length = 0
  expect(await names()).toEqual([...Array.from({ length: 100 }, (_, i) => roleOf(i)), 'user'])
  expect(statements).toHaveLength(1)
  await join(1, 2, 3)
  statements.length = 0
  // The four groups have 400 roles, of which 145 are different.
  expect(await names()).toEqual([...Array.from({ length: 145 }, (_, i) => roleOf(i)), 'user'])
  expect(statements).toHaveLength(2)
})

test('lists of groups and clients read no columns that they do not show', async () => {
  await addClient(app, 'shop', { attributes: { a: 1 } })
  statements.length = 0
  const groups = await app.admin('GET', '/groups?limit=2')
  expect(groups.body.data[0].roles).toEqual(Array.from({ length: 100 }, (_, i) => roleOf(i + 45)))
  const clients = await app.admin('GET', '/clients?limit=1')
  expect(clients.body.data[0].client_id).toBe('shop')
  const lists = statements.filter(text =>
    /from "group_roles" inner join|from "clients" where.* limit/.test(text),
  )
  const unused = statements.filter(text =>
    /"permissions" from "group_roles"|"redirect_uris".* limit /.test(text),
  )
  expect([lists.length > 0, unused]).toEqual([true, []])
})

test('the roles that a provider reaches are found among the holders of the roles', async () => {
  const provider = await create(app, '/identity-providers', {
    name: 'Google',
    type: 'oidc',
    preset: 'google',
    client_id: 'x',
    client_secret: 'y',
    alias: 'google',
  })
  const reached = () =>
    app.context.store.read(q =>
      rolesReached(q, provider.id, [roleOf(0), roleOf(1), roleOf(149), 'role_user']),
    )
  expect(await reached()).toEqual([])
  await app.context.store.write(tx =>
    tx.insert(tx.tables.external_accounts).values({
      provider_id: provider.id,
      subject: 's',
      user_id,
      organization_id,
      label: '',
      created_at: 0,
    }),
  )
  expect(await reached()).toEqual(['role_user'])
  await join(0)
  statements.length = 0
  expect((await reached()).sort()).toEqual([roleOf(0), roleOf(1), 'role_user'])
  if (isPostgres) return
  const [plan] = await plansOf(app.path, statements)
  const tables = plan?.steps.flatMap(({ detail }) => /^SEARCH (\w+)/.exec(detail)?.[1] ?? [])
  expect(tables).toEqual([
    'roles',
    'user_roles',
    'external_accounts',
    'group_roles',
    'group_members',
    'external_accounts',
  ])
})

test('a provider may be changed in an organization with more roles than a statement takes parameters', async () => {
  const ids = Array.from({ length: 66_000 }, (_, i): RoleId => `role_many_${i}`)
  expect(await app.context.store.read(q => rolesReached(q, 'idp_none', ids))).toEqual([])
})

test('a role that a user or a group of the user has is found by each of its permissions', async () => {
  await join(0)
  const bob = await addUser(app, 'bob', { roles: ['admin'] })
  const having = (permissions: string[], limit = 20) =>
    app.context.store.read(async q =>
      (await usersWith(q, organization_id, permissions, limit)).map(({ id }) => id),
    )
  expect((await having(['webhooks:update', '*'])).sort()).toEqual([user_id, bob.id].sort())
  expect(await having(['webhooks:update', '*'], 1)).toHaveLength(1)
  expect(await having(['webhooks'])).toEqual([])
})
