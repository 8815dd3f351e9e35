import type { Context } from '#src/context.ts'
import type { Call } from '#src/http/call.ts'
import { networkOf } from '#src/http/network.ts'
import { HOUR, MINUTE } from '#src/lib/duration.ts'
import { enqueueMail, LINK_LIFETIME, type NewMail } from '#src/mail/outbox.ts'
import { chargeBrowser, isKnownIn } from '#src/sign-in/devices.ts'
import { checkThrottle, countFailure, type Limit } from '#src/sign-in/throttle.ts'

/**
 * Limits of mails that unauthenticated clients request: per recipient and network (a person asks again once
 * or twice), per recipient from all networks, and per network for all recipients (an office shares one). The
 * wait is never longer than a link is valid, so the owner has a working link even if others use up the limit.
 */
const PER_NETWORK: Limit = { kind: 'window', count: 3, window: HOUR, wait: LINK_LIFETIME }
const PER_RECIPIENT: Limit = { kind: 'window', count: 10, window: HOUR, wait: LINK_LIFETIME }
const PER_ADDRESS: Limit = { kind: 'window', count: 20, window: HOUR, wait: 10 * MINUTE }

/**
 * Puts a mail requested by an unauthenticated client into the outbox, and charges it. Work and answer do not
 * depend on whether `recipient` has reached its limit.
 *
 * @returns the milliseconds for which the network has to wait; 0 when the request was accepted
 * @throws AppError 429 when the budget of network and organization is spent
 */
export const askForMail = async (
  context: Context,
  call: Call,
  mail: NewMail,
  recipient: string,
): Promise<number> => {
  const { organization_id } = mail
  const network = networkOf(call.ip_address)
  const address = { key: `resets:${network}`, limit: PER_ADDRESS }
  const mails = [
    { key: recipient, limit: PER_RECIPIENT },
    { key: `${recipient}:${network}`, limit: PER_NETWORK },
  ]
  await chargeBrowser(context, call, { organization_id, kind: 'mail' })
  return context.store.write(async tx => {
    const blocked = await checkThrottle(context, tx, [address])
    if (blocked > 0 && !(await isKnownIn(tx, organization_id, call))) return blocked
    await countFailure(context, tx, [address])
    if ((await checkThrottle(context, tx, mails)) > 0) return 0
    await countFailure(context, tx, mails)
    await enqueueMail(context, tx, mail, call)
    return 0
  })
}
