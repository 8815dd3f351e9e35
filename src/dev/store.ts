import {
  and,
  asc,
  type Column,
  desc,
  eq,
  getTableColumns,
  gt,
  inArray,
  like,
  lte,
  or,
  type SQL,
  sql,
} from 'drizzle-orm'
import type { AuditEvent } from '#src/audit/schema.ts'
import type { OrganizationId } from '#src/lib/ids.ts'
import { fold, iso } from '#src/lib/text.ts'
import { endPurge, listPurges, notPurged } from '#src/storage/purges.ts'
import { holdCursors } from '#src/storage/remains.ts'
import { preparedForStart, type Queries, type Topic, type Transaction } from '#src/storage/store.ts'
import type { Tables } from '#src/storage/tables.ts'
import { restartTurns } from '#src/webhooks/store.ts'

type Row = Record<string, unknown>
type Name = keyof Tables
/**
 * Drizzle gives each table its own type. This code handles all tables in the same way, so it uses the type of
 * the table `users` for all tables.
 */
type AnyTable = Tables['users']

/**
 * Tables that a reset does not restore. Signing keys stay, because services under test have already read
 * them. Settings stay, because they contain the instance key and the SAML key. Counters are updated by
 * triggers.
 */
const KEPT: ReadonlySet<string> = new Set<Name>(['settings', 'signing_keys', 'counters'])
/**
 * Columns that triggers maintain. A restored row starts with 0. The counted rows are inserted later, and the
 * triggers add 1 for each of them.
 */
const COUNTS: Row = { user_count: 0, member_count: 0 }
const TOPICS: Topic[] = [
  'events',
  'organizations',
  'users',
  'roles',
  'clients',
  'identity_providers',
  'apis',
  'webhooks',
  'settings',
  'throttles',
]

/** Rows of each table that a reset restores, parents first. */
export type Snapshot = ReadonlyMap<Name, readonly Row[]>

const names = ({ tables }: Queries): Name[] => (Object.keys(tables) as Name[]).filter(name => !KEPT.has(name))
const tableOf = ({ tables }: Queries, name: Name) => tables[name] as unknown as AnyTable

/** Copies into memory the rows of all tables that a reset restores. */
export const takeSnapshot = async (q: Queries): Promise<Snapshot> =>
  new Map(
    await Promise.all(names(q).map(async name => [name, await q.select().from(tableOf(q, name))] as const)),
  )

const insert = async (tx: Transaction, name: Name, rows: readonly Row[]): Promise<void> => {
  if (rows.length === 0) return
  const table = tableOf(tx, name)
  const columns = getTableColumns(table)
  const uncounted = Object.fromEntries(Object.entries(COUNTS).filter(([column]) => column in columns))
  await tx.insert(table).values(rows.map(row => ({ ...row, ...uncounted })) as AnyTable['$inferInsert'][])
}

/** Restores all data of the snapshot. */
export const restoreAll = async (tx: Transaction, snapshot: Snapshot): Promise<void> => {
  for (const name of names(tx).reverse()) await tx.delete(tableOf(tx, name))
  for (const name of names(tx)) await insert(tx, name, snapshot.get(name) ?? [])
  for (const topic of TOPICS) tx.changed(topic)
}

/**
 * Returns the column that numbers the rows of a table, and the `shift` to add to each number in `rows`. The
 * shift prevents a conflict with an existing row, because SQLite may have given the number of a deleted row
 * to a new row of another organization. All numbers get the same shift, so the rows keep their order.
 */
const shiftOf = async (
  tx: Transaction,
  name: Name,
  rows: readonly Row[],
): Promise<{ column?: string; shift: number }> => {
  const table = tableOf(tx, name)
  const column = Object.values(getTableColumns(table)).find(
    ({ primary, dataType }) => primary && dataType === 'number',
  )
  if (!column || rows.length === 0) return { shift: 0 }
  const found = await tx.select({ number: column }).from(table).orderBy(desc(column))
  const taken = new Set<unknown>(found.map(({ number }) => number))
  const isFree = rows.every(row => !taken.has(row[column.name]))
  return { column: column.name, shift: isFree ? 0 : Number(found[0]?.number) }
}

/**
 * Restores the data of one organization. An organization that the snapshot does not have is deleted. Rejects
 * with a unique violation when another organization has taken a name that is unique on the server.
 */
export const restoreOrganization = async (
  tx: Transaction,
  snapshot: Snapshot,
  id: OrganizationId,
  now: number,
): Promise<void> => {
  const belongs = (name: Name): SQL | undefined => {
    const { organization_id, id: own } = getTableColumns(tableOf(tx, name))
    return name === 'organizations' ? eq(own, id as never) : organization_id && eq(organization_id, id)
  }
  // A table that has no column `organization_id` is skipped. Rows that belong to a user, group or role are
  // deleted together with it. Other rows, such as those of used assertions, name no organization and stay.
  for (const name of names(tx).reverse()) {
    const condition = belongs(name)
    if (condition) await tx.delete(tableOf(tx, name)).where(condition)
  }
  const back = new Set<unknown>()
  let userShift = 0
  for (const name of names(tx)) {
    const isOwn = (row: Row): boolean =>
      name === 'organizations'
        ? row.id === id
        : 'organization_id' in row
          ? row.organization_id === id
          : back.has(row.user_id) || back.has(row.group_id)
    const rows = (snapshot.get(name) ?? []).filter(isOwn)
    for (const row of rows) {
      const key = name === 'clients' ? row.client_id : row.id
      if (key !== undefined) back.add(key)
    }
    const { column, shift } = await shiftOf(tx, name, rows)
    if (name === 'users') userShift = shift
    await insert(
      tx,
      name,
      rows.map(row => ({
        ...row,
        ...(name === 'user_roles' && { seq: Number(row.seq) + userShift }),
        ...(column && { [column]: Number(row[column]) + shift }),
      })),
    )
  }
  // A purge that began after the snapshot would hide and delete the restored rows, so it is removed. A purge
  // in the snapshot is needed again, so it is restored. The table also has requests to rebuild an index, and
  // their ids end with the organization's id.
  const isOfBack = (purge: Row) => back.has(String(purge.id).split(' ').at(-1))
  for (const purge of (await listPurges(tx)).filter(isOfBack)) await endPurge(tx, purge.id)
  await insert(tx, 'purges', (snapshot.get('purges') ?? []).filter(isOfBack))
  // Test workers that share a server also share one network address, so wrong secrets of one worker would
  // delay the others.
  await tx.delete(tx.tables.throttles)
  await holdCursors(tx)
  // Running turns of webhooks still have events and cursors from before the reset, so they start again.
  await restartTurns(tx, now)
  for (const topic of TOPICS) tx.changed(topic)
}

/**
 * Lists at most 1,000 audit events, oldest first: the first ones after the sequence number `after`, or the
 * newest ones if `after` is undefined.
 */
export const filteredEventsAfter = async (
  q: Queries,
  after: number | undefined,
  filter: { type?: string | undefined; organization_id?: OrganizationId | undefined },
): Promise<{ seq: number; event: AuditEvent }[]> => {
  const { events: t } = q.tables
  const rows = await q
    .select()
    .from(t)
    .where(
      and(
        after === undefined ? undefined : gt(t.seq, after),
        filter.type === undefined ? undefined : eq(t.type, filter.type),
        filter.organization_id && eq(t.organization_id, filter.organization_id),
        notPurged(q, t.organization_id),
      ),
    )
    .orderBy(after === undefined ? desc(t.seq) : asc(t.seq))
    .limit(1_000)
  if (after === undefined) rows.reverse()
  return rows.map(({ seq, subject_id: _, ...row }) => ({
    seq,
    event: { ...row, timestamp: iso(row.timestamp) } as AuditEvent,
  }))
}

/**
 * Lists at most `limit` users whose username or email address contains `search`, in the order of their
 * creation. If `organization_ids` is undefined, lists users of all organizations.
 */
export const firstUsers = (
  q: Queries,
  organization_ids: OrganizationId[] | undefined,
  limit: number,
  search = '',
) => {
  const { users: t } = q.tables
  const pattern = `%${fold(search)}%`
  return q
    .select()
    .from(t)
    .where(
      and(
        organization_ids && inArray(t.organization_id, organization_ids),
        notPurged(q, t.organization_id),
        search === '' ? undefined : or(like(t.username_fold, pattern), like(t.email_fold, pattern)),
      ),
    )
    .orderBy(asc(t.seq))
    .limit(limit)
}

/**
 * Lists at most `limit` clients in the order of their creation. Also returns the slugs of at most 1,000
 * organizations, as a map by id.
 */
export const firstClients = async (q: Queries, limit: number) => {
  const { clients, organizations } = q.tables
  const [found, slugs] = await Promise.all([
    q.select().from(clients).orderBy(asc(clients.created_at), asc(clients.client_id)).limit(limit),
    q.select({ id: organizations.id, slug: organizations.slug }).from(organizations).limit(1_000),
  ])
  return { clients: found, slugs: new Map(slugs.map(({ id, slug }) => [id, slug])) }
}

const since = (column: Column) => sql`${column} + ${sql.placeholder('now')}`

/** The statements of {@link startTimes}. */
const starts = [
  preparedForStart('start settings', (q, { settings: t }) =>
    q
      .update(t)
      .set({ updated_at: since(t.updated_at) })
      .where(lte(t.updated_at, 0)),
  ),
  preparedForStart('start organizations', (q, { organizations: t }) =>
    q.update(t).set({ created_at: since(t.created_at), updated_at: since(t.updated_at) }),
  ),
  preparedForStart('start roles', (q, { roles: t }) =>
    q.update(t).set({ created_at: since(t.created_at), updated_at: since(t.updated_at) }),
  ),
  preparedForStart('start clients', (q, { clients: t }) =>
    q.update(t).set({ created_at: since(t.created_at), updated_at: since(t.updated_at) }),
  ),
  preparedForStart('start users', (q, { users: t }) =>
    q.update(t).set({
      created_at: since(t.created_at),
      updated_at: since(t.updated_at),
      password_changed_at: since(t.password_changed_at),
    }),
  ),
]

/**
 * Adds `now`, the time at which the server starts, to the times of the prepared database. The stored times
 * are relative to the start and at most 0.
 */
export const startTimes = async (tx: Transaction, now: number): Promise<void> => {
  for (const start of starts) await start(tx, { now })
}
