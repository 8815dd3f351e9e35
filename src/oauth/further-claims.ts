import type { Client } from '#src/directory/clients/store.ts'
import { effectiveRoles, groupNames } from '#src/directory/store.ts'
import { findUser } from '#src/directory/users/store.ts'
import type { UserId } from '#src/lib/ids.ts'
import { mappedClaims, reads } from '#src/protocol/oidc/claim-mapping.ts'
import type { Queries } from '#src/storage/store.ts'

/** Claims besides those that each token has. */
export interface FurtherClaims {
  /** Mapped by the client, in each token and userinfo. */
  mapped: Record<string, unknown>
  /** Given by the scopes `groups` and `roles`, in ID tokens and userinfo. */
  memberships: Record<string, unknown>
}

const NONE: FurtherClaims = { mapped: {}, memberships: {} }

/**
 * Returns the claims that scopes and the client's mapping add for a user. Without such scopes and without a
 * mapping it reads nothing.
 *
 * @param roles the effective roles, when they are known
 */
export const furtherClaims = async (
  q: Queries,
  client: Pick<Client, 'claims' | 'attributes'> | undefined,
  user_id: UserId,
  scopes: readonly string[],
  roles?: readonly { name: string }[],
): Promise<FurtherClaims> => {
  const mapping = client?.claims ?? {}
  const isMapped = Object.keys(mapping).length > 0
  const asks = (kind: 'groups' | 'roles') => scopes.includes(kind) || reads(mapping, scopes, kind)
  if (!isMapped && !scopes.includes('groups') && !scopes.includes('roles')) return NONE
  const groups = asks('groups') ? await groupNames(q, user_id) : []
  const held = asks('roles') ? (roles ?? (await effectiveRoles(q, user_id))).map(({ name }) => name) : []
  const user = isMapped ? await findUser(q, undefined, user_id) : undefined
  const source = {
    ...(user && { user }),
    client: { attributes: client?.attributes ?? {} },
    groups,
    roles: held,
  }
  return {
    mapped: mappedClaims(mapping, scopes, source),
    memberships: {
      ...(scopes.includes('groups') && { groups }),
      ...(scopes.includes('roles') && { roles: held }),
    },
  }
}
