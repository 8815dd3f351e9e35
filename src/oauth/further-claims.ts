import type { Api } from '#src/directory/apis/store.ts'
import type { Client } from '#src/directory/clients/store.ts'
import { effectiveRoles, groupNames } from '#src/directory/effective-roles-store.ts'
import { findUser } from '#src/directory/users/store.ts'
import type { UserId } from '#src/lib/ids.ts'
import { type ClaimMapping, mappedClaims, reads } from '#src/protocol/oidc/claim-mapping.ts'
import type { Queries } from '#src/storage/store.ts'

/** Claims that a token can contain in addition to the claims that every token contains. */
export interface FurtherClaims {
  /** Claims of the client's mapping, for every token and userinfo. */
  mapped: Record<string, unknown>
  /** Claims of the scopes `groups` and `roles`, for ID tokens and userinfo. */
  memberships: Record<string, unknown>
  /**
   * Claims that the scopes of an API add to access tokens for this API. Claims of the client's mapping take
   * precedence, because that mapping is specific to the client.
   */
  ofApi: Record<string, unknown>
}

const NONE: FurtherClaims = { mapped: {}, memberships: {}, ofApi: {} }

const isEmpty = (mapping: ClaimMapping = {}): boolean => {
  for (const _ in mapping) return false
  return true
}

/** Returns the claim mapping of an API for these scopes. */
export const mappingOfApi = (api: Pick<Api, 'scopes'> | undefined, scopes: readonly string[]): ClaimMapping =>
  Object.assign({}, ...(api?.scopes ?? []).map(({ name, claims }) => (scopes.includes(name) ? claims : {})))

/**
 * `roles` are the user's effective roles, if the caller has read them. `api` is the API that the token is
 * for.
 */
interface Known {
  roles?: readonly { name: string }[]
  api?: Pick<Api, 'scopes'> | undefined
}

/**
 * Returns the claims that the scopes, the client's mapping and the API add for a user. Reads the store only
 * when a scope or a mapping asks for such a claim. Most tokens need no read.
 */
export const furtherClaims = (
  q: Queries,
  client: Pick<Client, 'claims' | 'attributes'> | undefined,
  user_id: UserId,
  scopes: readonly string[],
  known: Known = {},
): Promise<FurtherClaims> =>
  asksMembership(scopes) || known.api || !isEmpty(client?.claims)
    ? readClaims(q, client, user_id, scopes, known)
    : Promise.resolve(NONE)

const asksMembership = (scopes: readonly string[]): boolean =>
  scopes.includes('groups') || scopes.includes('roles')

const readClaims = async (
  q: Queries,
  client: Pick<Client, 'claims' | 'attributes'> | undefined,
  user_id: UserId,
  scopes: readonly string[],
  { roles, api }: Known,
): Promise<FurtherClaims> => {
  const mapping = client?.claims ?? {}
  const apiMapping = mappingOfApi(api, scopes)
  const isMapped = Object.keys(mapping).length > 0 || Object.keys(apiMapping).length > 0
  const asks = (kind: 'groups' | 'roles') =>
    scopes.includes(kind) || reads(mapping, scopes, kind) || reads(apiMapping, scopes, kind)
  if (!isMapped && !asksMembership(scopes)) return NONE
  const groups = asks('groups') ? await groupNames(q, user_id) : []
  const held = asks('roles') ? (roles ?? (await effectiveRoles(q, user_id))).map(({ name }) => name) : []
  const user = isMapped ? await findUser(q, undefined, user_id) : undefined
  const source = {
    ...(user && { user }),
    client: { attributes: client?.attributes ?? {} },
    groups,
    roles: held,
  }
  const mapped = mappedClaims(mapping, scopes, source)
  return {
    mapped,
    ofApi: mappedClaims(apiMapping, scopes, source, mapped),
    memberships: {
      ...(scopes.includes('groups') && { groups }),
      ...(scopes.includes('roles') && { roles: held }),
    },
  }
}
