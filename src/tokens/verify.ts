import type { Issuer } from '#src/context.ts'
import { SECOND } from '#src/lib/duration.ts'
import type { OrganizationId, SessionId, UserId } from '#src/lib/ids.ts'
import { type IdTokenHint, readIdTokenHint } from '#src/protocol/oidc/id-token-hint.ts'

/**
 * Seconds by which `nbf` may be in the future. The clock may have been set back after the token was issued.
 */
const TOLERANCE = 5

/** A verified access token of this server. Ids have their prefixes, as in the store. */
export interface AccessToken {
  client_id: string
  /** Identifier of the API that the token is for; undefined for a token for this server's own endpoints. */
  resource: string | undefined
  organization_id: OrganizationId
  scopes: readonly string[]
  /** In seconds since the epoch, like `expires_at`. */
  issued_at: number
  expires_at: number
  /** Absent from a client's own token (client credentials). */
  user: { user_id: UserId; session_id: SessionId } | undefined
  claims: Readonly<Record<string, unknown>>
}

/**
 * Verifies signature, header, issuer, times and kind of an access token of this server. Returns undefined for
 * an invalid token. Also returns undefined for a token that is for an API, unless `audience` is `any`. The
 * claim `scope` is required, because a token of type `JWT` without `scope` is an ID token. `findLiveToken`
 * (oauth/bearer.ts) checks what can change after the issue, such as the session and the user.
 */
export const verifyAccessToken = async (
  { config, clock, keys }: Issuer,
  token: string,
  audience: 'own' | 'any' = 'own',
): Promise<AccessToken | undefined> => {
  const opened = await keys.open(token)
  if (!opened) return undefined
  const { iss, sub, aud, sid, client_id, org_id, scope, iat, exp, nbf } = opened.claims
  const now = clock.now() / SECOND
  const isCurrent = typeof exp === 'number' && exp > now && typeof nbf === 'number' && nbf <= now + TOLERANCE
  const isAccessToken =
    typeof sub === 'string' &&
    typeof client_id === 'string' &&
    typeof org_id === 'string' &&
    typeof iat === 'number' &&
    typeof scope === 'string'
  if (iss !== config.url || !isCurrent || !isAccessToken || typeof aud !== 'string') return undefined
  if (audience === 'own' && aud !== client_id) return undefined
  return {
    client_id,
    resource: aud === client_id ? undefined : aud,
    organization_id: `org_${org_id}`,
    scopes: scope.split(' ').filter(Boolean),
    issued_at: iat,
    expires_at: exp,
    user: typeof sid === 'string' ? { user_id: `usr_${sub}`, session_id: `sess_${sid}` } : undefined,
    claims: opened.claims,
  }
}

/**
 * Reads an ID token of this server as a hint. Returns undefined for any other text. An expired token is
 * accepted, even after its key has left the key set, because applications keep the token until the logout. If
 * `client_id` is present, it must be the audience of the token.
 */
export const verifyIdTokenHint = async (
  { config, keys }: Issuer,
  hint: string,
  client_id?: string,
): Promise<IdTokenHint | undefined> => {
  const opened = await keys.open(hint, 'any')
  if (!opened) return undefined
  const { alg, typ, claims } = opened
  return readIdTokenHint({ header: { alg, typ }, payload: claims }, { issuer: config.url, client_id })
}
