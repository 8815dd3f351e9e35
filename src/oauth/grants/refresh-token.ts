import { record } from '#src/audit/record.ts'
import type { Context } from '#src/context.ts'
import { isAdmitted } from '#src/directory/admission.ts'
import { effectiveRoles } from '#src/directory/effective-roles-store.ts'
import { markActive } from '#src/directory/users/store.ts'
import { SECOND } from '#src/lib/duration.ts'
import type { Secret } from '#src/lib/secrets.ts'
import { CredentialError, SESSION_ENDED } from '#src/oauth/client-authentication.ts'
import { furtherClaims } from '#src/oauth/further-claims.ts'
import { OAuthError } from '#src/protocol/oauth/error.ts'
import { formatScope, grantScopes } from '#src/protocol/oauth/scope.ts'
import type { TokenRequest } from '#src/protocol/oauth/token-request.ts'
import {
  findRefreshGrant,
  findUnusedSuccessor,
  type RefreshGrant,
  rotateRefreshToken,
} from '#src/sessions/refresh-tokens.ts'
import { revokeSession } from '#src/sessions/service.ts'
import type { Transaction } from '#src/storage/store.ts'
import { issueToken } from '#src/tokens/issue.ts'
import {
  findExclusion,
  type Grant,
  type GrantCall,
  issueAccessToken,
  NOT_ADMITTED,
  targetOf,
} from './grant.ts'
import { idTokenOf } from './id-token.ts'

type RefreshCall = GrantCall<Extract<TokenRequest, { grant_type: 'refresh_token' }>>

/**
 * Refreshes a session and rotates its refresh token:
 * https://www.rfc-editor.org/rfc/rfc6749#section-6, https://www.rfc-editor.org/rfc/rfc9700#section-4.14.2
 */
export const refreshToken: Grant<'refresh_token'> = async (context, call) => {
  const refreshed = await context.store.write(tx => refresh(context, tx, call))
  if (refreshed instanceof OAuthError) throw refreshed
  const { refresh_token, authentication, ...grant } = refreshed
  const { client } = call
  const { token, expires_in } = await issueAccessToken(context, client, grant)
  // The ID token has no nonce: https://openid.net/specs/openid-connect-core-1_0.html#RefreshTokenResponse
  const identity = authentication && { ...grant, ...authentication, nonce: undefined, access_token: token }
  return {
    access_token: token,
    token_type: 'Bearer',
    expires_in,
    refresh_token,
    ...(identity && { id_token: (await issueToken(context, idTokenOf(context, client, identity))).token }),
    scope: formatScope(grant.scopes),
  }
}

/**
 * Returns a refusal instead of throwing it, because the transaction must commit even when the request is
 * refused. The reuse of a token revokes the session.
 */
const refresh = async (context: Context, tx: Transaction, call: RefreshCall) => {
  const { client, request, client_info } = call
  const grant = await findRefreshGrant(context, tx, request.refresh_token)
  if (grant === 'gone') return new OAuthError('invalid_grant', SESSION_ENDED)
  // A token that another client presents is refused. It stays valid for its owner, because another client's
  // attempt must not end a session.
  if (grant?.client_id !== client.client_id) return new CredentialError('invalid_grant')
  const now = context.clock.now()
  if (grant.ended_at !== null || grant.expires_at <= now)
    return new OAuthError('invalid_grant', SESSION_ENDED)
  const repeated = grant.is_used ? findRepeatable(context, call, grant) : undefined
  if (grant.is_used && !repeated) return refuseReuse(context, tx, call, grant)
  // The token is not used up, so the session works again when the user is enabled.
  if (!grant.enabled) return new OAuthError('invalid_grant', 'The user is disabled.')
  const exclusion = await findExclusion(tx, client, grant.organization_id)
  if (exclusion) return new OAuthError('invalid_grant', exclusion)
  if (!(await isAdmitted(tx, client, grant.user_id))) return new OAuthError('invalid_grant', NOT_ADMITTED)
  const scopes = grantScopes(request.scopes, grant.scope.split(' '))
  const { id: session_id, client_id, user_id, organization_id, email, ends_by } = grant
  const user = { ...grant, id: user_id }
  const roles = await effectiveRoles(tx, user_id)
  const authorized = { resources: grant.resources, scopes, user, roles, since: grant.started_at, now }
  const target = await targetOf(tx, client, authorized, request.resource)
  // The token does not get scopes that the client has lost since the login. For a token of an API, `targetOf`
  // has already removed these scopes.
  const granted = target.api ? target.scopes : scopes.filter(scope => client.scopes.includes(scope))
  // A request without `scope` may get a token without scopes, because the user agreed to the API itself.
  if (request.scopes && granted.length === 0) throw new OAuthError('invalid_scope')

  const refresh_token = repeated ?? (await rotate(context, tx, call, grant))
  if (!refresh_token) return refuseReuse(context, tx, call, grant)
  await record(context, tx, {
    type: 'token.refreshed',
    actor: { id: user_id, email },
    target_id: session_id,
    target_type: 'session',
    organization_id,
    client_info,
    metadata: { client_id, ...(target.api && { resource: target.api.identifier }) },
    subject_id: user_id,
    active: await markActive(tx, user, now),
  })
  return {
    refresh_token,
    user,
    roles,
    further: await furtherClaims(tx, client, user_id, granted, { roles, api: target.api }),
    session_id,
    api: target.api,
    scopes: granted,
    ends_by,
    authentication:
      client.id_token_on_refresh && granted.includes('openid') ? grant.authentication : undefined,
  }
}

/**
 * Returns the successor of a used token once more, for a client that lost the first answer. Returns undefined
 * outside the reuse window, and when the successor was used.
 */
const findRepeatable = (
  context: Context,
  { client, request }: RefreshCall,
  grant: RefreshGrant,
): Secret | undefined => {
  const window = client.refresh_token_reuse_window * SECOND
  const isLate = window === 0 || context.clock.now() - grant.last_active_at > window
  return isLate ? undefined : findUnusedSuccessor(context, request.refresh_token, grant)
}

/**
 * Rotates the token and extends the session. Returns undefined when a concurrent request rotated the token
 * first.
 */
const rotate = (
  context: Context,
  tx: Transaction,
  { client, request }: RefreshCall,
  grant: RefreshGrant,
): Promise<Secret | undefined> => {
  const now = context.clock.now()
  const ends_by = grant.ends_by ?? Number.POSITIVE_INFINITY
  const expires_at = Math.min(now + client.refresh_token_ttl * SECOND, ends_by)
  return rotateRefreshToken(context, tx, request.refresh_token, grant, { now, expires_at })
}

/**
 * Revokes the session, because two parties may hold the token and the server cannot tell them apart.
 * https://www.rfc-editor.org/rfc/rfc9700#section-4.14.2
 */
const refuseReuse = async (
  context: Context,
  tx: Transaction,
  { client, client_info }: RefreshCall,
  { id }: RefreshGrant,
): Promise<OAuthError> => {
  const actor = { id: client.client_id, email: null }
  await revokeSession(context, tx, { id }, { actor, client_info, reason: 'refresh_token_reused' })
  return new OAuthError('invalid_grant', 'The refresh token was used before; the session is revoked.')
}
