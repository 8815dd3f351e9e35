import { type Claims, hasAllRoles, hasAllScopes, hasAnyRole } from './claims.ts'
import {
  AccessError,
  ForbiddenError,
  InsufficientScopeError,
  JwksUnavailableError,
  TokenMalformedError,
  TokenMissingError,
} from './errors.ts'

/**
 * Requirements of a route beyond a valid token. An empty `anyRole` refuses every token: an application may
 * compute an empty list by mistake, and such a list must not open the route to everyone.
 */
export type Rules = {
  /** The token must have all of these roles. Otherwise the answer is 403. */
  roles?: readonly string[]
  /** The token must have at least one of these roles. Otherwise the answer is 403. */
  anyRole?: readonly string[]
  /** The token must have all of these scopes. Otherwise the answer is 403 `insufficient_scope`. */
  scopes?: readonly string[]
  /**
   * When true, a request without a token is accepted, and its claims are undefined. A request with a token
   * must fulfil the other rules.
   */
  optional?: boolean
  /**
   * Has an effect only with `optional`. `reject` refuses a request with an invalid token. `anonymous` treats
   * such a request as a request without a token. Default `reject`, so that the client notices the invalid
   * token.
   */
  onInvalid?: 'reject' | 'anonymous'
}

/** Type of the claims that a handler gets. With the rule `optional` the claims may be undefined. */
export type ClaimsFor<R extends Rules> = 'optional' extends keyof R
  ? true extends R['optional']
    ? Claims | undefined
    : Claims
  : Claims

/**
 * Custom answers for 401 and 403. A 503 (`jwks_unavailable`) always gets the standard answer, because the
 * token is not the cause: the caller should try again later.
 */
export type Handlers<Context extends readonly unknown[], Result> = {
  /** Answers a request without a valid token. `error.code` names the defect. */
  onUnauthorized?: (error: AccessError, ...context: Context) => Result
  /** Answers a valid token that lacks a required role or scope. */
  onForbidden?: (error: AccessError, ...context: Context) => Result
}

/** An object with headers: a `Request`, or a small wrapper around a framework's request. */
export type CredentialSource = { headers: { get(name: string): string | null | undefined } }

/** The part of a `Verifier` that `authorize` needs. */
export type TokenVerifier = {
  /**
   * Returns the claims of a valid access token.
   *
   * @throws AccessError; the subclass of the error names the defect
   */
  verify(token: string): Promise<Claims>
}

/** `Bearer`, in upper or lower case, and one b64token: https://www.rfc-editor.org/rfc/rfc6750#section-2.1 */
const BEARER = /^bearer +([A-Za-z0-9\-._~+/]+=*)$/i

/**
 * Returns the bearer token of the Authorization header. Returns undefined when the header is missing or has
 * another scheme. The query and the body are never read: a token in the query would end up in logs.
 *
 * @throws TokenMalformedError when the scheme is `Bearer`, but not exactly one well-formed token follows
 */
export function findToken({ headers }: CredentialSource): string | undefined {
  const header = headers.get('authorization')?.trim()
  if (!header || !/^bearer(\s|$)/i.test(header)) return undefined
  const token = BEARER.exec(header)?.[1]
  if (token === undefined)
    throw new TokenMalformedError('the Authorization header must be "Bearer" followed by one token')
  return token
}

/**
 * Verifies the token of a request and checks the rules of its route. All adapters call this function. An
 * adapter for another framework can call it too.
 *
 * @param source the headers of the request
 * @param rules requirements beyond a valid token; default: none
 * @returns the claims; undefined when `optional` is set and the request has no token, or when `onInvalid`
 * ignores an invalid token
 * @throws AccessError with `code` and `status` of the refusal; `answerTo` turns the error into an answer
 *
 * @example
 * const claims = await authorize(verifier, request, { scopes: ['orders:read'] })
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

/** An HTTP answer. */
export type Answer = {
  status: number
  headers: Record<string, string>
  body: object
}

/** The HTTP answer to a refused request. */
export type RefusalAnswer = Answer & {
  status: 401 | 403 | 503
  body: { error: string; error_description: string; code: string; status: number }
}

/** Parameters of the challenge of a protected resource: https://www.rfc-editor.org/rfc/rfc9728#section-5.1 */
export type ResourceChallenge = {
  /** URL of the metadata document. */
  metadata: string
  /** Scopes that each request needs. */
  scopes: readonly string[]
}

/**
 * Returns the standard answer to a refusal (https://www.rfc-editor.org/rfc/rfc6750#section-3). When the
 * request has no token, the challenge names no error. The answer never repeats text of the token.
 *
 * @param error the refusal that `authorize` threw
 * @param issuer the issuer, which is the realm of the challenge
 * @param resource what the challenge says about a protected resource
 * @returns status, headers and JSON body
 */
export function answerTo(error: AccessError, issuer: string, resource?: ResourceChallenge): RefusalAnswer {
  const { code, status, description } = error
  const name = status === 401 ? 'invalid_token' : status === 503 ? 'temporarily_unavailable' : code
  const challenge: Record<string, string> = { realm: issuer }
  if (code !== 'token_missing') Object.assign(challenge, { error: name, error_description: description })
  if (resource) challenge.resource_metadata = resource.metadata
  const scopes = error instanceof InsufficientScopeError ? error.scopes : (resource?.scopes ?? [])
  if (scopes.length > 0) challenge.scope = scopes.join(' ')
  const headers: Record<string, string> = { 'cache-control': 'no-store', 'content-type': 'application/json' }
  if (error instanceof JwksUnavailableError) headers['retry-after'] = `${error.retryAfter}`
  if (status === 401 || code === 'insufficient_scope') headers['www-authenticate'] = bearer(challenge)
  return { status, headers, body: { error: name, error_description: description, code, status } }
}

/**
 * Builds the challenge. The names of claims and scopes come from settings and may contain any character.
 * Characters that RFC 6750 section 3 does not allow become `?`.
 */
const bearer = (parameters: Record<string, string>) =>
  `Bearer ${Object.entries(parameters)
    .map(([name, value]) => `${name}="${value.replace(/[^ !#-[\]-~]/g, '?')}"`)
    .join(', ')}`

/** Converts an answer into a `Response`. */
export function toResponse({ status, headers, body }: Answer): Response {
  return new Response(JSON.stringify(body), { status, headers })
}

/** Returns the custom handler for this refusal, if there is one. */
export function findHandler<Context extends readonly unknown[], Result>(
  error: AccessError,
  handlers: Handlers<Context, Result> | undefined,
) {
  if (error.status === 503) return undefined
  return error.status === 401 ? handlers?.onUnauthorized : handlers?.onForbidden
}
