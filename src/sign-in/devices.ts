import type { Context } from '#src/context.ts'
import type { UserRow } from '#src/directory/users/store.ts'
import type { Call } from '#src/http/call.ts'
import { cookieNames, findCookie, setCookie } from '#src/http/cookies.ts'
import type { ClientInfo } from '#src/lib/client-info.ts'
import { DAY, SECOND } from '#src/lib/duration.ts'
import { hashSecret, newSecret } from '#src/lib/secrets.ts'
import { enqueueNotice } from '#src/mail/outbox.ts'
import type { Queries, Transaction } from '#src/storage/store.ts'
import { countDevices, findDevice, touchDevice } from './store.ts'

/** As long as browsers keep a cookie at most. */
const KEPT = 400 * DAY

/**
 * Tells a user of a login from a browser in which they had not logged in before; not of their very first. Gives the Set-Cookie
 * lines by which the browser is known from now on.
 */
export const recognizeDevice = async (
  context: Context,
  tx: Transaction,
  user: Pick<UserRow, 'id' | 'organization_id'>,
  call: Call,
): Promise<string[]> => {
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

/** Whether this user has signed in with the browser. One statement, also for an unknown user (''). */
export const isKnownDevice = async (
  q: Queries,
  user_id: string,
  { device_hash }: Pick<ClientInfo, 'device_hash'>,
): Promise<boolean> => device_hash !== undefined && findDevice(q, { user_id, device_hash })
