import type { StoredFlow } from '#src/authorize/flow.ts'
import type { Context } from '#src/context.ts'
import type { IdentityProvider } from '#src/directory/identity-providers/types.ts'
import type { Call } from '#src/http/call.ts'
import { networkOf } from '#src/http/network.ts'
import { retryLater } from '#src/lib/app-error.ts'
import { MINUTE } from '#src/lib/duration.ts'
import type { UserId } from '#src/lib/ids.ts'
import { PageError } from '#src/pages/error-page.ts'
import { sameOrganization } from '#src/pages/way-back.ts'
import { failLogin } from '#src/sign-in/failed-login.ts'
import { chargeBrowser, chargeDevice } from '#src/sign-in/known-browsers.ts'
import { checkThrottle, type ThrottleKey } from '#src/sign-in/throttle.ts'

interface CallbackErrorOptions extends ErrorOptions {
  user_id?: UserId | undefined
  /** The e-mail address that the provider asserted. */
  email?: string | undefined
}

/**
 * The reason why a callback is refused. The audit log records the reason. The page never shows the reason,
 * because it could reveal which users exist and how the provider is set up.
 */
export class CallbackError extends Error {
  override readonly name = 'CallbackError'
  readonly reason: string
  readonly user_id: UserId | undefined
  readonly email: string

  constructor(reason: string, { user_id, email, ...options }: CallbackErrorOptions = {}) {
    super(reason, options)
    this.reason = reason
    this.user_id = user_id
    this.email = email ?? ''
  }
}

/**
 * Returns the URL at which a person can start again. This is the account page for a linking, otherwise the
 * login.
 */
export const retryUrlOf = ({ request, handle }: StoredFlow, linking: UserId | undefined): string =>
  linking ? sameOrganization(request.back ?? '', '/account') : `/oauth/login?request=${handle}`

/** Returns an error and its causes, at most five errors, the outermost first. */
export const causesOf = (error: unknown): Error[] => {
  const chain: Error[] = []
  for (let link = error; link instanceof Error && chain.length < 5; link = link.cause) chain.push(link)
  return chain
}

/**
 * Returns the message and the provider's error code. The other parts of the answer are left out, because they
 * may contain tokens.
 */
const describe = (error: Error): string => {
  const code = 'error' in error ? String(error.error) : ''
  return `${error.message.slice(0, 200)}${/^[\w.-]{1,64}$/.test(code) ? ` (${code})` : ''}`
}

/**
 * Returns the throttle key that counts the refused callbacks of a network. After 30 refusals within a minute
 * the network waits for a minute, because each refusal is an event in the log. People who make mistakes stay
 * far below this number. Wrong passwords have another key, so refused callbacks do not block passwords, and
 * wrong passwords do not block callbacks.
 */
const callbacksFrom = (ip_address: string): ThrottleKey => ({
  key: `callbacks:${networkOf(ip_address)}`,
  limit: { kind: 'window', count: 30, window: MINUTE, wait: MINUTE },
})

/**
 * Charges a callback to its network, before the callback is verified. A known browser is charged instead when
 * the network or the organization has no budget left, or when the network has had too many refused callbacks.
 * Callers do not charge a callback that answers a pending upstream request. The start of the login was
 * already charged, and the upstream request accepts only one callback.
 *
 * @throws AppError 429 `rate_limited`, including after too many refused callbacks from the same network
 */
export const checkCallbackLimit = async (
  context: Context,
  call: Call,
  { organization_id, type }: IdentityProvider,
): Promise<void> => {
  const work = { organization_id, kind: type === 'saml' ? 'xml' : 'outbound' } as const
  const wait = await context.store.read(q => checkThrottle(context, q, [callbacksFrom(call.ip_address)]))
  if (wait === 0) return chargeBrowser(context, call, work)
  const refusal = retryLater('rate_limited', 'Too many refused sign-ins from this address.', wait)
  await chargeDevice(context, call, work, refusal)
}

/**
 * Records the reason and returns the error page, which is the same for every reason.
 *
 * @throws AppError 429 `rate_limited`; in this case only the server's log contains the reason
 */
export const refuseCallback = async (
  context: Context,
  call: Call,
  provider: IdentityProvider,
  error: CallbackError,
  retry_url?: string,
): Promise<PageError> => {
  const { reason, user_id, email } = error
  const { request_id } = call
  const causes = causesOf(error.cause).map(describe)
  context.log.warn({ event: 'callback_refused', request_id, provider: provider.alias, reason, causes })
  const { organization_id } = provider
  await chargeBrowser(context, call, { organization_id, kind: 'commit' })
  await context.store.write(async tx => {
    await failLogin(context, tx, [callbacksFrom(call.ip_address)], {
      organization_id,
      user_id,
      username_attempted: email,
      failure_reason: reason,
      client_info: call,
      more: { identity_provider: provider.id },
    })
  })
  return new PageError('provider', 400, { cause: error, ...(retry_url && { retry_url }) })
}
