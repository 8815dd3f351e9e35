import { Database } from 'bun:sqlite'
import { expect, test } from 'bun:test'
import { eq, sql } from 'drizzle-orm'
import { DEFAULT_ORGANIZATION, type OrganizationId } from '#src/lib/ids.ts'
import { searchText } from '#src/storage/search.ts'
import type { Transaction } from '#src/storage/store.ts'
import { freshStore } from '#test/support/store.ts'
import {
  clientRow,
  eventRow,
  groupRow,
  organizationRow,
  refreshTokenRow,
  roleRow,
  sessionRow,
  userRow,
} from './rows.ts'

const counted = ['users', 'roles', 'groups', 'clients', 'sessions', 'events'] as const

/** Every count that triggers keep beside the count of the rows; the two columns must be equal. */
const counts = (path: string): [what: string, kept: number, real: number][] => {
  using db = new Database(path, { readonly: true })
  const perOrganization = counted.map(
    kind => `SELECT '${kind} of ' || id, coalesce((SELECT total FROM counters WHERE kind = '${kind}' AND organization_id = o.id), -1),
      (SELECT count(*) FROM ${kind} t WHERE t.organization_id = o.id ${kind === 'sessions' ? 'AND ended_at IS NULL' : ''}) FROM organizations o`,
  )
  return db
    .query(
      [
        ...perOrganization,
        "SELECT 'organizations', total, (SELECT count(*) FROM organizations) FROM counters WHERE kind = 'organizations'",
        "SELECT 'users of ' || id, user_count, (SELECT count(*) FROM users u WHERE u.organization_id = o.id) FROM organizations o",
        "SELECT 'holders of ' || id, user_count, (SELECT count(*) FROM user_roles h WHERE h.role_id = r.id) FROM roles r",
        "SELECT 'members of ' || id, member_count, (SELECT count(*) FROM group_members m WHERE m.group_id = g.id) FROM groups g",
        `SELECT 'rows of nobody', count(*), 0 FROM counters
          WHERE total < 0 OR (organization_id <> '' AND organization_id NOT IN (SELECT id FROM organizations))`,
      ].join(' UNION ALL '),
    )
    .values() as [string, number, number][]
}

const expectExact = (path: string) => {
  for (const [what, kept, real] of counts(path)) expect([what, kept]).toEqual([what, real])
}

/** Numbers that look random and are the same in each run (Lehmer). */
const dice = (seed: number) => (sides: number) => {
  seed = (seed * 48_271) % 2_147_483_647
  return seed % sides
}

test('counters equal the counts of rows after any sequence of changes', async () => {
  const store = await freshStore()
  const roll = dice(7)
  const rowOf = async (
    tx: Transaction,
    table: 'organizations' | 'users' | 'roles' | 'groups' | 'sessions',
  ) => {
    const rows = await tx.select({ id: tx.tables[table].id }).from(tx.tables[table])
    return rows[roll(Math.max(rows.length, 1))]?.id
  }
  let n = 0
  const steps: ((tx: Transaction, organization_id: OrganizationId) => unknown)[] = [
    (tx, id) => tx.insert(tx.tables.users).values(userRow(id, `u${++n}`)),
    (tx, id) => tx.insert(tx.tables.users).values(userRow(id, `u${++n}`)),
    (tx, id) => tx.insert(tx.tables.roles).values(roleRow(id, `r${++n}`)),
    (tx, id) => tx.insert(tx.tables.groups).values(groupRow(id, `g${++n}`)),
    (tx, id) => tx.insert(tx.tables.clients).values(clientRow(id, `c${++n}`)),
    (tx, id) => tx.insert(tx.tables.events).values(eventRow(id)),
    (tx, id) => tx.delete(tx.tables.events).where(eq(tx.tables.events.organization_id, id)),
    (tx, id) => tx.delete(tx.tables.clients).where(eq(tx.tables.clients.organization_id, id)),
    async (tx, id) => {
      const user_id = (await rowOf(tx, 'users')) as `usr_${string}` | undefined
      if (user_id) await tx.insert(tx.tables.sessions).values(sessionRow(id, user_id))
    },
    async (tx, id) => {
      const session_id = (await rowOf(tx, 'sessions')) as `sess_${string}` | undefined
      if (session_id)
        await tx.insert(tx.tables.refresh_tokens).values(refreshTokenRow(session_id, `${id}${++n}`))
    },
    // Ending twice counts once; an end can be taken back.
    async tx => {
      const ended_at = roll(3) === 0 ? null : 5
      const id = (await rowOf(tx, 'sessions')) as `sess_${string}` | undefined
      if (id) await tx.update(tx.tables.sessions).set({ ended_at }).where(eq(tx.tables.sessions.id, id))
    },
    async tx => {
      const id = (await rowOf(tx, 'sessions')) as `sess_${string}` | undefined
      if (id) await tx.delete(tx.tables.sessions).where(eq(tx.tables.sessions.id, id))
    },
    async tx => {
      const { users, group_members } = tx.tables
      const group_id = (await rowOf(tx, 'groups')) as `grp_${string}` | undefined
      if (!group_id) return
      const members = (await tx.select({ user_id: users.id }).from(users)).map(({ user_id }) => ({
        group_id,
        user_id,
      }))
      if (members.length > 0) await tx.insert(group_members).values(members).onConflictDoNothing()
    },
    async tx => {
      const { users, user_roles } = tx.tables
      const [user] = await tx
        .select()
        .from(users)
        .orderBy(sql`${users.seq} % ${roll(9) + 2}`)
        .limit(1)
      const role_id = (await rowOf(tx, 'roles')) as `role_${string}` | undefined
      if (!user || !role_id) return
      await tx
        .insert(user_roles)
        .values({ ...user, user_id: user.id, role_id })
        .onConflictDoNothing()
    },
    async tx => {
      const id = (await rowOf(tx, 'users')) as `usr_${string}` | undefined
      if (id && roll(3) === 0) await tx.delete(tx.tables.users).where(eq(tx.tables.users.id, id))
    },
    async tx => {
      const id = (await rowOf(tx, 'roles')) as `role_${string}` | undefined
      if (id && roll(3) === 0) await tx.delete(tx.tables.roles).where(eq(tx.tables.roles.id, id))
    },
    async tx => {
      const id = (await rowOf(tx, 'groups')) as `grp_${string}` | undefined
      if (id && roll(3) === 0) await tx.delete(tx.tables.groups).where(eq(tx.tables.groups.id, id))
    },
    tx => tx.insert(tx.tables.organizations).values(organizationRow(`o${++n}`)),
    async tx => {
      const id = (await rowOf(tx, 'organizations')) as OrganizationId | undefined
      if (id && roll(4) === 0)
        await tx.delete(tx.tables.organizations).where(eq(tx.tables.organizations.id, id))
    },
  ]
  await store.write(tx => tx.insert(tx.tables.organizations).values(organizationRow('first')))
  for (let round = 0; round < 20; round++) {
    const step = async (tx: Transaction) => {
      const id = (await rowOf(tx, 'organizations')) as OrganizationId | undefined
      await steps[roll(steps.length)]?.(tx, id ?? DEFAULT_ORGANIZATION)
      // Some changes are undone by their savepoint.
      if (roll(8) === 0) throw new RangeError('undone')
    }
    const results = await Promise.allSettled(Array.from({ length: 40 }, () => store.write(step)))
    for (const result of results)
      if (result.status === 'rejected') expect(result.reason).toEqual(new RangeError('undone'))
    expectExact(store.path)
  }
  expect(counts(store.path).filter(([, kept]) => kept > 0).length).toBeGreaterThan(10)
})

test('an organization takes its counters along: removing its rows later counts nothing', async () => {
  const store = await freshStore()
  const organization = organizationRow('gone')
  const user = userRow(organization.id, 'ann')
  await store.write(async tx => {
    await tx.insert(tx.tables.organizations).values(organization)
    await tx.insert(tx.tables.users).values(user)
    await tx.insert(tx.tables.events).values(eventRow(organization.id))
    await tx.delete(tx.tables.organizations).where(eq(tx.tables.organizations.id, organization.id))
  })
  const left = () => store.read(q => q.select().from(q.tables.counters))
  expect(await left()).toEqual([{ kind: 'organizations', organization_id: '' as OrganizationId, total: 0 }])
  await store.write(async tx => {
    await tx.insert(tx.tables.events).values(eventRow(organization.id))
    await tx.delete(tx.tables.events)
    await tx.delete(tx.tables.users)
  })
  expect(await left()).toHaveLength(1)
  // The same id and slug start from nothing.
  await store.write(tx => tx.insert(tx.tables.organizations).values(organization))
  expectExact(store.path)
})

test('an event cannot be changed, and the attempt undoes nothing else', async () => {
  const store = await freshStore()
  await store.write(async tx => {
    const { events } = tx.tables
    await tx.insert(events).values(eventRow(DEFAULT_ORGANIZATION))
    await expect(tx.update(events).set({ type: 'user.logout' }).execute()).rejects.toThrow(
      'events are immutable',
    )
  })
  const kept = await store.read(q => q.select({ type: q.tables.events.type }).from(q.tables.events))
  expect(kept).toEqual([{ type: 'user.login' }])
})

test('refresh tokens go with their session, roles and memberships with their user', async () => {
  const store = await freshStore()
  const user = userRow(DEFAULT_ORGANIZATION, 'ann')
  const session = sessionRow(DEFAULT_ORGANIZATION, user.id)
  const group = groupRow(DEFAULT_ORGANIZATION, 'staff')
  await store.write(async tx => {
    const { users, sessions, refresh_tokens, groups, group_members } = tx.tables
    await tx.insert(users).values(user)
    await tx.insert(sessions).values(session)
    await tx.insert(refresh_tokens).values(refreshTokenRow(session.id, 'a'))
    await tx.insert(groups).values(group)
    await tx.insert(group_members).values({ group_id: group.id, user_id: user.id })
    await tx.delete(sessions)
    await tx.delete(users)
    expect(await tx.$count(refresh_tokens)).toBe(0)
    expect(await tx.$count(group_members)).toBe(0)
  })
  const orphan = store.write(tx =>
    tx.insert(tx.tables.refresh_tokens).values(refreshTokenRow(session.id, 'b')),
  )
  await expect(orphan).rejects.toThrow('FOREIGN KEY constraint failed')
})

test('the search index follows search_text through insert, update, delete and VACUUM', async () => {
  const store = await freshStore()
  const people = ['ann', 'bob', 'cleo'].map(name =>
    userRow(DEFAULT_ORGANIZATION, name, { first_name: 'Élodie', last_name: name }),
  )
  const found = async (term: string) => {
    using db = new Database(store.path)
    db.run('VACUUM')
    db.run("INSERT INTO users_search (users_search, rank) VALUES ('integrity-check', 1)")
    return db
      .query(
        'SELECT username FROM users WHERE seq IN (SELECT rowid FROM users_search WHERE search_text MATCH ?) ORDER BY 1',
      )
      .values(`"${term}"`)
      .flat()
  }
  await store.write(async tx => {
    await tx.insert(tx.tables.users).values(people)
    await tx.delete(tx.tables.users).where(eq(tx.tables.users.username, 'ann'))
  })
  expect(await found('élodie')).toEqual(['bob', 'cleo'])
  expect(await found('leo@exam')).toEqual(['cleo'])
  await store.write(async tx => {
    const { users } = tx.tables
    const [bob] = await tx.select().from(users).where(eq(users.username, 'bob'))
    if (!bob) throw new Error('bob is missing')
    const renamed = { ...bob, first_name: 'Zoë' }
    await tx
      .update(users)
      .set({ first_name: 'Zoë', search_text: searchText(renamed) })
      .where(eq(users.id, bob.id))
    await tx.update(users).set({ last_login: 9 })
  })
  expect(await found('élodie')).toEqual(['cleo'])
  expect(await found('zoë')).toEqual(['bob'])
})
