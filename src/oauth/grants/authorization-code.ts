import { type NewEvent, recordAll } from '#src/audit/record.ts'
import type { Context, Locate } from '#src/context.ts'
import { isAdmitted } from '#src/directory/admission.ts'
import type { Api } from '#src/directory/apis/store.ts'
import { noteUse } from '#src/directory/clients/dynamic-store.ts'
import { effectiveRoles } from '#src/directory/effective-roles-store.ts'
import { settingsOf } from '#src/directory/organizations/settings.ts'
import { markActive } from '#src/directory/users/store.ts'
import { CLOCK_SKEW, SECOND } from '#src/lib/duration.ts'
import { CONSOLE_CLIENT, type SessionId } from '#src/lib/ids.ts'
import { hashSecret, type Secret } from '#src/lib/secrets.ts'
import { CredentialError } from '#src/oauth/client-authentication.ts'
import { furtherClaims } from '#src/oauth/further-claims.ts'
import { isDynamic } from '#src/protocol/oauth/dynamic-id.ts'
import { OAuthError } from '#src/protocol/oauth/error.ts'
import { verifies } from '#src/protocol/oauth/pkce.ts'
import { formatScope } from '#src/protocol/oauth/scope.ts'
import type { TokenRequest } from '#src/protocol/oauth/token-request.ts'
import { findSessionOf } from '#src/sessions/login-sessions-store.ts'
import { findSubject } from '#src/sessions/login-store.ts'
import { newRefreshToken } from '#src/sessions/refresh-tokens.ts'
import { revokeSession, sessionCreated } from '#src/sessions/service.ts'
import { createSession, extendSession, type NewSession } from '#src/sessions/store.ts'
import type { Transaction } from '#src/storage/store.ts'
import { burnCode, findCode } from '#src/tokens/code-store.ts'
import { type AuthorizationCode, redirectHash } from '#src/tokens/codes.ts'
import { issueToken } from '#src/tokens/issue.ts'
import {
  accessTokenForm,
  describeTarget,
  findExclusion,
  type Grant,
  type GrantCall,
  issueAccessToken,
  NOT_ADMITTED,
  type TokenAnswer,
  targetOf,
} from './grant.ts'
import { idTokenOf } from './id-token.ts'

type CodeRequest = Extract<TokenRequest, { grant_type: 'authorization_code' }>
type CodeCall = GrantCall<CodeRequest>

const USED = 'The code was used.'

/** Redeems an authorization code: https://www.rfc-editor.org/rfc/rfc6749#section-4.1.3 */
export const authorizationCode: Grant<'authorization_code'> = async (context, call) => {
  const locate = await context.places.open()
  const redeemed = await context.store.write(tx => redeem(context, tx, call, locate))
  if (redeemed instanceof OAuthError) throw redeemed
  return answer(context, call, redeemed)
}

type Subject = Exclude<Awaited<ReturnType<typeof findSubject>>, 'burnt' | undefined>
type Redeemed = Exclude<Awaited<ReturnType<typeof redeem>>, OAuthError>

/**
 * Returns a refusal instead of throwing it, because the transaction must commit even when the request is
 * refused. A wrong verifier makes the code unusable, and a replayed code revokes its session.
 */
const redeem = async (context: Context, tx: Transaction, call: CodeCall, locate: Locate) => {
  const { client, request, client_info } = call
  const { client_id } = client
  const now = context.clock.now()
  const code = await findCode(context, tx, { code: request.code, client_id })
  if (!code) return new CredentialError('invalid_grant')
  if (code === 'burnt') return new OAuthError('invalid_grant', USED)
  const user = await findSubject(tx, code, request.code)
  if (user === 'burnt') return new OAuthError('invalid_grant', USED)
  if (!user) return refuseUsed(context, tx, call, code)
  // A wrong verifier may mean that an attacker has injected a stolen code into the client, so each code
  // allows only one attempt. A wrong secret does not use up the code, because the client is authenticated
  // first.
  const fault = findFault(code, call, now) ?? (await findExclusion(tx, client, user.organization_id))
  if (fault) {
    await endSessionOf(context, tx, call, code)
    if (code.expires_at > now) await burnCode(tx, request.code, code)
    return new OAuthError('invalid_grant', fault)
  }

  if (!(await isAdmitted(tx, client, user.id))) {
    // A replayed code ends its session, even if the user is no longer admitted.
    await endSessionOf(context, tx, call, code)
    return new OAuthError('invalid_grant', NOT_ADMITTED)
  }
  const roles = await effectiveRoles(tx, user.id)
  const granted = {
    resources: code.resources,
    scopes: code.scope.split(' '),
    user,
    roles,
    since: code.issued_at,
    now,
  }
  const target = await targetOf(tx, client, granted, request.resource).catch(async error => {
    if (error instanceof OAuthError && (await isUsed(tx, code, user))) return undefined
    throw error
  })
  // A replayed code ends its session, even if it is sent with a wrong resource.
  if (!target) return refuseUsed(context, tx, call, code)
  const mayContinue = client_id === CONSOLE_CLIENT && !code.resources
  const started =
    (mayContinue ? await continueSession(context, tx, call, code, user) : undefined) ??
    (await beginSession(context, tx, call, code, { user, locate, api: target.api }))
  if (!started) return refuseUsed(context, tx, call, code)
  const { session_id, ends_by, refresh_token } = started
  const about = {
    actor: { id: user.id, email: user.email },
    organization_id: user.organization_id,
    subject_id: user.id,
  }
  const by = { client_id, grant_type: request.grant_type }
  const active = await markActive(tx, user, now)
  const login: NewEvent = {
    ...about,
    type: 'user.login',
    target_id: user.id,
    target_type: 'user',
    client_info: code.client_info ?? user,
    metadata: { ...by, session_id, amr: code.amr },
    active,
  }
  const issued: NewEvent = {
    ...about,
    type: 'token.issued',
    target_id: session_id,
    target_type: 'session',
    client_info,
    metadata: { ...by, ...describeTarget(target) },
    ...(!started.isLogin && { active }),
  }
  await recordAll(context, tx, [
    ...(started.isLogin ? [login] : []),
    ...(started.row ? [sessionCreated({ ...started.row, email: user.email })] : []),
    issued,
  ])
  if (isDynamic(client)) await noteUse(tx, client_id, now)
  const further = await furtherClaims(tx, client, user.id, target.scopes, { roles, api: target.api })
  return { code, user, session_id, ends_by, refresh_token, roles, further, ...target }
}

/** The session of the tokens that are issued for a code. `row` is present when the code began the session. */
interface Started {
  session_id: SessionId
  ends_by: number | null
  refresh_token?: Secret | undefined
  row?: NewSession
  /** False when the user has not authenticated since the previous code of the session. */
  isLogin: boolean
}

/**
 * Returns the time (ms) by which a session that begins now must end. Returns null when `session_ttl` is not
 * set, because applications may then keep their users signed in for any time. An idle session still ends with
 * its refresh token.
 */
export const sessionEnd = (
  { session_ttl }: Pick<ReturnType<typeof settingsOf>, 'session_ttl'>,
  now: number,
): number | null => (session_ttl === undefined ? null : now + session_ttl)

/**
 * Begins the session whose id the code contains. Inserting the row of the session uses up the code. Returns
 * undefined when the code was used before.
 */
const beginSession = async (
  context: Context,
  tx: Transaction,
  { client }: CodeCall,
  code: AuthorizationCode,
  { user, locate, api }: { user: Subject; locate: Locate; api: Api | undefined },
): Promise<Started | undefined> => {
  const now = context.clock.now()
  const { session_id } = code
  const { ip_address, user_agent } = code.client_info ?? user
  const ends_by = sessionEnd(settingsOf(user), now)
  // A session without a refresh token ends with its access token. It must not end earlier, because lists show
  // only active sessions, and a revocation by client or organization ends only these. Only the console
  // extends such a session.
  const isRefreshed = client.grant_types.includes('refresh_token')
  const form = accessTokenForm(context, client, api)
  const lifetime = (isRefreshed ? client.refresh_token_ttl : form.lifetime) * SECOND
  const refresh_token = isRefreshed ? newRefreshToken(context, session_id) : undefined
  const row = {
    id: session_id,
    user_id: user.id,
    client_id: client.client_id,
    organization_id: user.organization_id,
    login_id: code.login_id,
    scope: code.scope,
    resources: code.resources || null,
    ip_address,
    user_agent,
    location: locate(ip_address),
    started_at: now,
    expires_at: Math.min(now + lifetime, ends_by ?? Number.POSITIVE_INFINITY),
    ends_by,
    refresh_hash: refresh_token ? hashSecret(refresh_token) : null,
    authentication: client.id_token_on_refresh ? authenticationOf(code) : null,
  }
  if (!(await createSession(tx, row))) return undefined
  return { session_id, ends_by, refresh_token, row, isLogin: true }
}

/**
 * Continues the console's session in this browser instead of beginning another. The console keeps its token
 * only in memory and requests a code each time the browser loads the console. Returns undefined when the code
 * was used, or when the login has no active session of the console with this scope. The caller excludes codes
 * that name an API.
 */
const continueSession = async (
  { clock }: Context,
  tx: Transaction,
  { client, request }: CodeCall,
  code: AuthorizationCode,
  subject: Subject,
): Promise<Started | undefined> => {
  const { client_id, access_token_ttl } = client
  const { login_id, scope } = code
  const of = { login_id, client_id, scope }
  const session = (await isUsed(tx, code, subject))
    ? undefined
    : await extendSession(tx, of, clock.now(), access_token_ttl * SECOND)
  if (!session) return undefined
  await burnCode(tx, request.code, code)
  const { id, ends_by, last_active_at } = session
  return { session_id: id, ends_by, isLogin: code.auth_time > last_active_at }
}

/** True when the code began a session. */
const isUsed = async (tx: Transaction, { session_id }: AuthorizationCode, { id }: Subject) =>
  (await findSessionOf(tx, { session_id, user_id: id })) !== undefined

const refuseUsed = async (context: Context, tx: Transaction, call: CodeCall, code: AuthorizationCode) => {
  await endSessionOf(context, tx, call, code)
  return new OAuthError(
    'invalid_grant',
    'The code was used or revoked, the login that it came from has ended, or the user is disabled.',
  )
}

/**
 * Revokes the session that a code began, because a code that is presented a second time may have leaked. Does
 * nothing when the code began no session. https://www.rfc-editor.org/rfc/rfc6749#section-4.1.2
 */
const endSessionOf = (
  context: Context,
  tx: Transaction,
  { client, client_info }: CodeCall,
  { session_id }: AuthorizationCode,
): Promise<void> => {
  const actor = { id: client.client_id, email: null }
  return revokeSession(context, tx, { id: session_id }, { actor, client_info, reason: 'code_replayed' })
}

const findFault = (
  code: AuthorizationCode,
  { client, request }: CodeCall,
  now: number,
): string | undefined => {
  if (code.expires_at <= now) return 'The code has expired.'
  if (!code.redirect_hash.equals(redirectHash(request.redirect_uri)))
    return 'The redirect_uri differs from that of the authorization request.'
  if (!verifies(request.code_verifier, code.code_challenge))
    return 'The code_verifier does not match the code_challenge.'
  // The client for which the code was issued may have been deleted. Another application may now have the same
  // `client_id`, and must not get the tokens. A `created_at` in the future was stored before the clock was
  // set back, and is ignored.
  if (client.created_at > code.issued_at && client.created_at <= now + CLOCK_SKEW)
    return 'The client was registered after the code was issued.'
  return undefined
}

const authenticationOf = ({ auth_time, acr, amr }: AuthorizationCode) => ({
  auth_time: Math.floor(auth_time / SECOND),
  acr,
  amr: [...amr],
})

const answer = async (context: Context, { client }: CodeCall, granted: Redeemed): Promise<TokenAnswer> => {
  const { code, refresh_token, ...grant } = granted
  const { scopes } = grant
  const authentication = authenticationOf(code)
  const { auth_time } = authentication
  const { token, expires_in } = await issueAccessToken(context, client, { ...grant, auth_time })
  const identity = { ...grant, ...authentication, nonce: code.nonce || undefined, access_token: token }
  return {
    access_token: token,
    token_type: 'Bearer',
    expires_in,
    ...(refresh_token && { refresh_token }),
    ...(scopes.includes('openid') && {
      id_token: (await issueToken(context, idTokenOf(context, client, identity))).token,
    }),
    scope: formatScope(scopes),
  }
}
