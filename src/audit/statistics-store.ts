import { and, asc, between, eq, sql } from 'drizzle-orm'
import { DAY, HOUR } from '#src/lib/duration.ts'
import type { OrganizationId } from '#src/lib/ids.ts'
import { notPurged } from '#src/storage/purges.ts'
import { preparedForStart, type Queries, type Sum, type Transaction } from '#src/storage/store.ts'

const names = ['logins', 'failed_logins', 'new_users', 'active_users', 'daily_users', 'tokens'] as const

/** Counts of one hour in one organization or in the instance. */
export type Counts = Record<(typeof names)[number], number>

const none = Object.fromEntries(names.map(name => [name, 0])) as Counts

/**
 * Adds counts to the row of the organization and to that of the instance. On PostgreSQL nothing is added in a
 * transaction that only rehearses a write (`is_rehearsal` in migrations/postgres/0000_schema.sql).
 */
const upsert = preparedForStart('add to statistics', (q, { statistics }) => {
  const isPostgres = q.engine === 'postgres'
  const value = (name: string) =>
    isPostgres ? sql`${sql.placeholder(name)}::bigint` : sql`${sql.placeholder(name)}`
  const slot = isPostgres
    ? sql`coalesce(nullif(current_setting('gatehouse.slot', true), ''), '0')::bigint`
    : sql`0`
  const added = sql.join([value('hour'), slot, ...names.map(value)], sql`, `)
  return q
    .insert(statistics)
    .select(
      sql`SELECT organization_id, ${added}
        FROM (SELECT '' AS organization_id UNION ALL SELECT ${sql.placeholder('organization_id')}) AS counted
        WHERE ${isPostgres ? sql`NOT is_rehearsal()` : sql`true`}`,
    )
    .onConflictDoUpdate({
      target: [statistics.organization_id, statistics.hour, statistics.slot],
      set: Object.fromEntries(
        names.map(name => [name, sql`${statistics[name]} + excluded.${sql.identifier(name)}`]),
      ),
    })
})

const SEPARATOR = ' '

const writeCounts: Sum = (tx, key, counts) => {
  const [hour, organization_id] = key.split(SEPARATOR)
  return upsert(tx, { ...none, ...counts, organization_id, hour: Number(hour) })
}

/**
 * Adds to the counts of the hour that contains `now` (ms), in the transaction of the event that is counted. A
 * later deletion does not lower the counts, because a report of a past month must not change.
 */
export const addCounts = (
  tx: Transaction,
  organization_id: OrganizationId,
  now: number,
  counts: Partial<Counts>,
): void => tx.add(writeCounts, `${now - (now % HOUR)}${SEPARATOR}${organization_id}`, counts)

/**
 * Returns the counts of an organization or of the instance from one hour to another (ms). Both hours are
 * included. Each row covers one hour or day, which begins at `start` (ms). Hours and days without counts are
 * left out.
 */
export const readCounts = (
  q: Queries,
  organization_id: OrganizationId | '',
  [from, to]: [number, number],
  interval: typeof HOUR | typeof DAY,
) => {
  const { statistics: t } = q.tables
  const start = sql<number>`${t.hour} - ${t.hour} % ${sql.raw(String(interval))}`.mapWith(Number)
  const total = (name: keyof Counts) => sql<number>`sum(${t[name]})`.mapWith(Number)
  return q
    .select({
      start,
      logins: total('logins'),
      failed_logins: total('failed_logins'),
      new_users: total('new_users'),
      active_users: total(interval === DAY ? 'daily_users' : 'active_users'),
      tokens: total('tokens'),
    })
    .from(t)
    .where(
      and(
        eq(t.organization_id, organization_id as OrganizationId),
        between(t.hour, from, to),
        notPurged(q, t.organization_id),
      ),
    )
    .groupBy(start)
    .orderBy(asc(start))
}
