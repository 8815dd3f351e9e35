import type { Context } from '#src/context.ts'
import { type Client, findClient } from '#src/directory/clients/store.ts'
import type { Call } from '#src/http/call.ts'
import { retryLater } from '#src/lib/app-error.ts'
import { hashSecret, sameHash } from '#src/lib/secrets.ts'
import { checkMethod, type PresentedClient } from '#src/protocol/oauth/client-auth.ts'
import { OAuthError } from '#src/protocol/oauth/error.ts'
import { blockedUntil, countFailure, secretsFrom } from '#src/sign-in/throttle.ts'

/** A secret, code or token that is not known here: what someone sends who is guessing. */
export class WrongGuess extends OAuthError {}

/** The client, once it has proven to be it. Throws invalid_client. */
export const authenticateClient = async (context: Context, presented: PresentedClient): Promise<Client> => {
  const client = await findClient(context.store, presented.client_id)
  if (!client) throw new WrongGuess('invalid_client')
  checkMethod(client, presented)
  if (client.type === 'confidential' && !isSecretOf(client, presented)) throw new WrongGuess('invalid_client')
  return client
}

const isSecretOf = ({ secret_hash }: Client, { client_secret }: PresentedClient): boolean =>
  secret_hash !== null && client_secret !== undefined && sameHash(hashSecret(client_secret), secret_hash)

/** Runs what a stranger could guess at: counts wrong guesses by address, and refuses all from one that made too many (429). */
export const guarded = async <T>(context: Context, call: Call, attempt: () => Promise<T>): Promise<T> => {
  const key = secretsFrom(call.ip_address)
  const wait = (await blockedUntil(context.store, key.key)) - context.clock.now()
  if (wait > 0)
    throw retryLater('rate_limited', 'Too many wrong secrets, codes or tokens came from this address.', wait)
  try {
    return await attempt()
  } catch (error) {
    if (error instanceof WrongGuess) await context.store.write(tx => countFailure(context, tx, [key]))
    throw error
  }
}
