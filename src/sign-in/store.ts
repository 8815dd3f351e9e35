import { and, eq, gte, inArray, lt, or, sql } from 'drizzle-orm'
import type { OrganizationId, UserId } from '#src/lib/ids.ts'
import type { SecretHash } from '#src/lib/secrets.ts'
import { keepLatest } from '#src/storage/batches.ts'
import { prepared, type Queries, type Transaction } from '#src/storage/store.ts'
import type { Tables } from '#src/storage/tables.ts'

/**
 * A count of failures. It is stored in the database, so that an attacker gets no new attempts after a restart
 * or from another copy of the server.
 */
export type Throttle = Tables['throttles']['$inferSelect']

const byKey = prepared((q, { throttles }) =>
  q
    .select()
    .from(throttles)
    .where(eq(throttles.key, sql.placeholder('key'))),
)

/**
 * Returns the stored count of failures of a key, even if it has expired. Returns undefined when no count is
 * stored.
 */
export const findThrottle = async (q: Queries, key: string): Promise<Throttle | undefined> =>
  (await byKey(q, { key }))[0]

/** Stores the state of a throttle key. */
export const upsertThrottle = async (tx: Transaction, { key, ...row }: Throttle): Promise<void> => {
  const { throttles } = tx.tables
  tx.changed('throttles')
  await tx
    .insert(throttles)
    .values({ key, ...row })
    .onConflictDoUpdate({ target: throttles.key, set: row })
}

/** Deletes the count of a key. This ends the wait of the key. */
export const removeThrottle = async (tx: Transaction, key: string): Promise<void> => {
  const { throttles } = tx.tables
  tx.changed('throttles')
  await tx.delete(throttles).where(eq(throttles.key, key))
}

/** The throttles that have one of the keys, or a key that begins with one of the prefixes. */
export interface ThrottleSet {
  keys: string[]
  prefixes: string[]
}

/** Deletes all throttles of a set. Returns their number. */
export const removeThrottles = async (tx: Transaction, { keys, prefixes }: ThrottleSet): Promise<number> => {
  const { key } = tx.tables.throttles
  tx.changed('throttles')
  const ranges = prefixes.map(prefix => and(gte(key, prefix), lt(key, `${prefix}\uffff`)))
  const removed = await tx
    .delete(tx.tables.throttles)
    .where(or(inArray(key, keys), ...ranges))
    .returning({ key })
  return removed.length
}

/** Counts the stored browsers of a user. */
export const countDevices = (q: Queries, user_id: UserId): Promise<number> =>
  q.$count(q.tables.devices, eq(q.tables.devices.user_id, user_id))

const deviceOf = prepared((q, { devices }) =>
  q
    .select({ user_id: devices.user_id })
    .from(devices)
    .where(
      and(
        eq(devices.user_id, sql.placeholder('user_id')),
        eq(devices.device_hash, sql.placeholder('device_hash')),
      ),
    ),
)

/** True when the user has a stored browser with this device cookie. */
export const findDevice = async (
  q: Queries,
  device: { user_id: string; device_hash: SecretHash },
): Promise<boolean> => (await deviceOf(q, device)).length > 0

const deviceOfOrganization = prepared((q, { devices, users }) =>
  q
    .select({ user_id: devices.user_id })
    .from(devices)
    .innerJoin(users, eq(users.id, devices.user_id))
    .where(
      and(
        eq(devices.device_hash, sql.placeholder('device_hash')),
        eq(users.organization_id, sql.placeholder('organization_id')),
      ),
    )
    .limit(1),
)

/** True when a user of the organization has signed in with the browser. */
export const isDeviceOf = async (
  q: Queries,
  key: { device_hash: SecretHash; organization_id: OrganizationId },
): Promise<boolean> => (await deviceOfOrganization(q, key)).length > 0

/**
 * Maximum number of stored browsers of a user. The latest browsers are kept. A program that keeps no cookies
 * adds a browser at each login.
 */
const MAX_DEVICES = 50

/** Records a login of the user in the browser. Returns true when the browser is new for the user. */
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
  await keepLatest(tx, devices, {
    key: devices.device_hash,
    order: devices.last_seen_at,
    where: eq(devices.user_id, user_id),
    max: MAX_DEVICES,
  })
  return true
}
