import { Database } from 'bun:sqlite'
import { expect, test } from 'bun:test'
import { SQL } from 'bun'
import { eq } from 'drizzle-orm'
import { DEFAULT_ORGANIZATION, type OrganizationId } from '#src/lib/ids.ts'
import { searchText } from '#src/storage/search.ts'
import { totalsQueries } from '#src/storage/sqlite/inspect.ts'
import type { Transaction } from '#src/storage/store.ts'
import type { Tables } from '#src/storage/tables.ts'
import { freshStore, isPostgres } from '#test/support/store.ts'
import {
  clientRow,
  eventRow,
  groupRow,
  holderRow,
  organizationRow,
  roleRow,
  sessionRow,
  userRow,
} from './rows.ts'

const counted = ['users', 'roles', 'groups', 'clients', 'sessions', 'events'] as const

/** Reads or changes the database without the store. */
const ask = async (path: string, query: string): Promise<unknown[][]> => {
  if (!isPostgres) {
    using db = new Database(path)
    return db.query(query).values()
  }
  const sql = new SQL({ url: path, max: 1 })
  const rows = await sql.unsafe(query).values()
  await sql.close()
  return rows
}

/**
 * Returns each total that triggers maintain, and the number of rows that is counted now. Both numbers must be
 * equal.
 */
const counts = async (path: string): Promise<[what: unknown, kept: number, real: number][]> => {
  const perOrganization = counted.map(
    kind => `SELECT '${kind} of ' || id, coalesce((SELECT total FROM counters WHERE kind = '${kind}' AND organization_id = o.id), -1),
      (SELECT count(*) FROM ${kind} t WHERE t.organization_id = o.id ${kind === 'sessions' ? 'AND ended_at IS NULL' : ''}) FROM organizations o`,
  )
  const rows = await ask(
    path,
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
  return rows.map(([what, kept, real]) => [what, Number(kept), Number(real)])
}

const expectExact = async (path: string) => {
  for (const [what, kept, real] of await counts(path)) expect([what, kept]).toEqual([what, real])
}

/** Returns the findings of `check` about the totals. */
const findings = async (path: string): Promise<unknown[]> => {
  const asked = totalsQueries.map(({ query, finding }) => `SELECT '${finding}', (${query})`)
  const rows = await ask(path, asked.join(' UNION ALL '))
  return rows.filter(([, wrong]) => Number(wrong) !== 0).map(([finding]) => finding)
}

/** Pseudo-random numbers, the same in each run (Lehmer). */
const dice = (seed: number) => (sides: number) => {
  seed = (seed * 48_271) % 2_147_483_647
  return seed % sides
}

type Step = (tx: Transaction, organization_id: OrganizationId) => unknown

/** Returns all kinds of changes that affect a total. `roll` chooses the rows. */
const stepsBy = (roll: (sides: number) => number): Step[] => {
  let n = 0
  const pick = <Row>(rows: Row[]): Row | undefined => rows[roll(Math.max(rows.length, 1))]
  type Table = 'organizations' | 'users' | 'roles' | 'groups' | 'sessions'
  const remove =
    (name: Table): Step =>
    async tx => {
      const table = tx.tables[name] as Tables['users']
      const row = pick(await tx.select({ id: table.id }).from(table))
      if (row) await tx.delete(table).where(eq(table.id, row.id))
    }
  return [
    tx => tx.insert(tx.tables.organizations).values(organizationRow(`o${++n}`)),
    (tx, id) => tx.insert(tx.tables.users).values([1, 2, 3].map(() => userRow(id, `u${++n}`))),
    (tx, id) => tx.insert(tx.tables.roles).values(roleRow(id, `r${++n}`)),
    (tx, id) => tx.insert(tx.tables.groups).values(groupRow(id, `g${++n}`)),
    (tx, id) => tx.insert(tx.tables.clients).values(clientRow(id, `c${++n}`)),
    (tx, id) => tx.insert(tx.tables.events).values([eventRow(id), eventRow(id)]),
    async (tx, id) => {
      const user = pick(await tx.select().from(tx.tables.users))
      if (user) await tx.insert(tx.tables.sessions).values([sessionRow(id, user.id), sessionRow(id, user.id)])
    },
    async tx => {
      const role = pick(await tx.select().from(tx.tables.roles))
      const holders = (await tx.select().from(tx.tables.users)).filter(() => roll(2) === 0)
      const rows = role ? holders.map(user => holderRow(user, role)) : []
      if (rows.length > 0) await tx.insert(tx.tables.user_roles).values(rows).onConflictDoNothing()
    },
    async tx => {
      const group = pick(await tx.select().from(tx.tables.groups))
      const user = pick(await tx.select().from(tx.tables.users))
      const row = group && user && { group_id: group.id, user_id: user.id }
      if (row) await tx.insert(tx.tables.group_members).values(row).onConflictDoNothing()
    },
    // Ends a session, even if the session has ended before, or undoes the end.
    async tx => {
      const { sessions } = tx.tables
      const session = pick(await tx.select().from(sessions))
      const ended_at = roll(3) === 0 ? null : 5
      if (session) await tx.update(sessions).set({ ended_at }).where(eq(sessions.id, session.id))
    },
    (tx, id) => tx.delete(tx.tables.events).where(eq(tx.tables.events.organization_id, id)),
    (tx, id) => tx.delete(tx.tables.clients).where(eq(tx.tables.clients.organization_id, id)),
    ...(['organizations', 'users', 'roles', 'groups', 'sessions'] as const).map(remove),
  ]
}

test('counters equal the row counts after any sequence of changes, rolled back ones included', async () => {
  const store = await freshStore()
  const roll = dice(7)
  const steps = stepsBy(roll)
  const change = async (tx: Transaction) => {
    const organizations = await tx.select().from(tx.tables.organizations)
    const { id = DEFAULT_ORGANIZATION } = organizations[roll(Math.max(organizations.length, 1))] ?? {}
    await steps[roll(steps.length)]?.(tx, id)
    if (roll(8) === 0) throw new RangeError('undone')
  }
  let most = 0
  for (let round = 0; round < 20; round++) {
    const results = await Promise.allSettled(Array.from({ length: 40 }, () => store.write(change)))
    for (const result of results)
      if (result.status === 'rejected') expect(result.reason).toEqual(new RangeError('undone'))
    await expectExact(store.path)
    expect(await findings(store.path)).toEqual([])
    most = Math.max(most, (await counts(store.path)).filter(([, kept]) => kept > 0).length)
  }
  // `most` is the maximum of all rounds, because the last round may leave hardly any rows. PostgreSQL chooses
  // the order of the writes.
  expect(most).toBeGreaterThan(10)
})

test('deleting an organization deletes its counters: removing its rows later counts nothing', async () => {
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
  // A new organization with the same id and slug starts with empty totals.
  await store.write(tx => tx.insert(tx.tables.organizations).values(organization))
  await expectExact(store.path)
})

test('check finds totals that are too high, too low or missing, and none in the rest of a deleted organization', async () => {
  const store = await freshStore()
  expect(await findings(store.path)).toEqual([])
  const [here, gone] = [organizationRow('here'), organizationRow('gone')]
  await store.write(async tx => {
    const { organizations, users, roles, groups, clients, events, sessions } = tx.tables
    for (const { id } of [here, gone]) {
      const user = userRow(id, 'ann')
      await tx.insert(organizations).values(id === here.id ? here : gone)
      await tx.insert(users).values(user)
      await tx.insert(roles).values(roleRow(id, 'editor'))
      await tx.insert(groups).values(groupRow(id, 'staff'))
      await tx.insert(clients).values(clientRow(id, `shop-${id}`))
      await tx.insert(events).values(eventRow(id))
      await tx.insert(sessions).values(sessionRow(id, user.id))
    }
    await tx.delete(organizations).where(eq(organizations.id, gone.id))
  })
  expect(await findings(store.path)).toEqual([])
  const table = isPostgres ? 'counter_slots' : 'counters'
  await ask(store.path, `DELETE FROM ${table} WHERE total = 0`)
  for (const kind of [...counted, 'organizations'])
    for (const wrong of ['total + 1', 'total - 1']) {
      const where = `WHERE kind = '${kind}' AND total = 1`
      await ask(store.path, `UPDATE ${table} SET total = ${wrong} ${where}`)
      expect([kind, await findings(store.path)]).toEqual([
        kind,
        [`totals: the number of ${kind} differs from the stored total`],
      ])
      await ask(store.path, `UPDATE ${table} SET total = 1 WHERE kind = '${kind}' AND total IN (0, 2)`)
    }
  expect(await findings(store.path)).toEqual([])
  await ask(store.path, `DELETE FROM ${table}`)
  expect(await findings(store.path)).toHaveLength(counted.length + 1)
})

test('check finds a count of users or members that differs from the rows, on each kind of object', async () => {
  const store = await freshStore()
  const organization = organizationRow('here')
  const user = userRow(organization.id, 'ann')
  const role = roleRow(organization.id, 'editor')
  const group = groupRow(organization.id, 'staff')
  await store.write(async tx => {
    const { organizations, users, roles, groups, user_roles, group_members } = tx.tables
    await tx.insert(organizations).values(organization)
    const [holder] = await tx.insert(users).values(user).returning()
    const [held] = await tx.insert(roles).values(role).returning()
    await tx.insert(groups).values(group)
    if (holder && held) await tx.insert(user_roles).values(holderRow(holder, held))
    await tx.insert(group_members).values({ group_id: group.id, user_id: user.id })
  })
  expect(await findings(store.path)).toEqual([])
  for (const [table, column, id, rows] of [
    ['organizations', 'user_count', organization.id, 'users'],
    ['roles', 'user_count', role.id, 'user_roles'],
    ['groups', 'member_count', group.id, 'group_members'],
  ])
    for (const wrong of [0, 2]) {
      const change = (to: number) =>
        ask(store.path, `UPDATE ${table} SET ${column} = ${to} WHERE id = '${id}'`)
      await change(wrong)
      expect(await findings(store.path)).toEqual([
        `totals: ${column} in ${table} differs from the rows in ${rows}`,
      ])
      await change(1)
    }
  expect(await findings(store.path)).toEqual([])
})

test('EVT-16 an event cannot be changed, and the attempt rolls back nothing else', async () => {
  const store = await freshStore()
  await store.write(async tx => {
    const { events } = tx.tables
    await tx.insert(events).values(eventRow(DEFAULT_ORGANIZATION))
    const change = tx.nested(() => tx.update(events).set({ type: 'user.logout' }).execute())
    await expect(change).rejects.toThrow('events are immutable')
  })
  const kept = await store.read(q => q.select({ type: q.tables.events.type }).from(q.tables.events))
  expect(kept).toEqual([{ type: 'user.login' }])
})

test('roles and memberships are deleted with their user', async () => {
  const store = await freshStore()
  const user = userRow(DEFAULT_ORGANIZATION, 'ann')
  const group = groupRow(DEFAULT_ORGANIZATION, 'staff')
  await store.write(async tx => {
    const { users, groups, group_members } = tx.tables
    await tx.insert(users).values(user)
    await tx.insert(groups).values(group)
    await tx.insert(group_members).values({ group_id: group.id, user_id: user.id })
    await tx.delete(users)
    expect(await tx.$count(group_members)).toBe(0)
  })
  const orphan = store.write(tx =>
    tx.insert(tx.tables.group_members).values({ group_id: group.id, user_id: user.id }),
  )
  await expect(orphan).rejects.toThrow(/foreign key constraint/i)
})

test('search follows search_text through insert, update, delete and VACUUM', async () => {
  const store = await freshStore()
  const people = ['ann', 'bob', 'cleo'].map(name =>
    userRow(DEFAULT_ORGANIZATION, name, { first_name: 'Élodie', last_name: name }),
  )
  const found = async (term: string) => {
    if (isPostgres)
      return (
        await ask(store.path, `SELECT username FROM users WHERE search_text LIKE '%${term}%' ORDER BY 1`)
      ).flat()
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
