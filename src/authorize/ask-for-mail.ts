import type { Context } from '#src/context.ts'
import type { Call } from '#src/http/call.ts'
import { networkOf } from '#src/http/network.ts'
import { HOUR, MINUTE } from '#src/lib/duration.ts'
import { enqueueMail, LINK_LIFETIME, type NewMail } from '#src/mail/outbox.ts'
import { chargeBrowser, isKnownIn } from '#src/sign-in/devices.ts'
import { checkThrottle, countFailure, type Limit } from '#src/sign-in/throttle.ts'

/**
 * Limits of mails that anybody asks for: per recipient and network, per recipient, and per network. The wait
 * is never longer than a link is valid, so the owner always has a working link, whatever others request.
 */
const PER_NETWORK: Limit = { kind: 'window', count: 3, window: HOUR, wait: LINK_LIFETIME }
const PER_RECIPIENT: Limit = { kind: 'window', count: 10, window: HOUR, wait: LINK_LIFETIME }
const PER_ADDRESS: Limit = { kind: 'window', count: 20, window: HOUR, wait: 10 * MINUTE }

/**
 * Puts a mail that an unauthenticated person asks for into the outbox, and charges it. Work and answer are
 * the same whether the recipient, named by `recipient`, has had too many mails.
 *
 * @returns the milliseconds for which the network has to wait; 0 when the request was taken
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
