import { randomUUID } from 'node:crypto'
import { and, asc, eq, inArray, isNotNull, isNull, lte, notInArray, or, type SQL, sql } from 'drizzle-orm'
import { NEVER } from '#src/delivery/queue.ts'
import { isInRanges, type Ranges } from '#src/delivery/store.ts'
import { DAY } from '#src/lib/duration.ts'
import type { OrganizationId } from '#src/lib/ids.ts'
import { prepared, type Queries, type Transaction } from '#src/storage/store.ts'
import type { LogoutTarget, Tables } from '#src/storage/tables.ts'
import type { Session } from './store.ts'

export type LogoutRow = Tables['logouts']['$inferSelect']

/**
 * Milliseconds after which an undelivered logout is given up. The time lets an application be down for a
 * weekend.
 */
const DELIVER_WITHIN = 2 * DAY
/**
 * Milliseconds after which the outcome of a logout expires. The sweep removes the row a day later, so
 * administrators see the outcome for a week.
 */
const KEPT = 6 * DAY
/**
 * Maximum number of rows in one INSERT. PostgreSQL and SQLite limit the number of parameters of a statement.
 */
const ROWS = 500

const targetsOf = async (
  tx: Transaction,
  client_ids: string[],
  on_expiry: boolean,
): Promise<Map<string, LogoutTarget>> => {
  const { clients, organizations, purges } = tx.tables
  const found = await tx
    .select({
      client_id: clients.client_id,
      client_created_at: clients.created_at,
      organization_id: clients.organization_id,
      slug: organizations.slug,
      uri: clients.backchannel_logout_uri,
      alg: clients.id_token_signed_response_alg,
    })
    .from(clients)
    .innerJoin(organizations, eq(organizations.id, clients.organization_id))
    .where(
      and(
        inArray(clients.client_id, client_ids),
        isNotNull(clients.backchannel_logout_uri),
        on_expiry ? eq(clients.backchannel_logout_on_expiry, true) : undefined,
      ),
    )
  const targets = new Map<string, LogoutTarget>(
    found.flatMap(({ client_id, uri, ...rest }) => (uri === null ? [] : [[client_id, { ...rest, uri }]])),
  )
  if (on_expiry || targets.size === client_ids.length) return targets
  const gone = await tx
    .select({ id: purges.id, logout: purges.logout })
    .from(purges)
    .where(and(inArray(purges.id, client_ids), isNotNull(purges.logout)))
  for (const { id, logout } of gone) if (logout) targets.set(id, logout)
  return targets
}

const { placeholder } = sql

const selectHead = prepared((q, { logouts }) =>
  q
    .select({ number: logouts.number })
    .from(logouts)
    .where(
      and(
        isNull(logouts.done_at),
        eq(logouts.client_id, placeholder('client_id')),
        eq(logouts.client_created_at, placeholder('client_created_at')),
      ),
    )
    .orderBy(asc(logouts.number))
    .limit(1),
)

/**
 * Returns the `number` of the oldest undelivered logout of a client. Only this logout is sent, so that an
 * application that is down gets one call at a time.
 */
const headOf = async (
  q: Queries,
  client_id: string,
  client_created_at: number,
): Promise<number | undefined> => (await selectHead(q, { client_id, client_created_at }))[0]?.number

/** The fields of a client that its logouts contain. */
interface LoggedOut {
  client_id: string
  organization_id: OrganizationId
  created_at: number
}

/** Returns the condition that a logout is of this client and not of an earlier client with the same id. */
export const isOfClient = (
  { tables: { logouts } }: Queries,
  { client_id, organization_id, created_at }: LoggedOut,
): SQL | undefined =>
  and(
    eq(logouts.client_id, client_id),
    eq(logouts.client_created_at, created_at),
    eq(logouts.organization_id, organization_id),
  )

/**
 * Puts a logout into the outbox for each ended session whose client has a logout URI. Runs in the write that
 * ends the sessions. An expired session is reported only to a client with `backchannel_logout_on_expiry`,
 * because nobody has signed out.
 */
export const enqueueLogouts = async (
  tx: Transaction,
  sessions: Session[],
  now: number,
  on_expiry = false,
): Promise<void> => {
  if (sessions.length === 0) return
  const targets = await targetsOf(tx, [...new Set(sessions.map(({ client_id }) => client_id))], on_expiry)
  const waiting = new Set<string>()
  for (const [client_id, { client_created_at = 0 }] of targets)
    if (await headOf(tx, client_id, client_created_at)) waiting.add(client_id)
  const rows = sessions.flatMap(({ id: session_id, client_id, user_id }) => {
    const target = targets.get(client_id)
    if (!target) return []
    const next_attempt_at = waiting.has(client_id) ? NEVER : now
    waiting.add(client_id)
    const times = { created_at: now, next_attempt_at, expires_at: now + DELIVER_WITHIN }
    return [{ jti: randomUUID(), client_id, user_id, session_id, ...target, ...times }]
  })
  for (let start = 0; start < rows.length; start += ROWS)
    await tx.insert(tx.tables.logouts).values(rows.slice(start, start + ROWS))
  if (rows.length > 0) tx.changed('logouts')
}

/** Returns the due logouts, the longest due first. Logouts of the `busy` organizations are omitted. */
export const listDueLogouts = (
  q: Queries,
  now: number,
  busy: OrganizationId[],
  limit: number,
): Promise<LogoutRow[]> => {
  const { logouts } = q.tables
  return q
    .select()
    .from(logouts)
    .where(and(lte(logouts.next_attempt_at, now), notInArray(logouts.organization_id, busy)))
    .orderBy(asc(logouts.next_attempt_at), asc(logouts.number))
    .limit(limit)
}

/**
 * Returns the slug of the organization whose allowed hosts a logout may reach. A deleted organization keeps
 * its slug until another organization takes the slug. From then on the result is the empty text, which no
 * setting names.
 */
export const slugOf = async (
  q: Queries,
  { organization_id, slug }: Pick<LogoutRow, 'organization_id' | 'slug'>,
): Promise<string> => {
  const { organizations } = q.tables
  const found = await q
    .select({ id: organizations.id, slug: organizations.slug })
    .from(organizations)
    .where(or(eq(organizations.id, organization_id), eq(organizations.slug, slug)))
  const own = found.find(({ id }) => id === organization_id)
  return own ? own.slug : found.length > 0 ? '' : slug
}

/**
 * Claims a due logout for one sender: postpones the next attempt of the logout. Returns false when another
 * sender has claimed it first.
 */
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

/** Sets the next attempt to `now` for each logout whose next attempt is in one of the ranges. */
export const releaseLogouts = async (tx: Transaction, now: number, ranges: Ranges): Promise<void> => {
  const { logouts } = tx.tables
  await tx.update(logouts).set({ next_attempt_at: now }).where(isInRanges(logouts.next_attempt_at, ranges))
}

/**
 * Stores a failed attempt and the time of the next attempt. Changes nothing when another sender has claimed
 * the logout in the meantime.
 */
export const postponeLogout = async (
  tx: Transaction,
  { number, next_attempt_at }: Pick<LogoutRow, 'number' | 'next_attempt_at'>,
  change: Partial<Pick<LogoutRow, 'failure' | 'next_attempt_at'>>,
): Promise<void> => {
  const { logouts } = tx.tables
  await tx
    .update(logouts)
    .set(change)
    .where(and(eq(logouts.number, number), eq(logouts.next_attempt_at, next_attempt_at)))
}

/** Returns the fields of a logout that ends at `done_at` (ms). `failure` is null for a delivered logout. */
const endedAs = (failure: string | null, done_at: number) => ({
  failure,
  done_at,
  next_attempt_at: NEVER,
  expires_at: done_at + KEPT,
})

/** Stores the final outcome of a logout and makes the client's next logout due. */
export const endLogout = async (
  tx: Transaction,
  { number, client_id, client_created_at }: LogoutRow,
  failure: string | null,
  now: number,
): Promise<void> => {
  const { logouts } = tx.tables
  const ended = await tx
    .update(logouts)
    .set(endedAs(failure, now))
    .where(and(eq(logouts.number, number), isNull(logouts.done_at)))
    .returning({ number: logouts.number })
  const next = ended.length > 0 && (await headOf(tx, client_id, client_created_at))
  if (next) await postponeLogout(tx, { number: next, next_attempt_at: NEVER }, { next_attempt_at: now })
}

/**
 * Returns the present logout URI of a client: null when the client has none, and undefined when the client is
 * deleted.
 */
export const logoutUriOf = async (q: Queries, client: LoggedOut): Promise<string | null | undefined> => {
  const { clients } = q.tables
  const found = await q
    .select({ uri: clients.backchannel_logout_uri })
    .from(clients)
    .where(
      and(
        eq(clients.client_id, client.client_id),
        eq(clients.organization_id, client.organization_id),
        eq(clients.created_at, client.created_at),
      ),
    )
  return found[0]?.uri
}

/** Maximum number of logouts that one write ends. All other writes wait for it. */
const ENDED = 250

/**
 * Makes the first undelivered logout of a client due, because the client's logout URI changed. If the client
 * has no URI any more, first ends up to `ENDED` of its logouts. The attempt of the logout that is then due
 * ends further ones.
 */
export const redirectLogouts = async (tx: Transaction, client: LoggedOut, now: number): Promise<void> => {
  const { logouts } = tx.tables
  if ((await logoutUriOf(tx, client)) === null) {
    const waiting = tx
      .select({ number: logouts.number })
      .from(logouts)
      .where(and(isOfClient(tx, client), isNull(logouts.done_at)))
      .orderBy(asc(logouts.number))
      .limit(ENDED)
    const failure = 'The client has no logout URI any more.'
    await tx.update(logouts).set(endedAs(failure, now)).where(inArray(logouts.number, waiting))
  }
  const head = await headOf(tx, client.client_id, client.created_at)
  if (head) await tx.update(logouts).set({ next_attempt_at: now }).where(eq(logouts.number, head))
  tx.changed('logouts')
}
