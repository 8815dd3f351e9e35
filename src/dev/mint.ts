import { hash } from 'node:crypto'
import type { Issuer } from '#src/context.ts'
import { type Client, findClient } from '#src/directory/clients/store.ts'
import { effectiveRoles } from '#src/directory/effective-roles-store.ts'
import { readOrganizationBySlug } from '#src/directory/organizations/store.ts'
import { findUser, findUserForLogin, type UserRow } from '#src/directory/users/store.ts'
import { invalid } from '#src/lib/app-error.ts'
import type { ClientInfo } from '#src/lib/client-info.ts'
import { bareId, type OrganizationId } from '#src/lib/ids.ts'
import { issuePersonalToken } from '#src/oauth/personal-token.ts'
import { clientTokenClaims } from '#src/protocol/oidc/claims.ts'
import type { BadToken, Header } from '#src/resource-server/bad-tokens.ts'
import { issueToken } from '#src/tokens/issue.ts'
import { openPair } from '#src/tokens/manual-keys.ts'
import { makeKeyPair, signWith } from '#src/tokens/signature.ts'
import type { Mint } from './mint-schema.ts'

type Claims = Record<string, unknown>

/** A minted token and its claims. */
export interface Minted {
  token: string
  claims: Claims
  /** Seconds. */
  expires_in: number
}

const partOf = (token: string, part: 0 | 1): Claims =>
  JSON.parse(Buffer.from(token.split('.')[part] ?? '', 'base64url').toString())

/**
 * Mints a token with any claims and signs it with the server's key. If the user and the client exist, an
 * access token gets a session, so that it can be revoked and introspected. With `bad`, the token is then
 * replaced by an invalid one.
 *
 * @throws AppError 422 for an unknown organization and for a disabled user
 */
export const mint = async (
  context: Issuer,
  wanted: Mint,
  { client_id: usual, client_info }: { client_id: string; client_info: ClientInfo },
): Promise<Minted> => {
  const client_id = wanted.client_id ?? usual
  const client = await findClient(context, client_id)
  const home = await context.store.read(q => readOrganizationBySlug(q, wanted.organization))
  if (!home)
    throw invalid({
      field: 'organization',
      code: 'unknown_organization',
      message: 'The slug of an organization of this server.',
    })
  const user = wanted.user === undefined ? undefined : await findSeeded(context, home.id, wanted.user)
  if (user?.enabled === false)
    throw invalid({
      field: 'user',
      code: 'not_allowed',
      message: 'The user is disabled. Mint the token first, then disable the user.',
    })
  const scopes = wanted.scope?.split(' ').filter(Boolean) ?? client?.scopes ?? ['openid', 'profile', 'email']
  const lifetime = wanted.expires_in ?? client?.access_token_ttl ?? 3600
  const person = wanted.user === undefined ? {} : await identity(context, user, wanted.user)
  const change = (claims: Claims): Claims => {
    const roles = wanted.roles && { roles: wanted.roles }
    const shaped = wanted.kind === 'id_token' ? asIdToken(claims) : { ...claims, ...roles }
    const all = { ...shaped, ...wanted.claims }
    return Object.fromEntries(Object.entries(all).filter(([, value]) => value !== null))
  }
  const { token, expires_in } =
    user && client && wanted.kind === 'access_token'
      ? await issuePersonalToken(context, {
          user,
          client,
          scopes,
          lifetime,
          client_info,
          grant_type: 'mint',
          change,
        })
      : await issueToken(context, {
          ...formOf(context, client, wanted.kind),
          lifetime,
          claims: issued => {
            const owner = wanted.user === undefined ? client : user
            const organization_id = owner?.organization_id ?? home.id
            return change({
              ...clientTokenClaims({ ...issued, client_id, organization_id, scopes }),
              ...person,
            })
          },
        })
  const made = wanted.bad ? await makeBad(context, wanted.bad, token) : token
  return { token: made, claims: partOf(made, 1), expires_in }
}

const findSeeded = (context: Issuer, home: OrganizationId, name: string): Promise<UserRow | undefined> =>
  context.store.read(q =>
    name.startsWith('usr_') ? findUser(q, undefined, name) : findUserForLogin(q, home, name),
  )

const formOf = ({ config }: Issuer, client: Client | undefined, kind: Mint['kind']) =>
  kind === 'id_token'
    ? {
        alg: client?.id_token_signed_response_alg ?? config.id_token_alg,
        typ: 'JWT' as const,
      }
    : {
        alg: client?.access_token_signed_response_alg ?? config.access_token_alg,
        typ: client?.access_token_typ ?? ('at+jwt' as const),
      }

/** Returns claims of an existing or invented user. An invented user's claims depend only on the name. */
const identity = async (context: Issuer, user: UserRow | undefined, name: string): Promise<Claims> => {
  const roles = user && (await context.store.read(q => effectiveRoles(q, user.id)))
  const digest = hash('sha256', name)
  const sub = user
    ? bareId(user.id)
    : `${digest.slice(0, 8)}-${digest.slice(8, 12)}-8${digest.slice(13, 16)}-8${digest.slice(17, 20)}-${digest.slice(20, 32)}`
  return {
    sub,
    preferred_username: user?.username ?? name,
    email: user?.email ?? (name.includes('@') ? name : `${name}@example.com`),
    email_verified: user?.email_verified ?? true,
    given_name: user?.first_name ?? name,
    family_name: user?.last_name ?? '',
    roles: roles?.map(role => role.name) ?? ['user'],
  }
}

const asIdToken = ({ scope: _, jti: __, nbf: ___, roles: ____, client_id, ...claims }: Claims): Claims => ({
  azp: client_id,
  auth_time: claims.iat,
  acr: '1',
  amr: ['pwd'],
  ...claims,
})

/** Returns the token with the named fault and no other fault. */
const makeBad = async (context: Issuer, kind: BadToken, good: string): Promise<string> => {
  const { badToken } = await import('#src/resource-server/bad-tokens.ts')
  const header = partOf(good, 0) as Header
  const { alg, privateKey, publicKey } = await openPair(context, String(header.kid))
  // The parts are encoded without jose, because jose refuses most of the invalid tokens.
  const encode = (part: unknown) => Buffer.from(JSON.stringify(part)).toString('base64url')
  const sign = (key: typeof privateKey, head: Header, claims: Claims): string => {
    const input = `${encode(head)}.${encode(claims)}`
    return `${input}.${signWith(key, alg, input)}`
  }
  return badToken(kind, {
    header,
    claims: partOf(good, 1),
    publicKey: publicKey.export({ format: 'pem', type: 'spki' }).toString(),
    sign: async (head, claims) => sign(privateKey, head, claims),
    signElsewhere: async (head, claims) => sign((await makeKeyPair(alg)).privateKey, head, claims),
  })
}
