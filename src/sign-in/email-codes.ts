import { randomInt } from 'node:crypto'
import type { Context, Core } from '#src/context.ts'
import { permissionsOf } from '#src/directory/access.ts'
import { effectiveRoles } from '#src/directory/effective-roles-store.ts'
import { settingsOf } from '#src/directory/organizations/settings.ts'
import { readOrganization } from '#src/directory/organizations/store.ts'
import { consumeEmailCode, hasNewerCode, replaceEmailCode } from '#src/directory/users/email-code-store.ts'
import type { UserRow } from '#src/directory/users/store.ts'
import { HOUR, MINUTE } from '#src/lib/duration.ts'
import { mailboxOf } from '#src/lib/email.ts'
import { isAdministrative } from '#src/lib/permission.ts'
import { hashSecret, type SecretHash } from '#src/lib/secrets.ts'
import { typedCode } from '#src/lib/text.ts'
import type { Queries, Transaction } from '#src/storage/store.ts'
import { checkThrottle, countFailure, type Limit } from './throttle.ts'

/**
 * Number of digits of a code. Six digits are common and quickly typed. A code allows only five attempts, so a
 * guess is unlikely to succeed.
 */
const DIGITS = 6
/**
 * Milliseconds for which a code is valid. NIST SP 800-63B allows at most ten minutes for an out-of-band code.
 */
export const CODE_LIFETIME = 10 * MINUTE

/**
 * Limit of codes for one mailbox, counted over all organizations. If more codes are requested, somebody is
 * probably flooding the mailbox. Codes that a known browser of the user requests are counted separately for
 * each organization, so that strangers cannot use up this count.
 */
const PER_MAILBOX: Limit = { kind: 'window', count: 10, window: HOUR, wait: 30 * MINUTE }

/**
 * Hashes a code with a key. If the hash had no key, somebody with a copy of the database could find the six
 * digits by trial.
 */
const hashOf = ({ master }: Core, request_hash: SecretHash, user_id: string, code: string): string =>
  master.hmac('email-codes').update(`${request_hash}\0${user_id}\0${code}`).digest('base64url')

/**
 * True when the organization offers codes by mail to this user, who must be enabled and have a verified
 * address. The user's own setting is checked elsewhere (`mayUseCode`).
 */
export const isOfferedCode = async (q: Queries, user: UserRow): Promise<boolean> => {
  const organization = await readOrganization(q, user.organization_id)
  const policy = organization ? settingsOf(organization).email_code : 'off'
  if (policy === 'off' || !user.enabled || !user.email_verified) return false
  if (policy === 'all') return true
  // The policy `users` offers no codes to administrators, so that access to a mailbox does not open the
  // account of an administrator.
  return !isAdministrative(permissionsOf(await effectiveRoles(q, user.id)))
}

const mayUseCode = async (q: Queries, user: UserRow): Promise<boolean> =>
  user.email_code && (await isOfferedCode(q, user))

/**
 * Creates the code of a user for a request. An earlier code becomes invalid. Returns undefined when the user
 * is not allowed to use codes, or when the mailbox has got too many codes. `is_known` is true when the
 * request comes from a known browser of the user. `requested_at` (ms) is the time at which the user asked for
 * the code. A repeated attempt to send the mail (`is_retry`) is not counted. If the user has a code that was
 * requested later, such an attempt replaces nothing and returns undefined.
 */
export const createEmailCode = async (
  context: Context,
  tx: Transaction,
  user: UserRow,
  {
    request_hash,
    is_known,
    requested_at,
    is_retry,
  }: { request_hash: SecretHash; is_known: boolean; requested_at: number; is_retry: boolean },
): Promise<string | undefined> => {
  const apart = is_known ? `:${user.organization_id}` : ''
  const mailbox = { key: `code-to:${hashSecret(mailboxOf(user.email))}${apart}`, limit: PER_MAILBOX }
  const limits = is_retry ? [] : [mailbox]
  if (is_retry && (await hasNewerCode(tx, user.id, requested_at))) return undefined
  if (!(await mayUseCode(tx, user)) || (await checkThrottle(context, tx, limits)) > 0) return undefined
  await countFailure(context, tx, limits)
  const code = String(randomInt(10 ** DIGITS)).padStart(DIGITS, '0')
  await replaceEmailCode(tx, {
    user_id: user.id,
    code_hash: hashOf(context, request_hash, user.id, code),
    request_hash,
    requested_at,
    expires_at: context.clock.now() + CODE_LIFETIME,
  })
  return code
}

/**
 * Uses up a typed code and returns true. Returns false for a wrong code and counts it. After too many wrong
 * codes, or after the expiry, returns false for every code. Also returns false when the user is unknown or is
 * no longer allowed to use codes.
 */
export const redeemEmailCode = async (
  context: Core,
  tx: Transaction,
  user: UserRow | undefined,
  request_hash: SecretHash,
  typed: string,
): Promise<boolean> => {
  const user_id = user?.id ?? 'usr_'
  const code_hash = hashOf(context, request_hash, user_id, typedCode(typed))
  const isRight = await consumeEmailCode(tx, { user_id, request_hash, code_hash, now: context.clock.now() })
  return isRight && user !== undefined && (await mayUseCode(tx, user))
}
