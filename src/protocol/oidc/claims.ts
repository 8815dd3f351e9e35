import { hash } from 'node:crypto'
import { bareId } from '#src/lib/ids.ts'
import { formatScope } from '#src/protocol/oauth/scope.ts'
import { hashNameOf, type SigningAlg } from './signing-algs.ts'

/** User fields contained in tokens. */
export type ClaimsUser = {
  readonly id: string
  readonly organization_id: string
  readonly username: string
  readonly email: string
  readonly email_verified: boolean
  readonly first_name: string
  readonly last_name: string
}

/** The times are in whole seconds since the epoch. */
type Issued = { readonly issuer: string; readonly issued_at: number; readonly expires_at: number }
type IssuedAccess = Issued & {
  /** Unique for each token. */
  readonly jti: string
  readonly client_id: string
  /** Identifier of the API for which the token is issued. The default is the `client_id`. */
  readonly audience?: string | undefined
  readonly scopes: readonly string[]
}

/**
 * Claims about the user in each access token and ID token of a user. A missing name is an empty string,
 * because applications rely on the presence of these claims.
 */
const identity = (user: ClaimsUser) => ({
  org_id: bareId(user.organization_id),
  preferred_username: user.username,
  email: user.email,
  email_verified: user.email_verified,
  given_name: user.first_name,
  family_name: user.last_name,
})

const access = (token: IssuedAccess, sub: string) => ({
  iss: token.issuer,
  sub,
  aud: token.audience ?? token.client_id,
  exp: token.expires_at,
  iat: token.issued_at,
  nbf: token.issued_at,
  jti: token.jti,
  client_id: token.client_id,
  scope: formatScope(token.scopes),
})

/**
 * Returns the claims of a user's access token (https://www.rfc-editor.org/rfc/rfc9068). The claims let a
 * service identify the user without a call to this server. `sub` is the same at each client: the id that the
 * user has in the admin API and the audit log, without its prefix. `roles` are the effective roles, direct
 * and inherited.
 */
export const accessTokenClaims = (
  token: IssuedAccess & {
    readonly user: ClaimsUser
    readonly roles: readonly string[]
    /** Mapped claims. A mapped claim never replaces another claim. */
    readonly further?: Readonly<Record<string, unknown>>
    readonly session_id: string
    /** Seconds. */
    readonly auth_time?: number | undefined
  },
) => ({
  ...token.further,
  ...access(token, bareId(token.user.id)),
  ...(token.auth_time !== undefined && { auth_time: token.auth_time }),
  sid: bareId(token.session_id),
  ...identity(token.user),
  roles: token.roles,
})

/**
 * Returns the claims of a client's own access token (client credentials). `sub` is the client_id, and
 * `org_id` is the client's organization. The token has no claims about a user or session. It has no roles,
 * because a client's rights are its scopes.
 */
export const clientTokenClaims = (
  token: IssuedAccess & {
    readonly organization_id: string
    readonly further?: Readonly<Record<string, unknown>>
  },
) => ({
  ...token.further,
  ...access(token, token.client_id),
  org_id: bareId(token.organization_id),
})

/**
 * Returns the claims of an ID token for `client_id`. `alg` is the signature algorithm of the ID token.
 * `auth_time` is in seconds. Each ID token has `auth_time`, because applications need it for step-up.
 * Applications would otherwise have to repeat the login with `max_age`.
 */
export const idTokenClaims = (
  token: Issued & {
    readonly client_id: string
    readonly user: ClaimsUser
    readonly session_id: string
    readonly auth_time: number
    readonly acr: string
    readonly amr: readonly string[]
    readonly nonce: string | undefined
    readonly access_token: string
    readonly alg: SigningAlg
    /** Mapped claims and memberships. */
    readonly further?: Readonly<Record<string, unknown>>
  },
) => ({
  ...token.further,
  iss: token.issuer,
  sub: bareId(token.user.id),
  aud: token.client_id,
  azp: token.client_id,
  exp: token.expires_at,
  iat: token.issued_at,
  auth_time: token.auth_time,
  ...(token.nonce === undefined ? {} : { nonce: token.nonce }),
  acr: token.acr,
  amr: token.amr,
  at_hash: accessTokenHash(token.access_token, token.alg),
  sid: bareId(token.session_id),
  ...identity(token.user),
})

/**
 * Returns `at_hash`: the left half of the hash of the access token, made with the hash function of the ID
 * token's algorithm. https://openid.net/specs/openid-connect-core-1_0.html#CodeIDToken
 */
export const accessTokenHash = (accessToken: string, alg: SigningAlg): string => {
  const digest = hash(hashNameOf(alg), accessToken, 'buffer')
  return digest.toString('base64url', 0, digest.length / 2)
}

const isText = (value: unknown): value is string => typeof value === 'string' && value !== ''

/** Returns the name and value of each named member whose value is a non-empty string. */
const texts = (from: Readonly<Record<string, unknown>>, names: readonly string[]) =>
  names.flatMap(name => (Object.hasOwn(from, name) && isText(from[name]) ? [[name, from[name]]] : []))

/** Claims of the scope `profile` whose values come from user attributes of the same names. */
export const profileAttributes = [
  ...['middle_name', 'nickname', 'profile', 'picture', 'website', 'gender', 'birthdate', 'zoneinfo'],
  'locale',
]
const addressMembers = ['formatted', 'street_address', 'locality', 'region', 'postal_code', 'country']

const phoneOf = (attributes: Readonly<Record<string, unknown>>) => {
  const [phone] = texts(attributes, ['phone_number'])
  return phone
    ? { phone_number: phone[1], phone_number_verified: attributes.phone_number_verified === true }
    : {}
}

const addressOf = ({ address }: Readonly<Record<string, unknown>>) => {
  if (isText(address)) return { address: { formatted: address } }
  const members = typeof address === 'object' && address !== null ? texts({ ...address }, addressMembers) : []
  return members.length > 0 ? { address: Object.fromEntries(members) } : {}
}

/** Claims of the client's mapping, and of the scopes `groups` and `roles`. */
type Further = Readonly<Record<'mapped' | 'memberships', Readonly<Record<string, unknown>>>>
const NO_FURTHER: Further = { mapped: {}, memberships: {} }

/**
 * Returns the userinfo answer for the scopes. `updated_at` is in seconds. Claims without a value are omitted.
 * https://openid.net/specs/openid-connect-core-1_0.html#ScopeClaims
 */
export const userinfoClaims = (
  user: ClaimsUser & {
    readonly updated_at: number
    readonly attributes: Readonly<Record<string, unknown>>
    /**
     * URL of the uploaded picture. It takes precedence over the attribute `picture`, so that applications
     * show the same picture as the account page.
     */
    readonly picture?: string | null
  },
  scopes: readonly string[],
  { mapped, memberships }: Further = NO_FURTHER,
): Readonly<Record<string, unknown>> => {
  const { attributes } = user
  const hasAttributes = Object.keys(attributes).length > 0
  const profile = () => ({
    ...(hasAttributes && Object.fromEntries(texts(attributes, profileAttributes))),
    ...(user.picture && { picture: user.picture }),
    name: `${user.first_name} ${user.last_name}`.trim(),
    preferred_username: user.username,
    given_name: user.first_name,
    family_name: user.last_name,
    updated_at: user.updated_at,
  })
  const email = { email: user.email, email_verified: user.email_verified }
  const claims = {
    ...mapped,
    ...memberships,
    sub: bareId(user.id),
    ...(scopes.includes('profile') ? profile() : {}),
    ...(scopes.includes('email') ? email : {}),
    ...(scopes.includes('phone') ? phoneOf(attributes) : {}),
    ...(scopes.includes('address') ? addressOf(attributes) : {}),
  }
  return Object.fromEntries(Object.entries(claims).filter(([, value]) => value !== ''))
}
