import type { Context } from '#src/context.ts'
import { type Client, findClient } from '#src/directory/clients/store.ts'
import type { Call } from '#src/http/call.ts'
import { charge } from '#src/http/charge.ts'
import { retryLater } from '#src/lib/app-error.ts'
import { hashSecret, sameHash } from '#src/lib/secrets.ts'
import { checkMethod, type PresentedClient } from '#src/protocol/oauth/client-auth.ts'
import { OAuthError } from '#src/protocol/oauth/error.ts'
import { blockedUntil, countFailure, secretsFrom } from '#src/sign-in/throttle.ts'

/** A secret, code or token that is not known here: what someone sends who is guessing. */
export class CredentialError extends OAuthError {}

const isSecretOf = ({ secret_hash }: Client, { client_secret }: PresentedClient): boolean =>
  secret_hash !== null && client_secret !== undefined && sameHash(hashSecret(client_secret), secret_hash)

/**
 * Runs what only the presented client may do. One that shows its right secret is never refused for what others did from its
 * address, and no code or token that it was handed counts as a guess of its own. Throws invalid_client; 429 as `guarded`.
 *
 * @param place `either`: a secret is taken in header or body, whatever method is registered: many libraries use HTTP Basic at
 *   these endpoints
 */
export const asClient = async <T>(
  context: Context,
  call: Call,
  presented: PresentedClient,
  attempt: (client: Client) => Promise<T>,
  place: 'registered' | 'either' = 'registered',
): Promise<T> => {
  const client = await findClient(context.store, presented.client_id)
  const isProven = client?.type === 'confidential' && isSecretOf(client, presented)
  const run = async () => {
    if (!client) throw new CredentialError('invalid_client')
    if (place === 'registered' || client.type === 'public') checkMethod(client, presented)
    if (client.type === 'confidential' && !isProven) throw new CredentialError('invalid_client')
    return attempt(client)
  }
  return isProven ? run() : throttled(context, call, client, run)
}

/**
 * Runs what a stranger could guess at: counts wrong guesses by address, and refuses all from one that made too many (429).
 *
 * @param client whose organization the guesses are charged to
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
