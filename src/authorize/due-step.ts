import type { Context } from '#src/context.ts'
import { isDynamic } from '#src/protocol/oauth/dynamic-id.ts'
import { isFresh, type NextStep, nextStep } from '#src/protocol/oauth/next-step.ts'
import { isLoopback, usesPrivateScheme } from '#src/protocol/oauth/redirect-uri.ts'
import type { BrowserLogin } from './eligible-logins.ts'
import { chosenOf, type Flow, isProven } from './flow.ts'

export type Next = NextStep<BrowserLogin>

/** Returns the next step of the flow for a browser with these logins. */
export const decideAmong = (
  context: Context,
  flow: Flow,
  logins: readonly BrowserLogin[],
  chosen_login_id = chosenOf(flow),
): Next => {
  const { request, client, pending, approved } = flow
  const chosen = logins.find(({ id }) => id === chosen_login_id)
  const now = context.clock.now()
  return nextStep({
    prompts: request.prompts,
    choose: request.choose ?? false,
    max_age: request.max_age,
    now,
    // A user who wants to sign in with another account is not offered the existing logins.
    logins: (pending?.selected || request.another) && !chosen_login_id ? [] : logins,
    chosen_login_id,
    is_authenticated: isProven(flow) && chosen !== undefined && isProvenSince(chosen, pending, now),
    hinted_user_id: request.hinted_user_id,
    consent_required: client?.consent_required ?? false,
    // Another program on the device can receive the answer at a private-use scheme or a loopback address.
    // That program can pose as the client (RFC 8252 section 8.6).
    always_ask:
      client !== undefined &&
      ((client.type === 'public' && usesPrivateScheme(request.redirect_uri)) ||
        (isDynamic(client) && isLoopback(request.redirect_uri))),
    consent_given_by: approved ? chosen?.user_id : undefined,
  })
}

/**
 * True when the login counts as proven in this flow: its authentication is recent, or newer than the stored
 * request. A login also counts if the user has no factor, has to add one, and need not change the password.
 * Otherwise the users of a provider with single sign-on could never add the factor, because such a provider
 * may report an old authentication or no time at all.
 */
const isProvenSince = (login: BrowserLogin, pending: Flow['pending'], now: number): boolean => {
  const { auth_time, factors, enrol_due, must_change_password } = login
  const addsOnlyFactor = enrol_due && factors.length === 0 && !must_change_password
  return addsOnlyFactor || isFresh(login, now) || (pending !== undefined && auth_time >= pending.created_at)
}
