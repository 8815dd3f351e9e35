import type { Context } from '#src/context.ts'
import { SECOND } from '#src/lib/duration.ts'
import type { OrganizationId, SessionId, UserId } from '#src/lib/ids.ts'
import { type IdTokenHint, readIdTokenHint } from '#src/protocol/oidc/id-token-hint.ts'

type Base = Pick<Context, 'config' | 'clock' | 'ports'>

/** A clock may step back a little after it has issued a token; seconds. */
const TOLERANCE = 5

/** An access token of ours: who may do what, in the ids of the store. */
export interface AccessToken {
  client_id: string
  organization_id: OrganizationId
  scopes: readonly string[]
  /** Seconds since the epoch. */
  issued_at: number
  /** Absent from a client's own token (client credentials). */
  user: { user_id: UserId; session_id: SessionId } | undefined
  claims: Readonly<Record<string, unknown>>
}

/**
 * Our own access tokens: signature and header by the keys in memory, then issuer, times and kind. A token of type `JWT` could
 * be an ID token: only access tokens have a scope. Whether its session, user and organization still are is for the caller to see.
 */
export const verifyAccessToken = async (
  { config, clock, ports }: Base,
  token: string,
): Promise<AccessToken | undefined> => {
  const opened = await ports.keys.open(token)
  if (!opened) return undefined
  const { iss, sub, sid, client_id, org_id, scope, iat, exp, nbf } = opened.claims
  const now = clock.now() / SECOND
  const isCurrent = typeof exp === 'number' && exp > now && typeof nbf === 'number' && nbf <= now + TOLERANCE
  const isAccessToken =
    typeof sub === 'string' &&
    typeof client_id === 'string' &&
    typeof org_id === 'string' &&
    typeof iat === 'number' &&
    typeof scope === 'string'
  if (iss !== config.url || !isCurrent || !isAccessToken) return undefined
  return {
    client_id,
    organization_id: `org_${org_id}`,
    scopes: scope.split(' ').filter(Boolean),
    issued_at: iat,
    user: typeof sid === 'string' ? { user_id: `usr_${sub}`, session_id: `sess_${sid}` } : undefined,
    claims: opened.claims,
  }
}

/** An ID token that we issued, however old, to `client_id` when one is given: what a hint says about whom is meant. */
export const verifyIdTokenHint = async (
  { config, ports }: Base,
  hint: string,
  client_id?: string,
): Promise<IdTokenHint | undefined> => {
  const opened = await ports.keys.open(hint)
  if (!opened) return undefined
  const { alg, typ, claims } = opened
  return readIdTokenHint({ header: { alg, typ }, payload: claims }, { issuer: config.url, client_id })
}
