import {
  and,
  type Column,
  desc,
  eq,
  gt,
  inArray,
  isNull,
  lte,
  ne,
  notInArray,
  type SQL,
  sql,
} from 'drizzle-orm'
import type { LoginId, OrganizationId, SessionId, UserId } from '#src/lib/ids.ts'
import { DOCUMENT_DYNAMIC } from '#src/protocol/oauth/dynamic-id.ts'
import type { Queries } from '#src/storage/store.ts'
import type { Tables } from '#src/storage/tables.ts'

/** Selects sessions. A session must match every field that is present. */
export interface SessionFilter {
  session_id?: SessionId | undefined
  user_id?: UserId | undefined
  client_id?: string | undefined
  /** Only sessions of clients whose id begins with one of these prefixes of four characters. */
  client_prefixes?: readonly string[] | undefined
  /** Only sessions of clients with a metadata document. */
  from_document?: boolean | undefined
  except_client_ids?: readonly string[] | undefined
  organization_id?: OrganizationId | undefined
  login_id?: LoginId | undefined
  /** Excludes the sessions of this login. */
  except_login_id?: LoginId | undefined
  /** Only sessions that started at this time (ms) or earlier. */
  started_by?: number | undefined
}

/** Condition for sessions that are neither ended nor expired at `now` (ms). */
export const isActive = ({ sessions }: Tables, now: number) =>
  and(isNull(sessions.ended_at), gt(sessions.expires_at, now))

/**
 * Condition for sessions that have expired but are not marked as ended. `due_at` is never later than
 * `expires_at`, so the index of `due_at` finds these sessions.
 */
export const hasExpired = ({ sessions }: Tables, now: number) =>
  and(isNull(sessions.ended_at), lte(sessions.due_at, now), lte(sessions.expires_at, now))

/** Fields whose column has an index. A field that usually matches fewer sessions comes earlier. */
const indexed = ['session_id', 'login_id', 'user_id', 'client_id', 'organization_id'] as const
export type Indexed = (typeof indexed)[number]

const columnOf = ({ sessions }: Tables, name: Indexed): Column =>
  name === 'session_id' ? sessions.id : sessions[name]

/**
 * Number of sessions that `sample` skips. Skipping 1,000 sessions takes less time than a read by the wrong
 * index.
 */
const SAMPLE = 1000

/**
 * Looks at the sessions that match the filter's field `name` and have not ended. Returns the id of the
 * session that is older than exactly `SAMPLE` of these sessions. Returns '' when there are too few sessions.
 */
const sample = async (q: Queries, filter: SessionFilter, name: Indexed): Promise<string> => {
  const { sessions } = q.tables
  const [found] = await q
    .select({ id: sessions.id })
    .from(sessions)
    .where(and(eq(columnOf(q.tables, name), filter[name]), isNull(sessions.ended_at)))
    .orderBy(desc(sessions.id))
    .limit(1)
    .offset(SAMPLE)
  return found?.id ?? ''
}

/**
 * Returns the field whose index finds the fewest sessions. If the filter names a client and an organization,
 * the data decide: a client can have sessions of several organizations, and an organization has sessions at
 * several clients.
 */
export const narrowest = async (q: Queries, filter: SessionFilter): Promise<Indexed | undefined> => {
  const [first, second] = indexed.filter(name => filter[name] !== undefined)
  if (first !== 'client_id' || second === undefined) return first
  // Each sample has `SAMPLE` newer sessions that match its field. The older sample therefore belongs to the
  // field with fewer sessions.
  return (await sample(q, filter, second)) < (await sample(q, filter, first)) ? second : first
}

/**
 * Returns the condition of one field. An undefined value adds no condition. An empty text, which a form can
 * send, adds a condition that matches no row. Without this condition a revocation would sign everyone out.
 * `coalesce` keeps the query planner from choosing the index of a field other than `by`.
 */
const equal = (
  tables: Tables,
  filter: SessionFilter,
  name: Indexed,
  by: Indexed | undefined,
): SQL | undefined => {
  const [column, value] = [columnOf(tables, name), filter[name]]
  if (value === undefined) return undefined
  return name === by ? eq(column, value) : sql`coalesce(${column}, ${column}) = ${value}`
}

/** Condition for the sessions that the index of the field `by` finds and that have not ended. */
export const foundBy = (tables: Tables, filter: SessionFilter, by: Indexed | undefined): SQL | undefined =>
  and(isNull(tables.sessions.ended_at), by && equal(tables, filter, by, by))

/**
 * True when the filter has conditions besides `by`. Each session that the index of `by` finds must then be
 * compared with these conditions.
 */
export const isCompared = (filter: SessionFilter, by: Indexed | undefined): boolean =>
  Object.entries(filter).some(([name, value]) => value !== undefined && name !== by)

/** Condition for sessions that match every field of the filter. The field `by` is looked up in its index. */
export const matching = (tables: Tables, filter: SessionFilter, by: Indexed | undefined): SQL | undefined => {
  const { sessions, clients } = tables
  return and(
    ...indexed.map(name => equal(tables, filter, name, by)),
    filter.client_prefixes && inArray(sql`substr(${sessions.client_id}, 1, 4)`, [...filter.client_prefixes]),
    filter.from_document
      ? sql`${sessions.client_id} LIKE ${`${DOCUMENT_DYNAMIC}%`} AND NOT EXISTS (SELECT 1 FROM ${clients} WHERE ${clients.client_id} = ${sessions.client_id})`
      : undefined,
    filter.except_client_ids && notInArray(sessions.client_id, [...filter.except_client_ids]),
    filter.except_login_id && ne(sessions.login_id, filter.except_login_id),
    filter.started_by === undefined ? undefined : lte(sessions.started_at, filter.started_by),
  )
}
