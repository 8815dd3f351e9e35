import { and, eq, sql } from 'drizzle-orm'
import { DEFAULT_ORGANIZATION, type OrganizationId } from '#src/lib/ids.ts'
import { serves } from '#src/protocol/oauth/authorize-request.ts'
import type { Queries } from '#src/storage/store.ts'
import { STARTABLE } from '#src/storage/tables.ts'
import type { Client } from './store.ts'

/**
 * Maximum number of clients of one organization on the page that lists applications to start. The page has no
 * search.
 */
const MAX_STARTABLE = 200

/**
 * Returns the clients that users of the organization can start and sign in to. The organization's own clients
 * come first. The clients of the default organization follow. Each of these two parts is sorted by name, and
 * has at most `MAX_STARTABLE` clients.
 */
export const listStartable = async (q: Queries, organization_id: OrganizationId): Promise<Client[]> => {
  const { clients: t } = q.tables
  const of = (owner: OrganizationId) =>
    q
      .select()
      .from(t)
      .where(and(eq(t.organization_id, owner), sql.raw(STARTABLE)))
      .orderBy(t.name, t.client_id)
      .limit(MAX_STARTABLE)
  const owners = new Set([organization_id, DEFAULT_ORGANIZATION])
  const found = await Promise.all([...owners].map(of))
  return found.flat().filter(client => serves(client, organization_id))
}
