import { and, eq, isNotNull, lte } from 'drizzle-orm'
import type { SQLiteColumn } from 'drizzle-orm/sqlite-core'
import type { Core } from '#src/context.ts'
import { forgetUnused } from '#src/directory/clients/dynamic-use.ts'
import { CLOCK_SKEW, DAY, MINUTE } from '#src/lib/duration.ts'
import { listShownBy } from '#src/sessions/login-sessions-store.ts'
import { setRecorded } from '#src/sessions/login-store.ts'
import { listEnded, removeSessions } from '#src/sessions/store.ts'
import { deleteBatch } from '#src/storage/batches.ts'
import type { Transaction } from '#src/storage/store.ts'

/**
 * Milliseconds for which an ended session is kept. After this time the last access token of the session has
 * expired, because tokens are valid for at most a day, and clocks differ by less than the other ten minutes.
 */
const SESSION_KEPT = DAY + 10 * MINUTE

/**
 * Milliseconds after `last_seen_at` for which a device is kept. The device cookie has the same lifetime
 * (sign-in/known-browsers.ts).
 */
const DEVICE_KEPT = 400 * DAY

/**
 * Milliseconds for which expired mail is kept. A server that sends mail removes and logs expired mail earlier
 * (mail/outbox.ts).
 */
const MAIL_KEPT = DAY

/**
 * Milliseconds after `expires_at` for which an ended logout is kept. The outcome of a delivery expires after
 * six days (sessions/logout-store.ts), so administrators can see the outcome for a week.
 */
const LOGOUT_KEPT = DAY

/**
 * Milliseconds after `expires_at` for which administrators still see an invitation. The audit log keeps the
 * events of the invitation.
 */
const INVITATION_KEPT = 90 * DAY

/** Removes at most `limit` expired rows and returns the number of removed rows. */
export type Removal = (tx: Transaction, limit: number, now: number, context: Core) => Promise<number>

type Expiring =
  | 'authorization_codes'
  | 'logins'
  | 'authorization_requests'
  | 'stored_posts'
  | 'upstream_requests'
  | 'used_assertions'
  | 'links'
  | 'email_codes'
  | 'remembered_browsers'
  | 'initial_access_tokens'
  | 'throttles'

/**
 * Removes rows that expired at least `kept` ms ago. The default is `CLOCK_SKEW`: for a copy whose clock is
 * behind, an assertion is still valid, and without the row the copy would accept the assertion again.
 */
const expired =
  (
    name: Expiring | 'mails' | 'invitations',
    key: (tx: Transaction) => SQLiteColumn,
    kept = CLOCK_SKEW,
  ): Removal =>
  (tx, limit, now) => {
    const table = tx.tables[name]
    return deleteBatch(tx, table, key(tx), lte(table.expires_at, now - kept), limit)
  }

/** A removal for each kind of expiring row. */
export const removals: Removal[] = [
  expired('logins', tx => tx.tables.logins.id),
  expired('authorization_codes', tx => tx.tables.authorization_codes.code_hash),
  expired('authorization_requests', tx => tx.tables.authorization_requests.request_hash),
  expired('stored_posts', tx => tx.tables.stored_posts.handle_hash),
  expired('upstream_requests', tx => tx.tables.upstream_requests.state_hash),
  expired('used_assertions', tx => tx.tables.used_assertions.assertion_hash),
  expired('links', tx => tx.tables.links.link_hash),
  expired('remembered_browsers', tx => tx.tables.remembered_browsers.id),
  expired('email_codes', tx => tx.tables.email_codes.user_id),
  expired('initial_access_tokens', tx => tx.tables.initial_access_tokens.id),
  expired('throttles', tx => tx.tables.throttles.key),
  expired('mails', tx => tx.tables.mails.number, MAIL_KEPT),
  (tx, limit, now) => {
    const { logouts } = tx.tables
    // An expired logout without `done_at` is kept. The delivery still attempts such a logout, and then makes
    // the next logout of the client due.
    const where = and(isNotNull(logouts.done_at), lte(logouts.expires_at, now - LOGOUT_KEPT))
    return deleteBatch(tx, logouts, logouts.number, where, limit)
  },
  expired('invitations', tx => tx.tables.invitations.id, INVITATION_KEPT),
  (tx, limit, now) => {
    // Expired registrations are removed at once, because strangers can request any number of registrations.
    const { invitations: t } = tx.tables
    const where = and(eq(t.is_registration, true), lte(t.expires_at, now))
    return deleteBatch(tx, t, t.id, where, limit)
  },
  (tx, limit, now) => {
    const { devices } = tx.tables
    return deleteBatch(tx, devices, devices.device_hash, lte(devices.last_seen_at, now - DEVICE_KEPT), limit)
  },
  (tx, limit, _now, context) => forgetUnused(context, tx, limit),
  async (tx, limit, now) => {
    const ids = await listEnded(tx, now - SESSION_KEPT, limit)
    if (ids.length === 0) return 0
    // The audit event of a session also counts as the event of its login, and the login may outlive the
    // session. `recorded_at` notes that the login already has an event. Otherwise the next visit to an
    // account page would add a second event for the login.
    await setRecorded(tx, await listShownBy(tx, ids), now)
    await removeSessions(tx, ids)
    return ids.length
  },
]
