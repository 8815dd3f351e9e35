import type { Caller, Context } from '#src/context.ts'
import { effectiveRoles, permissionsOf } from '#src/directory/access.ts'
import { findClient } from '#src/directory/clients/store.ts'
import { SECOND } from '#src/lib/duration.ts'
import { DEFAULT_ORGANIZATION } from '#src/lib/ids.ts'
import { expand, type Permission } from '#src/lib/permission.ts'
import { authenticateBearer, type LiveToken } from '#src/oauth/bearer.ts'
import type { Holder } from '#src/sessions/store.ts'

/** Who calls the admin API, with the rights of this moment. 401 without a good token, 400 for two. */
export const authenticate = async (context: Context, request: Request): Promise<Caller> => {
  const token = await authenticateBearer(context, request)
  return token.holder ? userCaller(context, token, token.holder) : clientCaller(context, token)
}

/** The rights that `own` and the token's scopes have in common. */
const rights = (own: Set<Permission>, scopes: readonly string[]) => {
  const named = expand(scopes)
  return { permissions: own.intersection(named), withheld: own.difference(named) }
}

/** The permissions of the user's roles, as far as the token's scopes name them. */
const userCaller = async (context: Context, { scopes }: LiveToken, user: Holder): Promise<Caller> => {
  const roles = await context.store.read(q => effectiveRoles(q, user.id))
  return {
    kind: 'user',
    id: user.id,
    email: user.email,
    organization_id: user.organization_id,
    instance: user.organization_id === DEFAULT_ORGANIZATION,
    scopes,
    ...rights(permissionsOf(roles), scopes),
  }
}

/**
 * The permissions among the granted scopes that the client still has: none once it is deleted, or when a client of this name
 * was made after the token.
 */
const clientCaller = async (context: Context, token: LiveToken): Promise<Caller> => {
  const { client_id, organization_id, scopes, issued_at } = token
  const client = await findClient(context.store, client_id)
  const isSame = client && Math.floor(client.created_at / SECOND) <= issued_at
  return {
    kind: 'client',
    id: client_id,
    email: null,
    organization_id,
    instance: organization_id === DEFAULT_ORGANIZATION,
    scopes,
    ...rights(expand(isSame ? client.scopes : []), scopes),
  }
}
