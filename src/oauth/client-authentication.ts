import type { Context } from '#src/context.ts'
import { type Client, findClient } from '#src/directory/clients/store.ts'
import type { Call } from '#src/http/call.ts'
import { charge } from '#src/http/charge.ts'
import { mayReport, printable } from '#src/http/refusal.ts'
import { retryLater } from '#src/lib/app-error.ts'
import { hashSecret, sameHash } from '#src/lib/secrets.ts'
import { checkMethod, type PresentedClient } from '#src/protocol/oauth/client-auth.ts'
import { OAuthError } from '#src/protocol/oauth/error.ts'
import { blockedUntil, countFailure, secretsFrom } from '#src/sign-in/throttle.ts'

/** A secret, code or token that this server does not know: counted as a wrong guess. */
export class CredentialError extends OAuthError {}

const isSecretOf = ({ secret_hash }: Client, { client_secret }: PresentedClient): boolean =>
  secret_hash !== null && client_secret !== undefined && sameHash(hashSecret(client_secret), secret_hash)

/**
 * Runs `attempt` for the authenticated client. A client with its correct secret is never refused for failures
 * of others at its address, and its own expired codes or tokens do not count as guesses.
 *
 * @param place `either` accepts a secret in the header or the body, whichever method is registered: many
 * libraries always use HTTP Basic at these endpoints
 * @throws CredentialError `invalid_client`; AppError 429 as {@link throttled}
 */
export const asClient = async <T>(
  context: Context,
  call: Call,
  presented: PresentedClient,
  attempt: (client: Client) => Promise<T>,
  place: 'registered' | 'either' = 'registered',
): Promise<T> => {
  const client = await findClient(context, presented.client_id)
  const isAuthenticated = client?.type === 'confidential' && isSecretOf(client, presented)
  const run = async () => {
    try {
      if (!client) throw new CredentialError('invalid_client')
      if (place === 'registered' || client.type === 'public') checkMethod(client, presented)
      if (client.type === 'confidential' && !isAuthenticated) throw new CredentialError('invalid_client')
    } catch (error) {
      report(context, call, client, presented)
      throw error
    }
    return attempt(client)
  }
  return isAuthenticated ? run() : throttled(context, call, client, run)
}

/** Logs why a client is refused, for its operator: the answer says only `invalid_client`. */
const report = (
  context: Context,
  call: Call,
  client: Client | undefined,
  presented: PresentedClient,
): void => {
  if (!mayReport(context, call, client)) return
  const reason = !client
    ? 'unknown_client'
    : client.type === 'confidential' && presented.method === 'none'
      ? 'no_secret'
      : client.type === 'public' || isSecretOf(client, presented)
        ? 'wrong_method'
        : 'wrong_secret'
  const { request_id } = call
  const client_id = printable(presented.client_id)
  context.log.warn({ event: 'client_refused', request_id, reason, client_id, method: presented.method })
}

/**
 * Runs `attempt`, which verifies a secret, a code or a token. Counts wrong ones per address and refuses every
 * attempt from an address with too many.
 *
 * @param client the client whose organization is charged for the guesses
 * @throws AppError 429 `rate_limited`
 */
export const throttled = async <T>(
  context: Context,
  call: Call,
  client: Client | undefined,
  attempt: () => Promise<T>,
): Promise<T> => {
  const { ip_address } = call
  const key = secretsFrom(ip_address)
  const wait = (await blockedUntil(context.store, key.key)) - context.clock.now()
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
