import type { UserId } from '#src/lib/ids.ts'
import type { Queries } from '#src/storage/store.ts'
import { effectiveRoles, groupNames } from './effective-roles-store.ts'

/**
 * A user needs one of these roles or groups to use the client. If both lists are empty, every user may use
 * the client, because most applications are for all users of their organization.
 */
interface Admission {
  allowed_roles: readonly string[]
  allowed_groups: readonly string[]
}

const admitsAll = ({ allowed_roles, allowed_groups }: Admission): boolean =>
  allowed_roles.length === 0 && allowed_groups.length === 0

/** True when the client admits the user. Reads nothing when the client admits everyone. */
export const isAdmitted = (q: Queries, client: Admission, user_id: UserId): Promise<boolean> =>
  admitsAll(client)
    ? Promise.resolve(true)
    : admitting(q, [client], user_id).then(clients => clients.length > 0)

/** Returns the clients that admit the user. */
export const admitting = async <Client extends Admission>(
  q: Queries,
  clients: readonly Client[],
  user_id: UserId,
): Promise<readonly Client[]> => {
  if (clients.every(admitsAll)) return clients
  const roles = (await effectiveRoles(q, user_id)).map(({ name }) => name)
  const groups = await groupNames(q, user_id)
  return clients.filter(
    client =>
      admitsAll(client) ||
      client.allowed_roles.some(name => roles.includes(name)) ||
      client.allowed_groups.some(name => groups.includes(name)),
  )
}
