import { eq, sql } from 'drizzle-orm'
import type { OrganizationId } from '#src/lib/ids.ts'
import { permissions } from '#src/lib/permission.ts'
import type { SecretHash } from '#src/lib/secrets.ts'
import { preparedForStart, type Queries } from '#src/storage/store.ts'

/*
 * The queries that every start runs. The stores of the resources have similar queries, but importing those
 * stores would take a third of the CPU time of a start.
 */

/** Scopes of the first admin client. */
export const allScopes = [...permissions, 'admin']

/**
 * Name of the server setting with the scopes that existed at the last start. The setting is absent until the
 * first start is complete.
 */
export const KNOWN_SCOPES = 'known_scopes'

const selectSecret = preparedForStart('secret of a client', (q, { clients }) => {
  const { organization_id, type, secret_hash } = clients
  return q
    .select({ organization_id, type, secret_hash })
    .from(clients)
    .where(eq(clients.client_id, sql.placeholder('client_id')))
})

/**
 * Returns the hash of a client's secret. Returns null for a public client and for a client outside the
 * organization `within`; without `within`, for every client. Returns undefined when no client has the id.
 */
export const findSecretHash = async (
  q: Queries,
  client_id: string,
  within?: OrganizationId,
): Promise<SecretHash | null | undefined> => {
  const [found] = await selectSecret(q, { client_id })
  if (!found) return undefined
  return found.type === 'confidential' && found.organization_id === within ? found.secret_hash : null
}

const selectOrganization = preparedForStart('id of an organization', (q, { organizations }) =>
  q
    .select({ id: organizations.id })
    .from(organizations)
    .where(eq(organizations.id, sql.placeholder('id'))),
)

/** True when the organization exists. */
export const hasOrganization = async (q: Queries, id: OrganizationId): Promise<boolean> =>
  (await selectOrganization(q, { id })).length > 0

const rowsOf = {
  logouts: preparedForStart('any logout', (q, t) => q.select({ one: sql`1` }).from(t.logouts).limit(1)),
  webhooks: preparedForStart('any webhook', (q, t) => q.select({ one: sql`1` }).from(t.webhooks).limit(1)),
}

/** True when the named table is not empty. */
export const hasRows = async (q: Queries, name: 'logouts' | 'webhooks'): Promise<boolean> =>
  (await rowsOf[name](q, {})).length > 0
