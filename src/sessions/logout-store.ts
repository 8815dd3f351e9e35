import { randomUUID } from 'node:crypto'
import { and, asc, eq, gt, inArray, isNotNull, isNull, sql } from 'drizzle-orm'
import { DAY } from '#src/lib/duration.ts'
import { prepared, type Queries, type Transaction } from '#src/storage/store.ts'
import type { LogoutTarget, Tables } from '#src/storage/tables.ts'
import type { Session } from './store.ts'

export type LogoutRow = Tables['logouts']['$inferSelect']

/** Time after which an undelivered logout is given up. */
const DELIVER_WITHIN = 2 * DAY
/** Rows of one INSERT: PostgreSQL and SQLite limit the parameters of a statement. */
const ROWS = 500

const targetsOf = async (
  tx: Transaction,
  client_ids: string[],
  on_expiry: boolean,
): Promise<Map<string, LogoutTarget>> => {
  const { clients, purges } = tx.tables
  const found = await tx
    .select({
      client_id: clients.client_id,
      organization_id: clients.organization_id,
      uri: clients.backchannel_logout_uri,
      alg: clients.id_token_signed_response_alg,
    })
    .from(clients)
    .where(
      and(
        inArray(clients.client_id, client_ids),
        isNotNull(clients.backchannel_logout_uri),
        on_expiry ? eq(clients.backchannel_logout_on_expiry, true) : undefined,
      ),
    )
  const targets = new Map(
    found.flatMap(({ client_id, uri, ...rest }) =>
      uri === null ? [] : [[client_id, { ...rest, uri }] as const],
    ),
  )
  if (on_expiry || targets.size === client_ids.length) return targets
  const gone = await tx
    .select({ id: purges.id, logout: purges.logout })
    .from(purges)
    .where(and(inArray(purges.id, client_ids), isNotNull(purges.logout)))
  for (const { id, logout } of gone) if (logout) targets.set(id, logout)
  return targets
}

/**
 * Puts a logout into the outbox for each ended session whose client has a logout URI, in the write that ends
 * them. Sessions that expired are reported to clients that ask for it.
 */
export const enqueueLogouts = async (
  tx: Transaction,
  sessions: Session[],
  now: number,
  on_expiry = false,
): Promise<void> => {
  if (sessions.length === 0) return
  const targets = await targetsOf(tx, [...new Set(sessions.map(({ client_id }) => client_id))], on_expiry)
  const rows = sessions.flatMap(({ id: session_id, client_id, user_id }) => {
    const target = targets.get(client_id)
    if (!target) return []
    const times = { created_at: now, next_attempt_at: now, expires_at: now + DELIVER_WITHIN }
    return [{ jti: randomUUID(), client_id, user_id, session_id, ...target, ...times }]
  })
  for (let start = 0; start < rows.length; start += ROWS)
    await tx.insert(tx.tables.logouts).values(rows.slice(start, start + ROWS))
  if (rows.length > 0) tx.changed('logouts')
}

const selectHead = prepared((q, { logouts, organizations }) =>
  q
    .select({ logout: logouts, slug: organizations.slug })
    .from(logouts)
    .leftJoin(organizations, eq(organizations.id, logouts.organization_id))
    .where(and(isNull(logouts.done_at), gt(logouts.client_id, sql.placeholder('client_id'))))
    .orderBy(asc(logouts.client_id), asc(logouts.number))
    .limit(1),
)

/** A logout, and the slug of its client's organization; null when that is deleted. */
export interface WaitingLogout {
  logout: LogoutRow
  slug: string | null
}

/** Returns the oldest waiting logout of each client: one look-up in an index for each client. */
export const listHeads = async (q: Queries): Promise<WaitingLogout[]> => {
  const heads: WaitingLogout[] = []
  for (let client_id = ''; ; ) {
    const [head] = await selectHead(q, { client_id })
    if (!head) return heads
    heads.push(head)
    client_id = head.logout.client_id
  }
}

/** Postpones a logout before it is sent; true for exactly one sender. */
export const claimLogout = async (
  tx: Transaction,
  logout: Pick<LogoutRow, 'number' | 'next_attempt_at' | 'attempts'>,
  next_attempt_at: number,
): Promise<boolean> => {
  const { logouts } = tx.tables
  const rows = await tx
    .update(logouts)
    .set({ next_attempt_at, attempts: logout.attempts + 1 })
    .where(
      and(
        eq(logouts.number, logout.number),
        eq(logouts.next_attempt_at, logout.next_attempt_at),
        isNull(logouts.done_at),
      ),
    )
    .returning({ number: logouts.number })
  return rows.length > 0
}

/** Stores the outcome of an attempt. */
export const saveAttempt = async (
  tx: Transaction,
  number: number,
  outcome: Partial<Pick<LogoutRow, 'done_at' | 'failure' | 'next_attempt_at' | 'expires_at'>>,
): Promise<void> => {
  await tx.update(tx.tables.logouts).set(outcome).where(eq(tx.tables.logouts.number, number))
}
