import type { Context } from '#src/context.ts'
import { LOGOUTS } from '#src/delivery/families.ts'
import {
  deliverDue,
  longestPause,
  pauseAfter,
  type Queue,
  type Stop,
  startDelivery,
} from '#src/delivery/queue.ts'
import { CLOCK_SKEW, MINUTE, SECOND } from '#src/lib/duration.ts'
import { logoutTokenClaims } from '#src/protocol/oidc/logout-token.ts'
import { issueToken } from '#src/tokens/issue.ts'
import {
  claimLogout,
  endLogout,
  type LogoutRow,
  listDueLogouts,
  logoutUriOf,
  postponeLogout,
  redirectLogouts,
  releaseLogouts,
  slugOf,
} from './logout-store.ts'

/**
 * Lifetime of a logout token in seconds. The standard recommends at most two minutes:
 * https://openid.net/specs/openid-connect-backchannel-1_0.html#LogoutToken
 */
const TOKEN_LIFETIME = 120
/**
 * Pauses between attempts in milliseconds. A person waits for the logout, so the first retries are quick.
 * Later retries reach an application that was down for some time.
 */
const PAUSES = { first: 5 * SECOND, factor: 2, longest: 10 * MINUTE }
/** Maximum bytes of an application's answer. The body is read only to complete the call. */
const ANSWER = 16 * 1024

interface Outcome {
  failure: string | null
  is_final: boolean
  err?: unknown
}

/**
 * Signs a logout token and posts it: https://openid.net/specs/openid-connect-backchannel-1_0.html#BCRequest
 */
const post = async (context: Context, logout: LogoutRow, uri: string): Promise<Outcome> => {
  const slug = await context.store.read(q => slugOf(q, logout))
  const { token } = await issueToken(context, {
    alg: logout.alg ?? context.config.id_token_alg,
    typ: 'logout+jwt',
    lifetime: TOKEN_LIFETIME,
    claims: issued => logoutTokenClaims(issued, logout),
  })
  try {
    const { status, ok } = await context.fetch(uri, {
      organization: { id: logout.organization_id, slug },
      method: 'POST',
      body: new URLSearchParams({ logout_token: token }),
      bytes: ANSWER,
    })
    context.store.metrics.count(LOGOUTS, ok ? 'delivered' : 'failed')
    return ok
      ? { failure: null, is_final: true }
      : { failure: `The application answered ${status}.`, is_final: status === 400 }
  } catch (error) {
    context.store.metrics.count(LOGOUTS, 'failed')
    return { failure: (error as Error).message, is_final: false, err: error }
  }
}

/**
 * Attempts one logout. Status 400 is final, because the application has refused the token. After any other
 * failure the logout is attempted again until it expires. The logout goes to the present URI of the client,
 * because the application may have moved since the session ended. If the client has no URI any more, its
 * logouts end without a call. After the client is deleted, the logout goes to the URI that was stored with
 * it.
 */
const attempt = async (context: Context, logout: LogoutRow, until: number): Promise<void> => {
  const { client_id, client_created_at: created_at, organization_id, attempts, expires_at } = logout
  const client = { client_id, created_at, organization_id }
  const uri = await context.store.read(q => logoutUriOf(q, client))
  if (uri === null) return context.store.write(tx => redirectLogouts(tx, client, context.clock.now()))
  const target = uri ?? logout.uri
  const { failure, is_final, err } = await post(context, logout, target)
  const now = context.clock.now()
  const next_attempt_at = now + pauseAfter(attempts, PAUSES)
  const isDone = is_final || next_attempt_at >= expires_at
  await context.store.write(tx =>
    isDone
      ? endLogout(tx, logout, failure, now)
      : postponeLogout(tx, { ...logout, next_attempt_at: until }, { failure, next_attempt_at }),
  )
  if (failure === null) return
  const { origin } = new URL(target)
  const details = { event: 'logout', client_id, organization_id, target: origin, attempts, failure, err }
  context.log.warn(details, isDone ? 'logout given up' : 'logout not delivered: trying again later')
}

const queue: Queue<LogoutRow> = {
  topic: 'logouts',
  // A call to an application that does not answer takes seconds. Each organization therefore gets only a few
  // of the calls at a time, so that the applications of one do not delay the others.
  at_once: 64,
  at_once_each: 4,
  lease: MINUTE + CLOCK_SKEW,
  longest: longestPause(PAUSES),
  due: listDueLogouts,
  claim: claimLogout,
  release: releaseLogouts,
  attempt,
}

/**
 * Delivers the due logouts. The logouts of one client are sent in order, one at a time. Returns the number of
 * attempts.
 */
export const deliverLogouts = (context: Context): Promise<number> => deliverDue(context, queue)

/**
 * Delivers new logouts at once, and failed logouts when they are due. Returns a function that stops the
 * delivery.
 */
export const startLogoutDelivery = (context: Context): Stop => startDelivery(context, queue)
