import { asc, type Column, eq, notExists, type SQL, sql } from 'drizzle-orm'
import type { OrganizationId } from '#src/lib/ids.ts'
import type { SigningAlg } from '#src/protocol/oidc/signing-algs.ts'
import { prepared, type Queries, type Transaction } from './store.ts'
import type { LogoutTarget, Tables } from './tables.ts'

export type PurgeKind = Tables['purges']['$inferSelect']['kind']

/**
 * Returns the condition that none of the columns contains the id of a deleted object whose purge is pending.
 */
export const notPurged = (q: Queries, ...columns: [Column, ...Column[]]): SQL => {
  const { purges } = q.tables
  const named = sql.join(columns, sql`, `)
  return notExists(q.select({ id: purges.id }).from(purges).where(sql`${purges.id} IN (${named})`))
}

const selectPurges = prepared((q, { purges }) => q.select().from(purges).orderBy(asc(purges.created_at)))

/** Lists the unfinished purges, the oldest first. */
export const listPurges = (q: Queries) => selectPurges(q, {})

/** Returns the `created_at` of a purge that is not finished. */
export const findPurge = async (q: Queries, id: string): Promise<number | undefined> => {
  const { created_at, id: column } = q.tables.purges
  return (await q.select({ created_at }).from(q.tables.purges).where(eq(column, id)))[0]?.created_at
}

/** True while rows of the deleted object remain. */
export const isPurging = async (q: Queries, id: string): Promise<boolean> =>
  (await findPurge(q, id)) !== undefined

/**
 * Starts the purge of a deleted object and returns the purge. All reads hide the rows of the object until the
 * purge has removed them in many writes. If an unfinished purge already has this `id`, its `created_at` is
 * increased, which ends a `rebuildIndex` that runs for the earlier request.
 */
export const beginPurge = async (
  tx: Transaction,
  kind: PurgeKind,
  id: string,
  now: number,
  logout?: LogoutTarget,
): Promise<{ id: string; created_at: number }> => {
  const { purges } = tx.tables
  const [row] = await tx
    .insert(purges)
    .values({ id, kind, created_at: now, logout })
    .onConflictDoUpdate({ target: purges.id, set: { created_at: sql`${purges.created_at} + 1` } })
    .returning({ created_at: purges.created_at })
  return { id, created_at: row?.created_at ?? now }
}

/** Marks a purge as finished. The caller has removed all rows of the deleted object. */
export const endPurge = async (tx: Transaction, id: string): Promise<void> => {
  await tx.delete(tx.tables.purges).where(eq(tx.tables.purges.id, id))
}

/**
 * Returns the receiver of a client's logout tokens. Returns undefined when the client gets no logout tokens.
 * A purge stores the receiver, because logouts are sent after the deletion of the client.
 */
export const logoutTarget = (
  client: {
    organization_id: OrganizationId
    backchannel_logout_uri: string | null
    id_token_signed_response_alg: SigningAlg | null
    created_at: number
  },
  slug: string,
): LogoutTarget | undefined =>
  client.backchannel_logout_uri === null
    ? undefined
    : {
        client_created_at: client.created_at,
        organization_id: client.organization_id,
        slug,
        uri: client.backchannel_logout_uri,
        alg: client.id_token_signed_response_alg,
      }

/** Number of rows in one INSERT. SQLite allows 32,766 parameters in a statement. */
const ROWS = 1_000

/** Starts the purges of the clients of a deleted organization. `slug` is the slug of the organization. */
export const beginClientPurges = async (
  tx: Transaction,
  clients: readonly (Parameters<typeof logoutTarget>[0] & { client_id: string })[],
  slug: string,
  now: number,
): Promise<void> => {
  const rows = clients.map(client => ({
    id: client.client_id,
    kind: 'client' as const,
    created_at: now,
    logout: logoutTarget(client, slug),
  }))
  for (let start = 0; start < rows.length; start += ROWS)
    await tx
      .insert(tx.tables.purges)
      .values(rows.slice(start, start + ROWS))
      .onConflictDoNothing()
}
