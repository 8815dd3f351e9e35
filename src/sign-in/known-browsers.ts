import type { Context, Core } from '#src/context.ts'
import { findDevice, isDeviceOf, touchDevice } from '#src/directory/users/device-store.ts'
import type { UserRow } from '#src/directory/users/store.ts'
import type { Call } from '#src/http/call.ts'
import { findCookie, setCookie } from '#src/http/cookies.ts'
import { type Charge, charge } from '#src/http/rate-limits.ts'
import { AppError } from '#src/lib/app-error.ts'
import type { ClientInfo } from '#src/lib/client-info.ts'
import { DAY, SECOND } from '#src/lib/duration.ts'
import type { OrganizationId } from '#src/lib/ids.ts'
import { hashSecret, newSecret } from '#src/lib/secrets.ts'
import { enqueueNotice } from '#src/mail/outbox.ts'
import type { Queries, Transaction } from '#src/storage/store.ts'

/** Lifetime of the device cookie: the maximum that browsers allow. */
const KEPT = 400 * DAY

/**
 * Sends a notice when a user who has signed in before signs in with a browser that is not known. The first
 * login of a user causes no notice. `user` is read before this login. Returns the Set-Cookie lines that make
 * the browser known.
 */
export const recognizeDevice = async (
  context: Context,
  tx: Transaction,
  user: Pick<UserRow, 'id' | 'organization_id' | 'last_login'>,
  call: Call,
): Promise<string[]> => {
  const name = context.cookies.device
  const known = findCookie(call.request, name)
  const value = known ?? newSecret()
  const device = { user_id: user.id, device_hash: hashSecret(value), last_seen_at: context.clock.now() }
  const isNew = await touchDevice(tx, device)
  if (isNew && user.last_login !== null) await enqueueNotice(context, tx, 'new_device', user, call)
  return known ? [] : [setCookie(context.config, name, value, KEPT / SECOND)]
}

/**
 * True when this browser is known for the user. The same statement runs for an unknown user
 * (`''`), so that the response time does not reveal whether the user exists.
 */
export const isKnownDevice = async (
  q: Queries,
  user_id: string,
  { device_hash }: Pick<ClientInfo, 'device_hash'>,
): Promise<boolean> => device_hash !== undefined && findDevice(q, { user_id, device_hash })

/** True when the browser is known for a user of the organization. */
export const isKnownIn = async (
  q: Queries,
  organization_id: OrganizationId,
  { device_hash }: Pick<ClientInfo, 'device_hash'>,
): Promise<boolean> => device_hash !== undefined && isDeviceOf(q, { device_hash, organization_id })

type Work = Pick<Charge, 'kind' | 'units'> & { organization_id: OrganizationId }

/**
 * Charges work to the client's network and to the organization. If the network or the organization has no
 * budget left, the work of a known browser is charged to the browser's own budget. Other clients thus cannot
 * lock the browser out.
 *
 * @throws AppError 429 `rate_limited` with `Retry-After`; in this case nothing is charged
 */
export const chargeBrowser = async (context: Core, client_info: ClientInfo, work: Work): Promise<void> => {
  try {
    charge(context, { ...work, ip_address: client_info.ip_address })
  } catch (refusal) {
    await chargeDevice(context, client_info, work, refusal)
  }
}

/**
 * Charges work to a browser that is known for a user of the organization. `refusal` is the error that
 * `charge` threw for the network or the organization.
 *
 * @throws `refusal` for any other browser, and when `refusal` is not a 429 `rate_limited`; AppError 429
 *   `rate_limited` when the browser has spent its own budget
 */
export const chargeDevice = async (
  context: Core,
  client_info: ClientInfo,
  work: Work,
  refusal: unknown,
): Promise<void> => {
  if (!(refusal instanceof AppError && refusal.code === 'rate_limited')) throw refusal
  if (!(await context.store.read(q => isKnownIn(q, work.organization_id, client_info)))) throw refusal
  const { ip_address, device_hash: device } = client_info
  charge(context, { ...work, ip_address, device })
}
