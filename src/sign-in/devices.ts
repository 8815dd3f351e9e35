import type { Context } from '#src/context.ts'
import type { UserRow } from '#src/directory/users/store.ts'
import type { Call } from '#src/http/call.ts'
import { cookieNames, findCookie, setCookie } from '#src/http/cookies.ts'
import { DAY, SECOND } from '#src/lib/duration.ts'
import { hashSecret, newSecret } from '#src/lib/secrets.ts'
import { enqueueNotice } from '#src/mail/outbox.ts'
import type { Transaction } from '#src/storage/store.ts'
import { countDevices, touchDevice } from './store.ts'

/** As long as browsers keep a cookie at most. */
const KEPT = 400 * DAY

/**
 * Tells a user of a login from a browser in which they had not logged in before; not of their very first. The Set-Cookie lines by
 * which the browser is known from now on. Where no mail goes out nothing is kept.
 */
export const recognizeDevice = async (
  context: Context,
  tx: Transaction,
  user: Pick<UserRow, 'id' | 'organization_id'>,
  call: Call,
): Promise<string[]> => {
  if (!context.mail) return []
  const name = cookieNames(context.config).device
  const known = findCookie(call.request, name)
  const value = known ?? newSecret()
  const device = { user_id: user.id, device_hash: hashSecret(value), last_seen_at: context.clock.now() }
  const others = await countDevices(tx, user.id)
  const is_new = await touchDevice(tx, device)
  if (is_new && others > 0) {
    const { user_agent, ip_address } = call
    await enqueueNotice(context, tx, 'new_device', user, call, { user_agent, ip_address })
  }
  return known ? [] : [setCookie(context.config, name, value, KEPT / SECOND)]
}
