import type { Context } from '#src/context.ts'
import type { UserRow } from '#src/directory/users/store.ts'
import { AppError } from '#src/lib/app-error.ts'
import type { ClientInfo } from '#src/lib/client-info.ts'
import { HOUR } from '#src/lib/duration.ts'
import { mailboxOf } from '#src/lib/email.ts'
import { hashSecret } from '#src/lib/secrets.ts'
import { enqueueNotice } from '#src/mail/outbox.ts'
import { checkThrottle, countFailure, type Limit } from '#src/sign-in/throttle.ts'
import type { Transaction } from '#src/storage/store.ts'

/**
 * Limit on verification mails for one user. The user types the address, so each mail may go to a stranger. A
 * person who gets no mail usually asks for another mail once or twice.
 */
const PER_USER: Limit = { kind: 'window', count: 3, window: HOUR, wait: HOUR }
/**
 * Limit on verification mails to one address, counted over all users. An address that many users claim is
 * probably being flooded.
 */
const PER_ADDRESS: Limit = { kind: 'window', count: 6, window: HOUR, wait: HOUR }

/**
 * Queues the mail with the verification link. Returns 0 when the mail was queued. Otherwise returns the
 * milliseconds until the next mail may be sent.
 */
export const sendVerification = async (
  context: Context,
  tx: Transaction,
  user: Pick<UserRow, 'id' | 'organization_id'>,
  email: string,
  client_info: ClientInfo,
): Promise<number> => {
  const keys = [
    { key: `verify:${user.id}`, limit: PER_USER },
    { key: `verify-to:${hashSecret(mailboxOf(email))}`, limit: PER_ADDRESS },
  ]
  const wait = await checkThrottle(context, tx, keys)
  if (wait > 0) return wait
  await countFailure(context, tx, keys)
  await enqueueNotice(context, tx, 'verify_email', user, client_info, { email, to: email })
  return 0
}

/** Returns why the store refused a user's name or address. Returns undefined for any other error. */
export const refusedEmail = (error: unknown): 'taken' | 'domain' | undefined => {
  if (!(error instanceof AppError)) return undefined
  if (error.code === 'conflict') return 'taken'
  return error.details?.some(({ code }) => code === 'domain_not_allowed') ? 'domain' : undefined
}
