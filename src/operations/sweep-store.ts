import { lte } from 'drizzle-orm'
import type { SQLiteColumn } from 'drizzle-orm/sqlite-core'
import { DAY, HOUR, MINUTE } from '#src/lib/duration.ts'
import { removeEndedSessions } from '#src/sessions/store.ts'
import { BATCH, removeSome } from '#src/storage/batches.ts'
import type { Transaction } from '#src/storage/store.ts'

/** A used code is known for so long after it ran out: presented again, it revokes what it made. */
const CODE_KEPT = HOUR
/** The last access token of a session has run out by then: a day at most, and clocks that disagree. */
const SESSION_KEPT = DAY + 10 * MINUTE

/** A browser keeps its cookie no longer (sign-in/devices.ts). */
const DEVICE_KEPT = 400 * DAY

/** The post gives up what is too late and says so; what it left here, because there is no mail server any more, goes later. */
const MAIL_KEPT = DAY

/** Each removes one batch of what ran out, and says how many rows: a full batch, and there may be more. */
export type Removal = (tx: Transaction, now: number) => Promise<number>

type Expiring =
  | 'logins'
  | 'authorization_requests'
  | 'stored_posts'
  | 'upstream_requests'
  | 'used_assertions'
  | 'links'
  | 'throttles'

const expired =
  (
    name: Expiring | 'authorization_codes' | 'mails',
    key: (tx: Transaction) => SQLiteColumn,
    kept = 0,
  ): Removal =>
  (tx, now) => {
    const table = tx.tables[name]
    return removeSome(tx, table, key(tx), lte(table.expires_at, now - kept), BATCH)
  }

export const removals: Removal[] = [
  expired('logins', tx => tx.tables.logins.id),
  expired('authorization_codes', tx => tx.tables.authorization_codes.code_hash, CODE_KEPT),
  expired('authorization_requests', tx => tx.tables.authorization_requests.request_hash),
  expired('stored_posts', tx => tx.tables.stored_posts.handle_hash),
  expired('upstream_requests', tx => tx.tables.upstream_requests.state_hash),
  expired('used_assertions', tx => tx.tables.used_assertions.assertion_hash),
  expired('links', tx => tx.tables.links.link_hash),
  expired('throttles', tx => tx.tables.throttles.key),
  expired('mails', tx => tx.tables.mails.number, MAIL_KEPT),
  (tx, now) => {
    const { devices } = tx.tables
    return removeSome(tx, devices, devices.device_hash, lte(devices.last_seen_at, now - DEVICE_KEPT), BATCH)
  },
  (tx, now) => removeEndedSessions(tx, now - SESSION_KEPT, BATCH),
]
