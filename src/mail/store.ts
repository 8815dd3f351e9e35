import { and, asc, eq, lte, notInArray, type SQL, sql } from 'drizzle-orm'
import { isInRanges, type Ranges } from '#src/delivery/store.ts'
import type { OrganizationId } from '#src/lib/ids.ts'
import type { Queries, Transaction } from '#src/storage/store.ts'
import { IS_AWAITED, type Tables } from '#src/storage/tables.ts'

export type MailRow = Tables['mails']['$inferSelect']

/** Puts a mail into the outbox. */
export const insertMail = async (tx: Transaction, mail: Omit<MailRow, 'number'>): Promise<void> => {
  await tx.insert(tx.tables.mails).values(mail)
  tx.changed('mails')
}

/**
 * Returns the due mails, without the mails of the organizations in `busy`. Mails that a person waits for come
 * first, even after a failed attempt, and then all others. Both groups are in the order of `next_attempt_at`.
 * Each group is read separately, in the order of an index. One read of both groups would sort all due mails
 * for each mail that is sent.
 */
export const listDueMails = async (
  q: Queries,
  now: number,
  busy: OrganizationId[],
  limit: number,
): Promise<MailRow[]> => {
  const { mails } = q.tables
  const due = (condition: SQL, count: number) =>
    q
      .select()
      .from(mails)
      .where(and(lte(mails.next_attempt_at, now), notInArray(mails.organization_id, busy), condition))
      .orderBy(asc(mails.next_attempt_at), asc(mails.number))
      .limit(count)
  const awaited = await due(sql.raw(IS_AWAITED), limit)
  if (awaited.length === limit) return awaited
  const found = awaited.map(({ number }) => number)
  return [...awaited, ...(await due(notInArray(mails.number, found), limit - found.length))]
}

/**
 * Claims a due mail by postponing its next attempt. Returns true for exactly one sender, so several copies of
 * the server send a mail only once.
 */
export const claimMail = async (
  tx: Transaction,
  mail: Pick<MailRow, 'number' | 'next_attempt_at'>,
  next_attempt_at: number,
  attempts: number,
): Promise<boolean> => {
  const { mails } = tx.tables
  const rows = await tx
    .update(mails)
    .set({ next_attempt_at, attempts })
    .where(and(eq(mails.number, mail.number), eq(mails.next_attempt_at, mail.next_attempt_at)))
    .returning({ number: mails.number })
  return rows.length > 0
}

/** Sets the next attempt to `now` for the mails whose next attempt is in one of the ranges. */
export const releaseMails = async (tx: Transaction, now: number, ranges: Ranges): Promise<void> => {
  const { mails } = tx.tables
  await tx.update(mails).set({ next_attempt_at: now }).where(isInRanges(mails.next_attempt_at, ranges))
}

/**
 * Removes a mail whose attempt has ended. The row may already have been deleted with its user. SQLite may
 * then have given the number to another mail, which differs in `created_at` or `attempts`.
 */
export const removeMail = async (
  tx: Transaction,
  { number, created_at, attempts }: Pick<MailRow, 'number' | 'created_at' | 'attempts'>,
): Promise<void> => {
  const { mails } = tx.tables
  const isSame = and(eq(mails.number, number), eq(mails.created_at, created_at), eq(mails.attempts, attempts))
  await tx.delete(mails).where(isSame)
}
