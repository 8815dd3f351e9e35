import {
  ClaimInvalidError,
  ClaimMissingError,
  TokenExpiredError,
  TokenMalformedError,
  TokenNotYetValidError,
  TokenTypeError,
} from './errors.ts'

/** Claims of a verified access token under their JWT names. */
export type Claims = {
  /** The user's id without `usr_`. For a token from client credentials, the `client_id`. */
  sub: string
  email: string | undefined
  /** `given_name` and `family_name`, joined by a space. When both are missing, `preferred_username`. */
  name: string | undefined
  roles: readonly string[]
  /** Granted scopes, separated by spaces. The empty string when the token has no scopes. */
  scope: string
  /** The organization's id without `org_`. */
  org_id: string | undefined
  iss: string
  aud: string | readonly string[]
  /** Unix seconds. */
  exp: number
  /** Unix seconds. */
  iat: number
  /** The complete payload. */
  raw: Readonly<Record<string, unknown>>
}

/** True when the token has the role. */
export const hasRole = (claims: Claims, role: string) => claims.roles.includes(role)
/** True when the token has at least one of the roles. */
export const hasAnyRole = (claims: Claims, roles: readonly string[]) => roles.some(r => hasRole(claims, r))
/** True when the token has all of the roles. */
export const hasAllRoles = (claims: Claims, roles: readonly string[]) => roles.every(r => hasRole(claims, r))
/** True when the token has the scope. */
export const hasScope = (claims: Claims, scope: string) =>
  scope !== '' && claims.scope.split(' ').includes(scope)
/** True when the token has all of the scopes. */
export const hasAllScopes = (claims: Claims, scopes: readonly string[]) =>
  scopes.every(s => hasScope(claims, s))

/** Requirements for the claims of an access token. */
export type ClaimPolicy = {
  issuers: readonly string[]
  audiences: readonly string[]
  realm: string | undefined
  /** Allowed clock difference in seconds. */
  clockTolerance: number
  requiredClaims: readonly string[]
}

/**
 * Claims by which an ID token is recognized (OpenID Connect Core sections 2 and 3.1.3.6). A token with one of
 * these claims counts as an ID token when its header lacks the `typ` `at+jwt`.
 */
const ID_TOKEN_CLAIMS = ['nonce', 'at_hash', 'auth_time']
const decoder = new TextDecoder('utf-8', { fatal: true })

/**
 * Validates the payload of a token with a valid signature. The kind of token is checked before the required
 * claims, so that an ID token is refused as an ID token and not for a missing claim. `now` is in Unix seconds
 * with fractions. `typ` is the value from the header in lower case.
 *
 * @throws AccessError; the subclass of the error names the defect
 */
export function parseClaims(
  payload: Uint8Array,
  typ: string | undefined,
  policy: ClaimPolicy,
  now: number,
): Claims {
  const raw = parseObject(payload)
  const scope = optionalString(raw, 'scope')
  if (typ !== 'at+jwt') requireAccessToken(raw)

  const { iss, aud, exp, iat } = parseRegisteredClaims(raw, policy, now)
  const claims: Claims = {
    sub: requiredString(raw, 'sub'),
    email: optionalString(raw, 'email'),
    name: fullName(raw),
    roles: stringList(raw, 'roles'),
    scope: scope ?? '',
    org_id: optionalString(raw, 'org_id'),
    iss,
    aud,
    exp,
    iat,
    raw,
  }
  if (policy.realm !== undefined) requireRealm(claims.org_id, policy.realm)
  for (const claim of policy.requiredClaims) required(raw, claim)
  return claims
}

/** Claims of RFC 7519 that every token needs: https://www.rfc-editor.org/rfc/rfc7519#section-4.1 */
type RegisteredClaims = Pick<Claims, 'iss' | 'aud' | 'exp' | 'iat'>

/**
 * Validates issuer, audience and times. `now` is in Unix seconds with fractions.
 *
 * @throws AccessError; the subclass of the error names the defect
 */
export function parseRegisteredClaims(raw: Payload, policy: ClaimPolicy, now: number): RegisteredClaims {
  const iss = requiredString(raw, 'iss')
  if (!policy.issuers.includes(iss)) {
    const slash = policy.issuers.some(issuer => `${issuer}/` === iss)
      ? ' (the two differ by a trailing slash)'
      : ''
    throw new ClaimInvalidError('iss', `got ${quote(iss)}, expected ${quote(policy.issuers[0])}${slash}`)
  }
  const aud = audience(raw)
  if (![aud].flat().some(value => policy.audiences.includes(value))) {
    throw new ClaimInvalidError('aud', `got ${quote(aud)}, expected one of ${quote(policy.audiences)}`)
  }

  const { clockTolerance } = policy
  const exp = requiredNumber(raw, 'exp')
  if (now >= exp + clockTolerance) throw new TokenExpiredError(`${Math.floor(now - exp)} s ago`)
  const iat = requiredNumber(raw, 'iat')
  for (const claim of ['nbf', 'iat'] as const) {
    const ahead = claim in raw ? requiredNumber(raw, claim) - now : 0
    if (ahead > clockTolerance) throw new TokenNotYetValidError(`${claim} is ${Math.ceil(ahead)} s ahead`)
  }
  return { iss, aud, exp, iat }
}

type Payload = Record<string, unknown>

/** Returns the JSON object of a payload. */
export function parseObject(payload: Uint8Array): Payload {
  let value: unknown
  try {
    value = JSON.parse(decoder.decode(payload))
  } catch (cause) {
    throw new TokenMalformedError('the payload is not JSON', cause)
  }
  if (!isObject(value)) throw new TokenMalformedError('the payload is not a JSON object')
  return value
}

/** True for a JSON object. False for null and for an array. */
export const isObject = (value: unknown): value is Record<string, unknown> =>
  typeof value === 'object' && value !== null && !Array.isArray(value)

/**
 * Refuses an ID token. An ID token may have the issuer, the audience and the key of an access token. Without
 * the `typ` `at+jwt`, only claims such as `nonce` and `scope` show the difference.
 */
function requireAccessToken(raw: Payload) {
  const idToken = ID_TOKEN_CLAIMS.filter(claim => Object.hasOwn(raw, claim))
  if (idToken.length > 0)
    throw new TokenTypeError(`it contains ${idToken.join(', ')}, which only ID tokens contain`)
  const absent = ['scope', 'jti'].filter(claim => typeof raw[claim] !== 'string')
  if (absent.length > 0)
    throw new TokenTypeError(`its header has no typ at+jwt, and ${absent.join(', ')} is missing`)
}

function requireRealm(orgId: string | undefined, realm: string) {
  if (orgId === undefined) throw new ClaimMissingError('org_id')
  if (orgId === realm.replace(/^org_/, '')) return
  throw new ClaimInvalidError(
    'org_id',
    `got ${quote(orgId)}, expected ${quote(realm)} (the realm is the id of an organization, never its slug)`,
  )
}

/** Returns the value of a claim. Refuses a token in which the claim is missing or null. */
export function required(raw: Payload, claim: string): unknown {
  const value = Object.hasOwn(raw, claim) ? raw[claim] : undefined
  if (value === undefined || value === null) throw new ClaimMissingError(claim)
  return value
}

/** Returns the value of a claim. Refuses a token in which the claim is missing, empty or not a string. */
export function requiredString(raw: Payload, claim: string): string {
  const value = required(raw, claim)
  if (typeof value !== 'string' || value === '')
    throw new ClaimInvalidError(claim, 'expected a non-empty string')
  return value
}

/**
 * Returns the value of a claim. Refuses a token in which the claim is missing or not a finite number. JSON
 * can express infinity (`1e999`), and a token with an infinite `exp` would never expire.
 */
function requiredNumber(raw: Payload, claim: string): number {
  const value = required(raw, claim)
  if (typeof value !== 'number' || !Number.isFinite(value)) {
    throw new ClaimInvalidError(claim, `got ${quote(value)}, expected a number of seconds`)
  }
  return value
}

function optionalString(raw: Payload, claim: string): string | undefined {
  const value = raw[claim] ?? undefined
  if (value === undefined || typeof value === 'string') return value
  throw new ClaimInvalidError(claim, 'expected a string')
}

/**
 * Returns the strings of a claim. Returns an empty array when the claim is absent. A single string in place
 * of an array is refused, because `'superadmin'.includes('admin')` is true.
 */
function stringList(raw: Payload, claim: string): readonly string[] {
  const value = raw[claim] ?? []
  if (isStringList(value)) return value
  throw new ClaimInvalidError(claim, 'expected an array of strings')
}

function audience(raw: Payload): string | readonly string[] {
  const value = required(raw, 'aud')
  if (typeof value === 'string' || isStringList(value)) return value
  throw new ClaimInvalidError('aud', 'expected a string or an array of strings')
}

const isStringList = (value: unknown): value is readonly string[] =>
  Array.isArray(value) && value.every(item => typeof item === 'string')

function fullName(raw: Payload): string | undefined {
  const names = [optionalString(raw, 'given_name'), optionalString(raw, 'family_name')].filter(Boolean)
  return names.join(' ') || optionalString(raw, 'preferred_username')
}

const quote = (value: unknown) => JSON.stringify(value)
