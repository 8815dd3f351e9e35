import { anonymousActor, record } from '#src/audit/record.ts'
import type { Context } from '#src/context.ts'
import type { Client } from '#src/directory/clients/store.ts'
import type { Call } from '#src/http/call.ts'
import { mayReport, printable } from '#src/http/refusal-log.ts'
import { CLOCK_SKEW, DAY, HOUR } from '#src/lib/duration.ts'
import { hashSecret } from '#src/lib/secrets.ts'
import { PageError } from '#src/pages/error-page.ts'
import { isDynamic } from '#src/protocol/oauth/dynamic-id.ts'
import { OAuthError } from '#src/protocol/oauth/error.ts'
import { findThrottle, upsertThrottle } from '#src/sign-in/store.ts'
import { countFailure, type Limit } from '#src/sign-in/throttle.ts'

const pages = {
  malformed: 'bad_request',
  client_id_invalid: 'bad_request',
  unknown_client: 'unknown_client',
  not_a_navigation: 'bad_request',
  redirect_uri_invalid: 'bad_redirect',
  redirect_uri_not_registered: 'bad_redirect',
  client_kept_out: 'unknown_client',
  not_redirected: 'bad_request',
  document_unusable: 'unknown_client',
} as const

/**
 * Reasons for answering an authorization request with a page instead of a redirect. The page says whether the
 * client is unknown or the redirect URI is wrong. A developer needs to know this, and a stranger learns no
 * secret, because client ids are public.
 */
type Reason = keyof typeof pages

/** A reason, and the parameters of the request that could be parsed. */
export type Refusal = [
  reason: Reason,
  given?: {
    client_id?: string
    redirect_uri?: string | undefined
    client?: Client
    /** The error that the client would get by a redirect. */
    error?: OAuthError
  },
]

/** Returns a URI without user name, query and fragment, which may be secrets. */
const withoutSecrets = (uri: string): string =>
  printable(uri.replace(/[?#].*/s, '').replace(/^([^/]*\/\/)[^/]*@/, '$1'))

/**
 * Logs the reason of a refusal, records it for a known client that is not dynamic, and returns the page.
 * After too many refused requests from one network or for one organization, the function only returns the
 * page. Otherwise strangers could fill log and disk.
 */
export const refuseRequest = async (
  context: Context,
  call: Call,
  ...[reason, { client_id = '', redirect_uri = '', client, error } = {}]: Refusal
): Promise<PageError> => {
  const given = { client_id: printable(client_id), redirect_uri: withoutSecrets(redirect_uri) }
  if (mayReport(context, call, client)) {
    const { request_id } = call
    const why = error && { error: error.code, description: error.description }
    context.log.warn({ event: 'authorization_refused', request_id, reason, ...given, ...why })
    if (client && !isDynamic(client)) await recordRefusal(context, call, client, reason, given.redirect_uri)
  }
  // `context.loginPage` exists in development mode only.
  const explanation = context.loginPage && {
    request: { reason, redirect_uri: given.redirect_uri, registered: client?.redirect_uris ?? [] },
  }
  return new PageError(pages[reason], 400, explanation)
}

/**
 * Returns the error that the client gets. The description of an `invalid_scope` names the allowed scopes. It
 * is sent in development mode only, because otherwise a stranger could list the scopes of a client by its
 * public id. The log names the client's own scopes, but not the scopes of APIs.
 */
export const publicError = (
  context: Context,
  call: Call,
  client: Client | undefined,
  error: OAuthError,
): OAuthError => {
  if (error.code !== 'invalid_scope') return error
  if (mayReport(context, call, client)) {
    const { request_id } = call
    const { client_id, scopes: allowed } = client ?? {}
    context.log.warn({ event: 'authorization_refused', request_id, reason: error.code, client_id, allowed })
  }
  return context.loginPage ? error : new OAuthError(error.code)
}

/**
 * Maximum number of events for one client in an hour. Each redirect URI is an event of its own, and
 * strangers could name any number of redirect URIs. 20 events are enough to show a developer each mistake,
 * and add at most 480 rows a day.
 */
const MAX_EVENTS = 20
const EVENTS: Limit = { kind: 'window', count: MAX_EVENTS, window: HOUR, wait: 0 }

/**
 * Records at most one event an hour for each client, reason and redirect URI. The `count` of an event
 * includes the refusals since the previous event. An event that was stored before the clock was set back
 * delays no later event.
 */
const recordRefusal = (
  context: Context,
  call: Call,
  { client_id, organization_id }: Client,
  reason: Reason,
  redirect_uri: string,
): Promise<void> =>
  context.store.write(async tx => {
    const now = context.clock.now()
    const key = `refusal:${client_id}:${hashSecret(`${reason} ${redirect_uri}`)}`
    const known = await findThrottle(tx, key)
    const failures = (known?.failures ?? 0) + 1
    const counted = { key, blocked_until: 0, expires_at: now + DAY }
    const age = now - (known?.window_started_at ?? Number.NEGATIVE_INFINITY)
    if (known && age >= -CLOCK_SKEW && age < HOUR)
      return upsertThrottle(tx, { ...known, ...counted, failures })
    const events = { key: `refusals:${client_id}`, limit: EVENTS }
    const [written = 0] = await countFailure(context, tx, [events])
    if (written > MAX_EVENTS) return
    await upsertThrottle(tx, { ...counted, failures: 0, window_started_at: now })
    await record(context, tx, {
      type: 'client.request_refused',
      actor: anonymousActor,
      target_id: client_id,
      target_type: 'client',
      organization_id,
      client_info: call,
      metadata: { reason, redirect_uri, count: failures },
    })
  })
