import type { OrganizationId } from '#src/lib/ids.ts'
import { permissions } from '#src/lib/permission.ts'
import type { SecretHash } from '#src/lib/secrets.ts'
import type { Queries } from '#src/storage/store.ts'

/*
 * The queries of every start. The stores of the resources have similar queries, but importing those files
 * takes a third of the CPU time of a start.
 */

/** Scopes of the first admin client. */
export const allScopes = [...permissions, 'admin']

/** Server setting: the scopes that existed at the last start. Its absence marks the first start. */
export const KNOWN_SCOPES = 'known_scopes'

/**
 * Returns the hash of a client's secret. It is null for a client that is public or of another organization,
 * and undefined when no client has the id.
 */
export const findSecretHash = async (
  q: Queries,
  client_id: string,
  within?: OrganizationId,
): Promise<SecretHash | null | undefined> => {
  const [found] = await q.rows(
    'SELECT organization_id, type, secret_hash FROM clients WHERE client_id = $1',
    client_id,
  )
  if (!found) return undefined
  const [organization_id, type, secret_hash] = found as [OrganizationId, string, SecretHash | null]
  return type === 'confidential' && organization_id === within ? secret_hash : null
}

/** True when the organization has a row. */
export const hasOrganization = async (q: Queries, id: OrganizationId): Promise<boolean> =>
  (await q.rows('SELECT 1 FROM organizations WHERE id = $1', id)).length > 0

/** True when a table has a row. */
export const hasRows = async (q: Queries, name: 'logouts' | 'webhooks'): Promise<boolean> =>
  (await q.rows(`SELECT 1 FROM ${name} LIMIT 1`)).length > 0
