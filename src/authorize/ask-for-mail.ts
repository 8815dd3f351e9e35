import type { Context } from '#src/context.ts'
import { findUserForLogin } from '#src/directory/users/store.ts'
import type { Call } from '#src/http/call.ts'
import { networkOf } from '#src/http/network.ts'
import { charge } from '#src/http/rate-limits.ts'
import type { ClientInfo } from '#src/lib/client-info.ts'
import { HOUR, MINUTE } from '#src/lib/duration.ts'
import type { OrganizationId, UserId } from '#src/lib/ids.ts'
import { enqueueMail, LINK_LIFETIME, type NewMail } from '#src/mail/outbox.ts'
import { chargeBrowser, isKnownDevice } from '#src/sign-in/known-browsers.ts'
import { checkThrottle, countFailure, type Limit } from '#src/sign-in/throttle.ts'

/**
 * Limits of the mails that people request without a login. `PER_NETWORK` counts per recipient and network,
 * and allows for a person who asks again once or twice. `PER_RECIPIENT` counts per recipient over all
 * networks. `PER_ADDRESS` counts per network over all recipients. This limit is the largest, because the
 * people of an office share a network. The wait for a recipient is the lifetime of a reset link, so a
 * recipient of reset links always has a working link, even if others use up the limit. A code expires
 * earlier. For codes, the requests of known browsers are therefore counted under another `recipient`.
 */
const PER_NETWORK: Limit = { kind: 'window', count: 3, window: HOUR, wait: LINK_LIFETIME }
const PER_RECIPIENT: Limit = { kind: 'window', count: 10, window: HOUR, wait: LINK_LIFETIME }
const PER_ADDRESS: Limit = { kind: 'window', count: 20, window: HOUR, wait: 10 * MINUTE }

/**
 * Returns the user of this name when the request comes from one of the user's known browsers. The work is the
 * same for every name. A known browser is exempt from `PER_ADDRESS` and from the budget of its network, but
 * only for mails to its own user. Otherwise a person with an account could make many browsers known, and
 * flood other people with mail from each browser.
 */
export const knownOwner = (
  { store }: Context,
  organization_id: OrganizationId,
  identifier: string,
  client_info: ClientInfo,
): Promise<UserId | undefined> =>
  store.read(async q => {
    const user = await findUserForLogin(q, organization_id, identifier)
    return (await isKnownDevice(q, user?.id ?? '', client_info)) ? user?.id : undefined
  })

/**
 * Puts a mail that someone requests without a login into the outbox, and charges for it. The answer does not
 * reveal whether `recipient` has reached its limit, so that a stranger learns nothing about requests of
 * others.
 *
 * @param recipient key under which the mails of the recipient are counted
 * @param owner the recipient, if one of the recipient's known browsers asks; `PER_ADDRESS` then counts the
 *   request, but does not refuse it
 * @returns the milliseconds for which the network has to wait; 0 when the request was accepted
 * @throws AppError 429 when the budget of the network, the organization or the known browser is spent
 */
export const askForMail = async (
  context: Context,
  call: Call,
  mail: NewMail,
  recipient: string,
  owner?: UserId,
): Promise<number> => {
  const { organization_id } = mail
  const network = networkOf(call.ip_address)
  const address = { key: `resets:${network}`, limit: PER_ADDRESS }
  const mails = [
    { key: recipient, limit: PER_RECIPIENT },
    { key: `${recipient}:${network}`, limit: PER_NETWORK },
  ]
  const work = { organization_id, kind: 'mail' } as const
  if (owner) await chargeBrowser(context, call, work)
  else charge(context, { ...work, ip_address: call.ip_address })
  return context.store.write(async tx => {
    const blocked = await checkThrottle(context, tx, [address])
    if (blocked > 0 && !owner) return blocked
    await countFailure(context, tx, [address])
    if ((await checkThrottle(context, tx, mails)) > 0) return 0
    await countFailure(context, tx, mails)
    await enqueueMail(context, tx, mail, call)
    return 0
  })
}
