import { and, eq, gt, gte, inArray, lt, sql } from 'drizzle-orm'
import type { UserId } from '#src/lib/ids.ts'
import type { SecretHash } from '#src/lib/secrets.ts'
import { prepared, type Queries, type Transaction } from '#src/storage/store.ts'
import type { Tables } from '#src/storage/tables.ts'

export type Throttle = Tables['throttles']['$inferSelect']

const byKey = prepared((q, { throttles }) =>
  q
    .select()
    .from(throttles)
    .where(eq(throttles.key, sql.placeholder('key'))),
)

export const findThrottle = async (q: Queries, key: string): Promise<Throttle | undefined> =>
  (await byKey(q, { key }))[0]

export const upsertThrottle = async (tx: Transaction, { key, ...row }: Throttle): Promise<void> => {
  const { throttles } = tx.tables
  tx.changed('throttles')
  await tx
    .insert(throttles)
    .values({ key, ...row })
    .onConflictDoUpdate({ target: throttles.key, set: row })
}

export const removeThrottle = async (tx: Transaction, key: string): Promise<void> => {
  const { throttles } = tx.tables
  tx.changed('throttles')
  await tx.delete(throttles).where(eq(throttles.key, key))
}

/** All whose key begins so. */
export const removeThrottles = async (tx: Transaction, prefix: string): Promise<void> => {
  const { throttles } = tx.tables
  await tx.delete(throttles).where(and(gte(throttles.key, prefix), lt(throttles.key, `${prefix}\uffff`)))
}

const USER_LINKS: Tables['links']['$inferSelect']['kind'][] = ['sign_in', 'reset_password']

/** Whoever still holds a link that lets this user in, holds nothing any more. */
export const removeUserLinks = async (tx: Transaction, user_id: UserId): Promise<void> => {
  const { links } = tx.tables
  await tx.delete(links).where(and(eq(links.user_id, user_id), inArray(links.kind, USER_LINKS)))
}

/** True for exactly one caller. */
export const consumeUserLink = async (
  tx: Transaction,
  link_hash: SecretHash,
  now: number,
): Promise<boolean> => {
  const { links } = tx.tables
  const rows = await tx
    .delete(links)
    .where(and(eq(links.link_hash, link_hash), inArray(links.kind, USER_LINKS), gt(links.expires_at, now)))
    .returning({ kind: links.kind })
  return rows.length > 0
}

/** A stronger hash of the same password in the place of `from`, unless the password has changed meanwhile. */
export const replacePasswordHash = async (
  tx: Transaction,
  id: UserId,
  from: string,
  to: string,
): Promise<void> => {
  const { users } = tx.tables
  await tx
    .update(users)
    .set({ password_hash: to })
    .where(and(eq(users.id, id), eq(users.password_hash, from)))
}

export const countDevices = (q: Queries, user_id: UserId): Promise<number> =>
  q.$count(q.tables.devices, eq(q.tables.devices.user_id, user_id))

/** Whether the user was never seen with it. */
export const touchDevice = async (
  tx: Transaction,
  device: Tables['devices']['$inferSelect'],
): Promise<boolean> => {
  const { devices } = tx.tables
  const { user_id, device_hash, last_seen_at } = device
  const seen = await tx
    .update(devices)
    .set({ last_seen_at })
    .where(and(eq(devices.user_id, user_id), eq(devices.device_hash, device_hash)))
    .returning({ user_id: devices.user_id })
  if (seen.length > 0) return false
  await tx.insert(devices).values(device)
  return true
}
