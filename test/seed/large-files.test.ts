import { describe, expect, test } from 'bun:test'
import type { Core } from '#src/context.ts'
import { applySeed } from '#src/seed/apply.ts'
import { exportSeed } from '#src/seed/export.ts'
import { readSeed } from '#src/seed/read.ts'
import type { RehearsedUsers, Transaction } from '#src/storage/store.ts'
import { type Json, startApp } from '#test/support/app.ts'
import { hearStatements } from '#test/support/statements.ts'
import { freshStore, isPostgres, openBeside } from '#test/support/store.ts'

describe('a file with more changes than one transaction holds', () => {
  const users = Array.from({ length: 60 }, (_, i) => ({
    username: `user${i}`,
    email: `user${i}@example.com`,
  }))

  /** Starts an app. `before` runs right before each write of the app and gets the number of the write. */
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

  /** Makes 300 users. Returns their names, and a function that makes a file with a group of members. */
  const withMany = async (context: Core) => {
    const all = Array.from({ length: 300 }, (_, i) => `member${i}`)
    const seed = { users: all.map(username => ({ username, email: `${username}@example.com` })) }
    await applySeed(context, readSeed(seed))
    return { all, staff: (members: string[]) => readSeed({ groups: [{ name: 'Staff', members }] }) }
  }

  test('is applied in several, with other writes between, and in none when it changes nothing', async () => {
    const { app, context, writes } = await watched()
    const parts = isPostgres ? 6 : 12
    await app.events()
    expect(await applySeed(context, readSeed({ users }))).toHaveLength(60)
    expect(writes()).toBe(parts)
    expect((await app.events()).map(({ type }) => type)).toEqual(Array(60).fill('user.created'))
    expect((await app.admin('GET', '/users')).body.pagination.total).toBe(60)
    expect(await applySeed(context, readSeed({ users }), { dry_run: true })).toEqual([])
    expect(writes()).toBe(parts)
    expect(await applySeed(context, readSeed({ users }))).toEqual([])
    expect(writes()).toBe(parts)
    const pruned = await applySeed(context, readSeed({ users: users.slice(0, 20) }), { prune: true })
    expect(pruned.map(({ action }) => action)).toEqual(Array(40).fill('delete'))
    expect((await app.admin('GET', '/users')).body.pagination.total).toBe(20)
  })

  test('is planned against what is stored: names, addresses, ids and members', async () => {
    const { app, context } = await watched()
    const acme = 'org_00000000-0000-7000-8000-000000000001'
    const stored = {
      organizations: [{ id: acme, slug: 'acme' }],
      users: [
        ...users.slice(0, 5),
        { organization: 'acme', username: 'ann', email: 'ann@example.com' },
        { organization: 'acme', username: 'bob', email: 'bob@example.com' },
      ],
      groups: [{ organization: 'acme', name: 'Staff', members: ['ann', 'bob'] }],
    }
    await applySeed(context, readSeed(stored))
    const [ann] = (await app.admin('GET', '/users?search=ann@')).body.data
    const [bob] = (await app.admin('GET', '/users?search=bob@')).body.data
    await app.events()
    const renamed = {
      organizations: [{ id: acme, slug: 'acme2' }],
      users: [
        ...users,
        { id: ann.id, organization: 'acme2', username: 'anna', email: 'ann@example.com' },
        { organization: 'acme2', username: 'bob', email: 'bob@example.com' },
      ],
      groups: [{ organization: 'acme2', name: 'Staff', members: ['anna'] }],
    }
    const plan = await applySeed(context, readSeed(renamed), { dry_run: true })
    expect(plan.filter(({ action }) => action === 'update')).toEqual([
      { action: 'update', section: 'organizations', name: 'acme2', fields: ['slug'] },
      { action: 'update', section: 'users', name: 'acme2/anna', fields: ['username'] },
      { action: 'update', section: 'groups', name: 'acme2/Staff', fields: ['members'] },
    ])
    expect(plan).toHaveLength(58)
    expect(await app.events()).toEqual([])
    const taken = [...users.slice(5), { username: 'other', email: 'user0@example.com' }]
    await expect(applySeed(context, readSeed({ users: taken }))).rejects.toThrow(
      'nothing was applied.\n  seed: users[55].email: Another user of the organization already has this e-mail address.',
    )
    // Bob has no id in the file and belongs to the renamed organization. The run keeps him.
    expect(await applySeed(context, readSeed(renamed), { prune: true })).toEqual(plan)
    expect((await app.admin('GET', '/users?search=bob@')).body.data).toMatchObject([{ id: bob.id }])
    expect(await applySeed(context, readSeed(renamed), { prune: true, dry_run: true })).toEqual([])
  })

  test('is planned with the members that a renamed group loses', async () => {
    const { context } = await watched()
    const id = 'grp_00000000-0000-7000-8000-000000000001'
    const staff = { id, name: 'Staff', members: ['user0', 'user1'] }
    await applySeed(context, readSeed({ users: users.slice(0, 2), groups: [staff] }))
    const renamed = readSeed({ groups: [{ id, name: 'Crew', members: ['user0'] }] })
    const plan = await applySeed(context, renamed, { dry_run: true })
    expect(plan).toMatchObject([{ name: 'default/Crew', fields: ['name', 'members'] }])
    expect(await applySeed(context, renamed)).toEqual(plan)
  })

  test('is applied in several when one group has many members', async () => {
    const { app, context, writes } = await watched()
    const { all, staff } = await withMany(context)
    const count = async () => (await app.admin('GET', '/groups')).body.data[0]?.member_count
    await expect(applySeed(context, staff([...all, 'ghost']))).rejects.toThrow(
      'seed has a mistake; nothing was applied.\n  seed: groups[0].members: The organization has no user ghost.',
    )
    expect(await count()).toBeUndefined()
    await app.events()
    // The first part is made with the group, the other 29 in transactions of five or ten parts.
    const parts = 1 + (isPostgres ? 3 : 6)
    const before = writes()
    expect(await applySeed(context, staff(all))).toMatchObject([{ action: 'create', name: 'default/Staff' }])
    expect(writes() - before).toBe(parts)
    expect(await count()).toBe(300)
    const joined = (await app.events()).map(({ type, metadata }) => [type, 'member_added' in metadata])
    expect(joined).toEqual([['group.created', false], ...Array(300).fill(['group.updated', true])])
    expect(await applySeed(context, staff([]))).toMatchObject([{ action: 'update', fields: ['members'] }])
    expect(writes() - before).toBe(2 * parts)
    expect(await count()).toBe(0)
    const left = (await app.events()).map(({ type, metadata }) => [type, 'member_removed' in metadata])
    expect(left).toEqual(Array(300).fill(['group.updated', true]))
  })

  test('is applied in several when an organization gets a new slug and its group loses many members', async () => {
    const { app, context, writes } = await watched()
    const members = Array.from({ length: 300 }, (_, i) => `member${i}`)
    const id = 'org_00000000-0000-7000-8000-000000000001'
    await applySeed(
      context,
      readSeed({
        organizations: [{ id, slug: 'acme' }],
        users: members.map(username => ({
          organization: 'acme',
          username,
          email: `${username}@example.com`,
        })),
        groups: [{ organization: 'acme', name: 'Staff', members }],
      }),
    )
    const before = writes()
    const groups = [{ organization: 'acme2', name: 'Staff', members: ['member0'] }]
    await applySeed(context, readSeed({ organizations: [{ id, slug: 'acme2' }], groups }))
    expect(writes() - before).toBe(1 + (isPostgres ? 3 : 6))
    expect((await app.admin('GET', '/groups')).body.data).toMatchObject([{ member_count: 1 }])
  })

  test('removes members of whom others delete or remove some meanwhile', async () => {
    let second = 0
    let interrupt = async () => {}
    const { app, context, writes } = await watched(write => write === second && interrupt())
    const { all, staff } = await withMany(context)
    await applySeed(context, staff(all))
    const [group] = (await app.admin('GET', '/groups')).body.data
    const find = async (name: string) => (await app.admin('GET', `/users?search=${name}@`)).body.data[0]
    const [deleted, removed] = [await find('member98'), await find('member99')]
    interrupt = async () => {
      await app.admin('DELETE', `/users/${deleted.id}`)
      await app.admin('DELETE', `/groups/${group.id}/members/${removed.id}`)
      await app.events()
    }
    second = writes() + 2
    expect(await applySeed(context, staff(['member0']))).toEqual([
      { action: 'update', section: 'groups', name: 'default/Staff', fields: ['members'] },
    ])
    const { data } = (await app.admin('GET', `/groups/${group.id}/members`)).body
    expect(data).toMatchObject([{ username: 'member0' }])
    const gone = (await app.events()).map(({ metadata }) => metadata.member_removed)
    expect(gone).toHaveLength(287)
    expect(gone).not.toContain(deleted.id)
    expect(gone).not.toContain(removed.id)
  })

  test('reports the one change that was applied when its group was deleted meanwhile', async () => {
    let second = 0
    const { app, context, writes } = await watched(async write => {
      if (write !== second) return
      const [group] = (await app.admin('GET', '/groups')).body.data
      await app.admin('DELETE', `/groups/${group.id}`)
    })
    const { all, staff } = await withMany(context)
    second = writes() + 2
    await expect(applySeed(context, staff(all))).rejects.toThrow(
      'its first change was applied, but not the others.\n  seed: groups[0]: The group does not exist.',
    )
    expect((await app.admin('GET', '/groups')).body.data).toEqual([])
  })

  test('has the rest of its members, and the groups after it, after a run that was interrupted', async () => {
    let failing = Infinity
    const { app, context, writes } = await watched(write => {
      if (write >= failing) throw new Error('The disk is full.')
    })
    const { all } = await withMany(context)
    const seed = readSeed({ groups: [{ name: 'Staff', members: all }, { name: 'Trainees' }] })
    failing = writes() + 3
    await expect(applySeed(context, seed)).rejects.toThrow('The disk is full.')
    const groups = async () =>
      (await app.admin('GET', '/groups')).body.data.map((each: Json) => [each.name, each.member_count]).sort()
    expect(await groups()).toEqual([['Staff', isPostgres ? 110 : 60]])
    failing = Infinity
    expect((await applySeed(context, seed)).map(({ action, name }) => [action, name])).toEqual([
      ['update', 'default/Staff'],
      ['create', 'default/Trainees'],
    ])
    expect(await groups()).toEqual([
      ['Staff', 300],
      ['Trainees', 0],
    ])
    expect(await applySeed(context, seed)).toEqual([])
  })

  test('is refused completely for a mistake at its end, which the rehearsal finds', async () => {
    const { app, context, writes } = await watched()
    await app.events()
    const wrong = [...users, { username: 'other', email: 'USER3@example.com' }]
    await expect(applySeed(context, readSeed({ users: wrong }))).rejects.toThrow(
      'seed has a mistake; nothing was applied.\n  seed: users[60].email: Another user of the organization already has this e-mail address.',
    )
    expect(writes()).toBe(0)
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
        rehearse: <T>(body: (tx: Transaction) => Promise<T>, users: RehearsedUsers) => {
          order.push('rehearsed')
          return own.rehearse(body, users)
        },
        write: <T>(body: (tx: Transaction) => Promise<T>) => {
          order.push('written')
          return own.write(body)
        },
      },
    }))
    const done = await Promise.all(copies.map(copy => applySeed(copy, readSeed({ users }))))
    // The two copies work at the same time only on PostgreSQL. Each change is made by only one of the copies.
    if (isPostgres) expect(order).toEqual(['rehearsed', ...Array(6).fill('written'), 'rehearsed'])
    expect(done.flat()).toHaveLength(60)
    expect((await app.events()).map(({ type }) => type)).toEqual(Array(60).fill('user.created'))
    await other.close()
  })

  test('reports how much was applied when other writes conflicted', async () => {
    const name = { first_name: 'Trainees', last_name: 'User' }
    const other = { ...name, username: 'other', email: 'user40@example.com', password: 'Correct-horse-7' }
    const { app, context } = await watched(write => write === 2 && app.admin('POST', '/users', other))
    const kept = 'its first 40 changes were applied, but not the others'
    const message = `seed has a mistake; ${kept}.\n  seed: users[40].email: Another user of the organization already has this e-mail address.`
    await expect(applySeed(context, readSeed({ users }))).rejects.toThrow(
      expect.objectContaining({ message, exit_code: 75 }),
    )
    expect((await app.admin('GET', '/users')).body.pagination.total).toBe(41)
  })
})

test('an export has the same statements for each number of users and groups, so none has too many parameters', async () => {
  const texts = new Set<string>()
  const stop = hearStatements(text => /"(user|group)(s|_roles)"/.test(text) && texts.add(text))
  const app = await startApp()
  const apply = (numbers: number[]) =>
    applySeed(
      app.context,
      readSeed({
        roles: [{ name: 'editor', permissions: [] }],
        users: numbers.map(n => ({
          username: `user${n}`,
          email: `user${n}@example.com`,
          roles: ['user', 'editor'],
        })),
        groups: numbers.map(n => ({ name: `Group ${n}`, roles: ['editor'], members: [] })),
      }),
    )
  const exported = async () => {
    texts.clear()
    const seed = await exportSeed(app.context, { secrets: false })
    return { seed, texts: new Set(texts) }
  }
  await apply([1])
  const one = await exported()
  await apply([1, 2, 3])
  const more = await exported()
  stop()
  expect(one.texts.size).toBeGreaterThan(3)
  expect(more.texts).toEqual(one.texts)
  expect(more.seed.users?.map(({ roles }) => roles)).toEqual(Array(3).fill(['editor', 'user']))
  expect(more.seed.groups?.map(({ roles }) => roles)).toEqual(Array(3).fill(['editor']))
})
