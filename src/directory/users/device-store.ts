import { and, eq, ne, sql } from 'drizzle-orm'
import type { OrganizationId, UserId } from '#src/lib/ids.ts'
import type { SecretHash } from '#src/lib/secrets.ts'
import { keepLatest } from '#src/storage/batches.ts'
import { prepared, type Queries, type Transaction } from '#src/storage/store.ts'
import type { Tables } from '#src/storage/tables.ts'

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

/** True when a user of the organization has a stored browser with this device cookie. */
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

/**
 * Removes the known browsers of a user, except the browser whose device cookie has the hash `kept`. Returns
 * the number of removed browsers.
 */
export const removeDevices = async (
  tx: Transaction,
  user_id: UserId,
  kept: SecretHash | undefined,
): Promise<number> => {
  const { devices } = tx.tables
  const removed = await tx
    .delete(devices)
    .where(and(eq(devices.user_id, user_id), kept === undefined ? undefined : ne(devices.device_hash, kept)))
    .returning({ user_id: devices.user_id })
  return removed.length
}
