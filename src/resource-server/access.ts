import { type Claims, hasAllRoles, hasAllScopes, hasAnyRole } from './claims.ts'
import {
  AccessError,
  ForbiddenError,
  InsufficientScopeError,
  JwksUnavailableError,
  TokenMalformedError,
  TokenMissingError,
} from './errors.ts'

/** What a route asks for, beyond a good token. An empty list in `anyRole` lets nobody in. */
export type Rules = {
  /** All of these roles, else 403. */
  roles?: readonly string[]
  /** At least one of these roles, else 403. */
  anyRole?: readonly string[]
  /** All of these scopes, else 403 `insufficient_scope`. */
  scopes?: readonly string[]
  /** A request without a token passes, without claims; one that brings a token has to satisfy the other rules. */
  optional?: boolean
  /** With `optional`: whether a token that is no good is refused (the default) or treated as if it were absent. */
  onInvalid?: 'reject' | 'anonymous'
}

/** The claims a handler sees behind these rules: possibly none when they are optional. */
export type ClaimsFor<R extends Rules> = 'optional' extends keyof R
  ? true extends R['optional']
    ? Claims | undefined
    : Claims
  : Claims

/** Your own answers instead of the standard ones. 503 (`jwks_unavailable`) always keeps the standard one. */
export type Handlers<Context extends readonly unknown[], Result> = {
  /** No token or a bad one: `error.code` tells which. */
  onUnauthorized?: (error: AccessError, ...context: Context) => Result
  /** A good token that may not do this. */
  onForbidden?: (error: AccessError, ...context: Context) => Result
}

/** Anything with headers: a `Request`, or two lines around what a framework has. */
export type CredentialSource = { headers: { get(name: string): string | null | undefined } }

/** The part of a `Verifier` that `authorize` needs. */
export type TokenVerifier = {
  /** The claims of a good access token. Throws the AccessError that fits. */
  verify(token: string): Promise<Claims>
}

/** `Bearer`, in any case, and one b64token (RFC 6750 section 2.1). */
const BEARER = /^bearer +([A-Za-z0-9\-._~+/]+=*)$/i

/**
 * The token of the Authorization header; undefined without a bearer token (another scheme is none of our business).
 * Never from the query or the body. Throws token_malformed.
 */
export function findToken({ headers }: CredentialSource): string | undefined {
  const header = headers.get('authorization')?.trim()
  if (!header || !/^bearer(\s|$)/i.test(header)) return undefined
  const token = BEARER.exec(header)?.[1]
  if (token === undefined)
    throw new TokenMalformedError('the Authorization header is not "Bearer" and one token')
  return token
}

/**
 * The claims of a request that satisfies the rules: what every adapter is built on. Throws an AccessError.
 */
export async function authorize<R extends Rules = Record<never, never>>(
  verifier: TokenVerifier,
  source: CredentialSource,
  rules?: R,
): Promise<ClaimsFor<R>> {
  const claims = await findClaims(verifier, source, rules ?? {})
  if (claims) requireRights(claims, rules ?? {})
  return claims as ClaimsFor<R>
}

async function findClaims(verifier: TokenVerifier, source: CredentialSource, rules: Rules) {
  try {
    const token = findToken(source)
    if (token !== undefined) return await verifier.verify(token)
  } catch (error) {
    const ignored = rules.optional && rules.onInvalid === 'anonymous'
    if (!ignored || !(error instanceof AccessError) || error.status !== 401) throw error
    return undefined
  }
  if (!rules.optional) throw new TokenMissingError()
  return undefined
}

function requireRights(claims: Claims, { roles = [], anyRole, scopes = [] }: Rules) {
  if (!hasAllRoles(claims, roles)) throw new ForbiddenError(`all of ${roles.join(', ')}`)
  if (anyRole && !hasAnyRole(claims, anyRole)) throw new ForbiddenError(`one of ${anyRole.join(', ')}`)
  if (!hasAllScopes(claims, scopes)) throw new InsufficientScopeError(scopes)
}

/** A refusal on the wire. */
export type Answer = {
  status: 401 | 403 | 503
  headers: Record<string, string>
  body: { error: string; error_description: string; code: string; status: number }
}

/**
 * The standard answer to a refusal (RFC 6750 section 3): without a token the challenge names nothing but the realm, and
 * no text of the token comes back.
 */
export function answerTo(error: AccessError, issuer: string): Answer {
  const { code, status, description } = error
  const name = status === 401 ? 'invalid_token' : status === 503 ? 'temporarily_unavailable' : code
  const challenge: Record<string, string> = { realm: issuer }
  if (code !== 'token_missing') Object.assign(challenge, { error: name, error_description: description })
  if (error instanceof InsufficientScopeError) challenge.scope = error.scopes.join(' ')
  const headers: Record<string, string> = { 'cache-control': 'no-store', 'content-type': 'application/json' }
  if (error instanceof JwksUnavailableError) headers['retry-after'] = `${error.retryAfter}`
  if (status === 401 || code === 'insufficient_scope') headers['www-authenticate'] = bearer(challenge)
  return { status, headers, body: { error: name, error_description: description, code, status } }
}

/** Only characters that RFC 6750 section 3 allows: claim and scope names come from your settings. */
const bearer = (parameters: Record<string, string>) =>
  `Bearer ${Object.entries(parameters)
    .map(([name, value]) => `${name}="${value.replace(/[^ !#-[\]-~]/g, '?')}"`)
    .join(', ')}`

export function toResponse({ status, headers, body }: Answer): Response {
  return new Response(JSON.stringify(body), { status, headers })
}

/** The caller's own handler for this refusal, if there is one. */
export function findHandler<Context extends readonly unknown[], Result>(
  error: AccessError,
  handlers: Handlers<Context, Result> | undefined,
) {
  if (error.status === 503) return undefined
  return error.status === 401 ? handlers?.onUnauthorized : handlers?.onForbidden
}
