import { and, type Column, eq, gt, inArray, isNull, lte, ne, notInArray, type SQL, sql } from 'drizzle-orm'
import type { LoginId, OrganizationId, SessionId, UserId } from '#src/lib/ids.ts'
import { DOCUMENT_DYNAMIC } from '#src/protocol/oauth/dynamic-id.ts'
import type { Tables } from '#src/storage/tables.ts'

/** Selects the sessions that match every field present. */
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
}

/** Condition for sessions that are neither ended nor expired at `now` (ms). */
export const isActive = ({ sessions }: Tables, now: number) =>
  and(isNull(sessions.ended_at), gt(sessions.expires_at, now))

/**
 * Condition for expired sessions. `due_at` is never later than `expires_at`, so the index of `due_at` finds
 * them.
 */
export const hasExpired = ({ sessions }: Tables, now: number) =>
  and(isNull(sessions.ended_at), lte(sessions.due_at, now), lte(sessions.expires_at, now))

/**
 * Returns the condition of one field. An undefined value adds no condition. An empty text, as a form may send
 * it, matches no row: without a condition a revocation would sign everyone out.
 */
const equal = (column: Column, value: string | undefined): SQL | undefined =>
  value === undefined ? undefined : eq(column, value)

/** Condition for sessions that match every field of the filter. */
export const matching = ({ sessions, clients }: Tables, filter: SessionFilter): SQL | undefined =>
  and(
    equal(sessions.id, filter.session_id),
    equal(sessions.user_id, filter.user_id),
    equal(sessions.client_id, filter.client_id),
    filter.client_prefixes && inArray(sql`substr(${sessions.client_id}, 1, 4)`, [...filter.client_prefixes]),
    filter.from_document
      ? sql`${sessions.client_id} LIKE ${`${DOCUMENT_DYNAMIC}%`} AND NOT EXISTS (SELECT 1 FROM ${clients} WHERE ${clients.client_id} = ${sessions.client_id})`
      : undefined,
    filter.except_client_ids && notInArray(sessions.client_id, [...filter.except_client_ids]),
    equal(sessions.organization_id, filter.organization_id),
    equal(sessions.login_id, filter.login_id),
    filter.except_login_id && ne(sessions.login_id, filter.except_login_id),
  )
