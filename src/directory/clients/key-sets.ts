import type { createLocalJWKSet } from 'jose'
import type { CalledFor, Core } from '#src/context.ts'
import { chargeKeySet } from '#src/http/rate-limits.ts'
import { DAY } from '#src/lib/duration.ts'
import { readKeySet } from '#src/protocol/oauth/client-keys.ts'
import { ASKED_AGAIN, findJson } from './remote-json.ts'

/**
 * Maximum bytes of a key set. The limit exists because key sets stay in memory. More than a hundred keys fit.
 */
const MAX_BYTES = 64 * 1024

/** Finds the key that a JWS names. */
export type KeyFinder = ReturnType<typeof createLocalJWKSet>

/**
 * Returns the keys that a client publishes. The keys come from memory while they are fresh. If the keys
 * cannot be read again, the known keys are used for a day after the last read. Users can thus sign in during
 * an outage of the client's site. Returns undefined when there are no usable keys.
 *
 * @param client_id URL of the metadata document
 * @param is_lacking true when the known set lacks the wanted key
 * @throws AppError when no keys in memory are usable: 429 `rate_limited` when too many key sets were read
 * from the origin; 503 `temporarily_unavailable` while too many documents are being read
 */
export const findKeySet = async (
  context: Core,
  { client_id, jwks_uri, organization }: { client_id: string; jwks_uri: string; organization: CalledFor },
  is_lacking = false,
): Promise<KeyFinder | undefined> => {
  const { createLocalJWKSet } = await import('jose')
  const isOwn = (origin: string) => origin === new URL(client_id).origin
  return findJson(context, {
    kind: 'keys',
    url: jwks_uri,
    organization,
    bytes: MAX_BYTES,
    charge: origin => chargeKeySet(context, { origin, isOwn: isOwn(origin) }),
    parse: json => createLocalJWKSet(readKeySet(json)),
    stale_for: DAY,
    ...(is_lacking && { asked_after: context.clock.now() - ASKED_AGAIN }),
  })
}
