import { and, desc, eq, gt } from 'drizzle-orm'
import type { OrganizationId, RememberedBrowserId, UserId } from '#src/lib/ids.ts'
import type { SecretHash } from '#src/lib/secrets.ts'
import { deleteBatch, keepLatest } from '#src/storage/batches.ts'
import type { Queries, Transaction } from '#src/storage/store.ts'
import type { Tables } from '#src/storage/tables.ts'

export type RememberedBrowser = Tables['remembered_browsers']['$inferSelect']

/**
 * Maximum number of remembered browsers of a user. The latest browsers are kept. A person has a few devices
 * with a few browsers.
 */
const MAX_REMEMBERED = 20

/**
 * Lists the users for whom this browser is remembered, each with the time since which it is remembered.
 */
export const listRememberedIn = (
  q: Queries,
  browser_hash: SecretHash,
  now: number,
): Promise<Pick<RememberedBrowser, 'user_id' | 'created_at'>[]> => {
  const { remembered_browsers } = q.tables
  return q
    .select({ user_id: remembered_browsers.user_id, created_at: remembered_browsers.created_at })
    .from(remembered_browsers)
    .where(and(eq(remembered_browsers.browser_hash, browser_hash), gt(remembered_browsers.expires_at, now)))
}

/** Lists the remembered browsers of a user, the latest first. */
export const listRemembered = (q: Queries, user_id: UserId, now: number): Promise<RememberedBrowser[]> => {
  const { remembered_browsers } = q.tables
  return q
    .select()
    .from(remembered_browsers)
    .where(and(eq(remembered_browsers.user_id, user_id), gt(remembered_browsers.expires_at, now)))
    .orderBy(desc(remembered_browsers.id))
}

/** Moves the rows of a browser to its new cookie. */
export const moveRemembered = async (tx: Transaction, from: SecretHash, to: SecretHash): Promise<void> => {
  const { remembered_browsers } = tx.tables
  await tx
    .update(remembered_browsers)
    .set({ browser_hash: to })
    .where(eq(remembered_browsers.browser_hash, from))
}

/**
 * Stores a remembered browser. Replaces an earlier row of the user for the same cookie. Keeps the latest
 * `MAX_REMEMBERED` rows of the user.
 */
export const insertRemembered = async (tx: Transaction, browser: RememberedBrowser): Promise<void> => {
  const { remembered_browsers } = tx.tables
  const { user_id, browser_hash } = browser
  await tx
    .delete(remembered_browsers)
    .where(and(eq(remembered_browsers.user_id, user_id), eq(remembered_browsers.browser_hash, browser_hash)))
  await tx.insert(remembered_browsers).values(browser)
  await keepLatest(tx, remembered_browsers, {
    key: remembered_browsers.id,
    order: remembered_browsers.id,
    where: eq(remembered_browsers.user_id, user_id),
    max: MAX_REMEMBERED,
  })
}

/**
 * Removes the remembered browser with this `id`, or all remembered browsers of the user. Returns the removed
 * browsers.
 */
export const removeRemembered = async (
  tx: Transaction,
  user_id: UserId,
  id?: string,
): Promise<{ id: RememberedBrowserId }[]> => {
  const { remembered_browsers } = tx.tables
  return tx
    .delete(remembered_browsers)
    .where(
      and(
        eq(remembered_browsers.user_id, user_id),
        id === undefined ? undefined : eq(remembered_browsers.id, id as RememberedBrowserId),
      ),
    )
    .returning()
}

/**
 * Removes up to `limit` remembered browsers of an organization's users. Returns the number of removed
 * browsers.
 */
export const removeRememberedOf = (
  tx: Transaction,
  organization_id: OrganizationId,
  limit: number,
): Promise<number> => {
  const { remembered_browsers } = tx.tables
  return deleteBatch(
    tx,
    remembered_browsers,
    remembered_browsers.id,
    eq(remembered_browsers.organization_id, organization_id),
    limit,
  )
}
