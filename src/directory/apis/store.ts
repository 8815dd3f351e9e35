import { and, eq, inArray, like, or, sql } from 'drizzle-orm'
import { beyond, byCreation, isWithin, type Range } from '#src/directory/store.ts'
import type { OrganizationId } from '#src/lib/ids.ts'
import { resourceKey } from '#src/protocol/oauth/resource.ts'
import { cached } from '#src/storage/cache.ts'
import { COUNT_LIMIT, countUpTo } from '#src/storage/counts.ts'
import { prepared, type Queries, type Transaction } from '#src/storage/store.ts'
import type { Tables } from '#src/storage/tables.ts'

export type Api = Tables['apis']['$inferSelect']

/** The columns that name an API in events. */
export type NamedApi = Pick<Api, 'id' | 'organization_id' | 'identifier' | 'name'>

const { placeholder } = sql

const selectByKey = prepared((q, { apis }) =>
  q
    .select()
    .from(apis)
    .where(eq(apis.identifier_key, placeholder('key'))),
)

/**
 * Reads the API with this identifier. A trailing slash makes no difference, because URL libraries add one.
 */
export const readApi = async (q: Queries, identifier: string): Promise<Api | undefined> =>
  (await selectByKey(q, { key: resourceKey(identifier) }))[0]

/** Does what {@link readApi} does, and caches the result until a commit changes APIs. */
export const findApi = cached('apis', readApi)

const selectById = prepared((q, { apis }) =>
  q
    .select()
    .from(apis)
    .where(and(eq(apis.id, placeholder('id')), isWithin(apis.organization_id))),
)

/** Returns an API by id. With `within`, the API must belong to that organization. */
export const findApiById = async (
  q: Queries,
  id: string,
  within?: OrganizationId,
): Promise<Api | undefined> => (await selectById(q, { id, within: within ?? null }))[0]

/** Stores a new API. Rejects with a unique violation when the identifier is taken. */
export const insertApi = async (tx: Transaction, api: Api): Promise<void> => {
  await tx.insert(tx.tables.apis).values(api)
  tx.changed('apis')
}

/** Stores the columns of an API. Rejects with a unique violation when the identifier is taken. */
export const saveApi = async (tx: Transaction, { id, ...columns }: Api): Promise<void> => {
  const { apis } = tx.tables
  await tx.update(apis).set(columns).where(eq(apis.id, id))
  tx.changed('apis')
}

/** Removes an API. */
export const removeApi = async (tx: Transaction, { id }: Pick<Api, 'id'>): Promise<void> => {
  const { apis } = tx.tables
  await tx.delete(apis).where(eq(apis.id, id))
  tx.changed('apis')
}

/**
 * Removes a deleted client from the APIs that name it, because a later client may get the same id. Only APIs
 * of the client's organization can name it. Returns the changed APIs with the names of the changed fields.
 */
export const forgetClient = async (
  tx: Transaction,
  { client_id, organization_id }: { client_id: string; organization_id: OrganizationId },
  updated_at: number,
): Promise<{ api: NamedApi; fields: string[] }[]> => {
  const { apis } = tx.tables
  const named = `%${JSON.stringify(client_id)}%`
  const found = await tx
    .select({
      id: apis.id,
      organization_id: apis.organization_id,
      identifier: apis.identifier,
      name: apis.name,
      clients: apis.clients,
      served_by: apis.served_by,
    })
    .from(apis)
    .where(
      and(
        eq(apis.organization_id, organization_id),
        or(like(apis.clients, named), like(apis.served_by, named)),
      ),
    )
  const changed = []
  for (const api of found) {
    const clients = api.clients.filter(each => each.client_id !== client_id)
    const served_by = api.served_by.filter(each => each !== client_id)
    const fields = [
      ...(clients.length < api.clients.length ? ['clients'] : []),
      ...(served_by.length < api.served_by.length ? ['served_by'] : []),
    ]
    // `like` also finds an API that does not name the client, for example if a scope equals its id.
    if (fields.length === 0) continue
    // The update sets no other columns, because SQLite would rewrite the indexes of these columns.
    await tx.update(apis).set({ clients, served_by, updated_at }).where(eq(apis.id, api.id))
    changed.push({ api, fields })
  }
  if (changed.length > 0) tx.changed('apis')
  return changed
}

/** Returns the ids in `client_ids` that belong to a client of the organization. */
export const clientsAmong = async (
  q: Queries,
  client_ids: string[],
  organization_id: OrganizationId,
): Promise<ReadonlySet<string>> => {
  const { clients } = q.tables
  const rows = await q
    .select({ id: clients.client_id })
    .from(clients)
    .where(and(inArray(clients.client_id, client_ids), eq(clients.organization_id, organization_id)))
  return new Set(rows.map(({ id }) => id))
}

/** True when a client of any organization, or a dynamic client, has one of these ids. */
export const haveClient = async (q: Queries, client_ids: string[]): Promise<boolean> => {
  for (const table of [q.tables.clients, q.tables.dynamic_clients])
    if ((await q.$count(table, inArray(table.client_id, client_ids))) > 0) return true
  return false
}

const matching = ({ apis }: Tables, organization_id: OrganizationId | undefined) =>
  organization_id && eq(apis.organization_id, organization_id)

/** Returns a page of APIs, in the order of creation. */
export const listApis = (
  q: Queries,
  organization_id: OrganizationId | undefined,
  range: Range,
): Promise<Api[]> => {
  const { apis } = q.tables
  return q
    .select()
    .from(apis)
    .where(and(matching(q.tables, organization_id), beyond(range, apis.created_at, apis.id)))
    .orderBy(...byCreation(range.order, apis.created_at, apis.id))
    .limit(range.limit)
}

/** Counts the APIs of the list. The result 10,001 means more than 10,000. */
export const countApis = (q: Queries, organization_id: OrganizationId | undefined): Promise<number> => {
  const { apis } = q.tables
  const found = q.select({ id: apis.id }).from(apis).where(matching(q.tables, organization_id))
  return countUpTo(q, found, COUNT_LIMIT + 1)
}
