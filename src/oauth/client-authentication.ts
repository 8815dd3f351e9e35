import type { Context } from '#src/context.ts'
import { type Client, findClient } from '#src/directory/clients/store.ts'
import type { Call } from '#src/http/call.ts'
import { charge } from '#src/http/rate-limits.ts'
import { mayReport, printable } from '#src/http/refusal-log.ts'
import { retryLater } from '#src/lib/app-error.ts'
import { hashSecret, sameHash } from '#src/lib/secrets.ts'
import { checkMethod, type PresentedClient } from '#src/protocol/oauth/client-auth.ts'
import { OAuthError } from '#src/protocol/oauth/error.ts'
import { blockedUntil, countFailure, secretsFrom, waitUntil } from '#src/sign-in/throttle.ts'
import { type AssertedFor, type AssertionFault, checkAssertion } from './client-assertion.ts'

/**
 * Refusal of an unknown client, or of a secret, assertion, code or token that is not the client's own. The
 * refusal counts as a wrong guess.
 */
export class CredentialError extends OAuthError {}

export const SESSION_ENDED = 'The session has ended.'

const isSecretOf = ({ secret_hash }: Client, { client_secret }: PresentedClient): boolean =>
  secret_hash !== null && client_secret !== undefined && sameHash(hashSecret(client_secret), secret_hash)

interface ClientRequest {
  /** The request that an assertion is for; undefined at endpoints that accept no assertion. */
  readonly asked?: AssertedFor | undefined
  /**
   * `either` accepts a secret in the header or the body. The registered method does not matter, because many
   * libraries always use HTTP Basic for introspection and revocation.
   */
  readonly place?: 'registered' | 'either'
}

/**
 * Runs `attempt` for the authenticated client. A client that presents its correct secret or assertion is
 * never refused because of failures of other clients in its network. The expired codes and tokens of such a
 * client do not count as guesses.
 *
 * @throws OAuthError `invalid_client`, or `invalid_grant` when an assertion comes with no usable grant
 * @throws AppError 429 for an unauthenticated client ({@link throttled}); 429 or 503 when too many keys of
 * clients are being fetched; also every error of `attempt`
 */
export const asClient = async <T>(
  context: Context,
  call: Call,
  presented: PresentedClient,
  attempt: (client: Client) => Promise<T>,
  { asked, place = 'registered' }: ClientRequest = {},
): Promise<T> => {
  const stored = await findClient(context, presented.client_id)
  const { client, fault } = await identify(context, call, stored, presented, asked)
  const authenticated = (): Client => {
    try {
      return requireAuthenticated(client, presented, place, fault)
    } catch (error) {
      report(context, call, client, presented, fault)
      throw error
    }
  }
  return fault === undefined
    ? attempt(authenticated())
    : throttled(context, call, client, () => attempt(authenticated()))
}

/**
 * Returns the client if it is authenticated.
 *
 * @throws OAuthError when the client is not authenticated, or may not use the method that it used
 */
const requireAuthenticated = (
  client: Client | undefined,
  presented: PresentedClient,
  place: ClientRequest['place'],
  fault: Fault | undefined,
): Client => {
  if (!client) throw new CredentialError('invalid_client')
  if (place === 'registered' || client.type === 'public') checkMethod(client, presented)
  if (fault === 'unknown_grant') throw new CredentialError('invalid_grant')
  if (fault === 'ended_session') throw new OAuthError('invalid_grant', SESSION_ENDED)
  if (fault !== undefined && fault !== 'public') throw new CredentialError('invalid_client')
  return client
}

type Fault = AssertionFault | 'unknown_client' | 'no_secret' | 'wrong_secret' | 'public'

/**
 * Returns the client and `fault`. For an authenticated client, `fault` is undefined. For a client that need
 * not authenticate, `fault` is `public`. For any other client, `fault` is the reason for the refusal. While
 * the keys of a client cannot be read, the client counts as `public` if it may also use the method `none`.
 * The assertion of the client is then ignored.
 */
const identify = async (
  context: Context,
  call: Call,
  client: Client | undefined,
  presented: PresentedClient,
  asked: AssertedFor | undefined,
): Promise<{ client: Client | undefined; fault: Fault | undefined }> => {
  if (!client || presented.method !== 'private_key_jwt')
    return { client, fault: findSecretFault(client, presented) }
  // A client from a document may have keys even if none are stored, because its owner may have added keys
  // since the document was read. `checkAssertion` reads the document again.
  if (!asked || !(client.keys || client.from_document)) return { client, fault: 'wrong_method' }
  const signed = await checkAssertion(context, call, client, presented.client_assertion, asked)
  const isPublic = signed.fault === 'unreadable_keys' && signed.client.keys?.is_required === false
  return isPublic ? { ...signed, fault: 'public' } : signed
}

const findSecretFault = (client: Client | undefined, presented: PresentedClient): Fault | undefined => {
  if (!client) return 'unknown_client'
  if (client.type === 'public') return 'public'
  if (presented.method === 'none') return 'no_secret'
  return isSecretOf(client, presented) ? undefined : 'wrong_secret'
}

/** Logs the reason of a refusal for the operator, because the answer does not contain the reason. */
const report = (
  context: Context,
  call: Call,
  client: Client | undefined,
  presented: PresentedClient,
  fault: Fault | undefined,
): void => {
  if (!mayReport(context, call, client)) return
  const reason = fault === undefined || fault === 'public' ? 'wrong_method' : fault
  const { request_id } = call
  const client_id = printable(presented.client_id)
  context.log.warn({ event: 'client_refused', request_id, reason, client_id, method: presented.method })
}

/**
 * Runs `attempt`, which verifies a secret, a code or a token. Counts the wrong guesses of each network. After
 * too many wrong guesses, attempts from the network are refused for some time, without verification. A right
 * value is refused too, because a client could otherwise guess until it finds the value. `asClient` does not
 * call `throttled` for a client that presents its correct secret or assertion.
 *
 * @param client the client whose organization is charged for the guesses
 * @throws AppError 429 `rate_limited`; also every error of `attempt`
 */
export const throttled = async <T>(
  context: Context,
  call: Call,
  client: Client | undefined,
  attempt: () => Promise<T>,
): Promise<T> => {
  const { ip_address } = call
  const key = secretsFrom(ip_address)
  const wait = waitUntil(await blockedUntil(context.store, key.key), key.limit, context.clock.now())
  if (wait > 0)
    throw retryLater('rate_limited', 'Too many wrong secrets, codes or tokens came from this address.', wait)
  try {
    return await attempt()
  } catch (error) {
    if (!(error instanceof CredentialError)) throw error
    charge(context, { ip_address, organization_id: client?.organization_id, kind: 'commit' })
    await context.store.write(tx => countFailure(context, tx, [key]))
    throw error
  }
}
