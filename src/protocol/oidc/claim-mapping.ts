/**
 * The claims that a client adds to its tokens, or that a scope of an API adds to tokens for the API, by name.
 * Each claim has the path of its value. A claim of a client may also name a scope. Such a claim is added only
 * when the scope is granted. A path is `user.FIELD`, `user.attributes.NAME…`, `client.attributes.NAME…`,
 * `groups[].name` or `roles[].name`.
 */
export type ClaimMapping = Readonly<
  Record<string, string | { readonly from: string; readonly scope: string }>
>

/** The values to which paths refer. */
export interface MappingSource {
  readonly user?: Readonly<Record<string, unknown>>
  readonly client: { readonly attributes: Readonly<Record<string, unknown>> }
  readonly groups: readonly string[]
  readonly roles: readonly string[]
}

/** Maximum number of claims in a mapping. Each token request evaluates all claims of the mapping. */
export const MAX_CLAIMS = 20
/**
 * Maximum size of a token's mapped claims, in bytes of JSON. An access token is sent in a header. By default
 * nginx refuses a header of more than 8 KiB, and Node refuses headers of more than 16 KiB in total.
 */
const MAX_CLAIM_BYTES = 4096

const PATH =
  /^(?:user\.(?:username|email|email_verified|first_name|last_name)|(?:user|client)\.attributes(?:\.[A-Za-z_][A-Za-z0-9_-]{0,63}){1,8}|(?:groups|roles)\[\]\.name)$/
const NAME = /^[\x21\x23-\x5b\x5d-\x7e]{1,128}$/

/**
 * Claims that a mapping may not name, because services rely on the meaning that a standard or Gatehouse gives
 * to these names.
 */
const reserved = new Set([
  // https://www.rfc-editor.org/rfc/rfc7519#section-4.1
  ...['iss', 'sub', 'aud', 'exp', 'nbf', 'iat', 'jti'],
  // https://www.rfc-editor.org/rfc/rfc9068#section-2.2
  ...['auth_time', 'acr', 'amr', 'client_id', 'scope', 'entitlements'],
  // https://openid.net/specs/openid-connect-core-1_0.html#IDToken, #StandardClaims and later sections
  ...['nonce', 'azp', 'at_hash', 'c_hash', 'sub_jwk', '_claim_names', '_claim_sources'],
  ...['name', 'given_name', 'family_name', 'middle_name', 'nickname', 'preferred_username', 'profile'],
  ...['picture', 'website', 'email', 'email_verified', 'gender', 'birthdate', 'zoneinfo', 'locale'],
  ...['phone_number', 'phone_number_verified', 'address', 'updated_at'],
  // Claims of Gatehouse, of https://www.rfc-editor.org/rfc/rfc7800, of https://www.rfc-editor.org/rfc/rfc8693
  // and of https://www.rfc-editor.org/rfc/rfc8417
  ...['org_id', 'sid', 'cnf', 'act', 'may_act', 'events', 'toe', 'txn'],
  // https://www.rfc-editor.org/rfc/rfc7662#section-2.2
  ...['active', 'username', 'token_type'],
  '__proto__',
])

/**
 * Claims that come only from memberships, each with its path. Services base access decisions on these claims.
 * No attribute may supply them, because users may edit attributes.
 */
const memberships: Readonly<Record<string, string>> = { groups: 'groups[].name', roles: 'roles[].name' }

/** Returns the reason why a mapping may not take this claim from this path. Returns undefined when it may. */
export const mappingProblem = (name: string, from: string): string | undefined => {
  if (!NAME.test(name))
    return 'The name of a claim has 1 to 128 printable ASCII characters, without spaces, double quotes or backslashes.'
  if (reserved.has(name)) return 'This claim is reserved.'
  if (!PATH.test(from))
    return 'A path is user.attributes.NAME, client.attributes.NAME, user.username, user.email, user.email_verified, user.first_name, user.last_name, groups[].name or roles[].name.'
  const only = Object.hasOwn(memberships, name) ? memberships[name] : undefined
  return only && from !== only ? `The path of this claim must be ${only}.` : undefined
}

/** Returns the name and the path of each claim that the mapping adds for these scopes. */
const given = (mapping: ClaimMapping, scopes: readonly string[]): [name: string, from: string][] =>
  Object.entries(mapping).flatMap(([name, rule]): [string, string][] => {
    if (typeof rule === 'string') return [[name, rule]]
    return scopes.includes(rule.scope) ? [[name, rule.from]] : []
  })

/** True when the mapping reads memberships of this kind for these scopes. */
export const reads = (mapping: ClaimMapping, scopes: readonly string[], kind: 'groups' | 'roles'): boolean =>
  given(mapping, scopes).some(([, from]) => from.startsWith(kind))

const valueAt = (source: MappingSource, path: string): unknown => {
  if (path === 'groups[].name') return source.groups
  if (path === 'roles[].name') return source.roles
  let value: unknown = source
  for (const key of path.split('.')) {
    if (typeof value !== 'object' || value === null || Array.isArray(value) || !Object.hasOwn(value, key))
      return undefined
    value = Reflect.get(value, key)
  }
  return value
}

/** Returns the size of a value as JSON, in bytes. */
const sizeOf = (value: unknown): number => Buffer.byteLength(JSON.stringify(value))

/**
 * Returns the mapped claims. A claim is left out when it has no value, or when the claim and the claims
 * before it would together exceed the maximum size. The token is issued nevertheless, because one long
 * attribute must not prevent a login. `first` are mapped claims that the token already has: they count
 * towards the size, but are not returned again.
 */
export const mappedClaims = (
  mapping: ClaimMapping,
  scopes: readonly string[],
  source: MappingSource,
  first: Readonly<Record<string, unknown>> = {},
): Record<string, unknown> => {
  const claims: Record<string, unknown> = {}
  const mapped = given(mapping, scopes)
  if (mapped.length === 0) return claims
  let left = MAX_CLAIM_BYTES - sizeOf(first)
  // The scopes of an API may map 2,000 claims, all from one attribute of 64 KiB, so each path is measured
  // only once.
  const sizes = new Map<string, number>()
  for (const [name, from] of mapped) {
    const value = valueAt(source, from)
    if (value === undefined || value === null || Object.hasOwn(first, name)) continue
    const size = sizes.get(from) ?? sizeOf(value)
    sizes.set(from, size)
    const added = '{:}'.length + sizeOf(name) + size
    if (added > left) continue
    left -= added
    claims[name] = value
  }
  return claims
}
