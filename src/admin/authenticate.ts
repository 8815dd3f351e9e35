import type { Caller, Context } from '#src/context.ts'
import { permissionsOf } from '#src/directory/access.ts'
import { type Client, findClient, readClient } from '#src/directory/clients/store.ts'
import { effectiveRoles } from '#src/directory/effective-roles-store.ts'
import { settingsOf } from '#src/directory/organizations/settings.ts'
import { findOrganization, readOrganization } from '#src/directory/organizations/store.ts'
import { CLOCK_SKEW, SECOND } from '#src/lib/duration.ts'
import { CONSOLE_CLIENT, DEFAULT_ORGANIZATION } from '#src/lib/ids.ts'
import { expand, type Permission } from '#src/lib/permission.ts'
import { authenticateBearer, type LiveToken, noLongerGood } from '#src/oauth/bearer.ts'
import { isFresh } from '#src/protocol/oauth/next-step.ts'
import { findHolder } from '#src/sessions/store.ts'
import type { Queries } from '#src/storage/store.ts'

/**
 * Authenticates a request to the admin API. Returns the caller with the caller's current permissions.
 *
 * @throws AppError 401 without a valid token, 400 when a token is sent in two ways
 */
export const authenticate = async (context: Context, request: Request): Promise<Caller> => {
  const token = await authenticateBearer(context, request)
  const { client_id, holder, scopes } = token
  const own = holder
    ? permissionsOf(await context.store.read(q => effectiveRoles(q, holder.id)))
    : permissionsOfClient(token, await findClient(context, client_id), context.clock.now())
  const { organization_id } = holder ?? token
  const caller: Caller = {
    kind: holder ? 'user' : 'client',
    id: holder?.id ?? client_id,
    email: holder?.email ?? null,
    organization_id,
    instance: organization_id === DEFAULT_ORGANIZATION,
    scopes,
    ...rights(own, scopes),
    is_fresh: await isFreshCaller(context, token),
    confirm: async q => {
      if (context.clock.now() >= token.expires_at * SECOND) throw noLongerGood()
      Object.assign(caller, rights(await currentPermissions(q, token, context.clock.now()), scopes))
    },
  }
  return caller
}

/**
 * True when the token may make a call that needs a fresh authentication. A client's own token may always make
 * such a call, because no user can leave it behind in an open browser. A user's token may make such a call
 * for five minutes after its `auth_time`; a later authentication in the browser does not extend this time.
 * The limit applies to tokens of the console, and to tokens of all clients when the organization sets
 * `step_up` to `all`.
 */
const isFreshCaller = async (
  context: Context,
  { holder, claims, client_id }: LiveToken,
): Promise<boolean> => {
  if (!holder) return true
  const organization = await findOrganization(context.store, holder.organization_id)
  const isJudged =
    client_id === CONSOLE_CLIENT || (organization && settingsOf(organization).step_up === 'all')
  const auth_time = typeof claims.auth_time === 'number' ? claims.auth_time * SECOND : 0
  return !isJudged || isFresh({ auth_time }, context.clock.now())
}

/**
 * Splits the caller's permissions in two: `permissions` are named by the token's scopes, `withheld` are not.
 */
const rights = (own: Set<Permission>, scopes: readonly string[]) => {
  const named = expand(scopes)
  return { permissions: own.intersection(named), withheld: own.difference(named) }
}

/**
 * Returns the permissions of a client's own token. A token has no permissions when its client was deleted.
 * The same applies when the client was created after the token was issued, because the token then belonged to
 * an earlier client with the same id. A `created_at` in the future was stored before the clock was set back.
 * Such a time does not show whether the client is older than the token, so it is ignored.
 */
const permissionsOfClient = (
  { issued_at }: LiveToken,
  client: Client | undefined,
  now: number,
): Set<Permission> => {
  if (!client) return new Set()
  const { created_at, scopes } = client
  return expand(created_at > now + CLOCK_SKEW || Math.floor(created_at / SECOND) <= issued_at ? scopes : [])
}

/**
 * Reads the caller's permissions from the database, with two lookups by key that are sent together. The cache
 * is not used, because it may still contain permissions that were just withdrawn.
 */
const currentPermissions = async (q: Queries, token: LiveToken, now: number): Promise<Set<Permission>> => {
  const { client_id, organization_id, user } = token
  if (user) {
    const [holder, roles] = await Promise.all([findHolder(q, user), effectiveRoles(q, user.user_id)])
    if (!holder) throw noLongerGood()
    return permissionsOf(roles)
  }
  const [organization, client] = await Promise.all([
    readOrganization(q, organization_id),
    readClient(q, client_id),
  ])
  if (!organization) throw noLongerGood()
  return permissionsOfClient(token, client, now)
}
