import { and, eq, sql } from 'drizzle-orm'
import { beyond, byCreation, isWithin, type Range } from '#src/directory/store.ts'
import { COUNT_LIMIT } from '#src/http/list.ts'
import type { OrganizationId } from '#src/lib/ids.ts'
import type { SecretHash } from '#src/lib/secrets.ts'
import { cached } from '#src/storage/cache.ts'
import { beginPurge } from '#src/storage/purges.ts'
import { prepared, type Queries, type Store, type Transaction } from '#src/storage/store.ts'
import type { Tables } from '#src/storage/tables.ts'

export type Client = Tables['clients']['$inferSelect']

const { placeholder } = sql

const select = prepared((q, { clients }) =>
  q
    .select()
    .from(clients)
    .where(and(eq(clients.client_id, placeholder('client_id')), isWithin(clients.organization_id))),
)

/** Reads a client, limited to the organization if present. */
export const readClient = async (
  q: Queries,
  client_id: string,
  within?: OrganizationId,
): Promise<Client | undefined> => (await select(q, { client_id, within: within ?? null }))[0]

/** Returns a client by id, cached until a commit changes clients. */
export const findClient = cached('clients', (q, client_id) => readClient(q, client_id))

/** True when the client has registered this origin. */
export const originOf = async (store: Store, client_id: string, origin: string): Promise<boolean> =>
  (await findClient(store, client_id))?.web_origins.includes(origin) ?? false

/** Rejects with a unique violation when the client_id is taken. */
export const insertClient = async (tx: Transaction, client: Client): Promise<void> => {
  await tx.insert(tx.tables.clients).values(client)
  tx.changed('clients')
}

export const saveClient = async (tx: Transaction, { client_id, ...columns }: Client): Promise<void> => {
  const { clients } = tx.tables
  await tx.update(clients).set(columns).where(eq(clients.client_id, client_id))
  tx.changed('clients')
}

/** Replaces the hash of a client's secret. */
export const saveSecret = async (
  tx: Transaction,
  client_id: string,
  secret: { secret_hash: SecretHash; updated_at: number },
): Promise<void> => {
  const { clients } = tx.tables
  await tx.update(clients).set(secret).where(eq(clients.client_id, client_id))
  tx.changed('clients')
}

/** Removes a client. Its dependent rows follow in batches (`purges`); until then its id cannot be reused. */
export const removeClient = async (tx: Transaction, client_id: string, now: number): Promise<void> => {
  const { clients } = tx.tables
  await tx.delete(clients).where(eq(clients.client_id, client_id))
  await beginPurge(tx, 'client', client_id, now)
  tx.changed('clients')
}

/** Filters of the list; absent ones match all clients. */
export interface ClientFilter {
  organization_id: OrganizationId | undefined
  type: Client['type'] | undefined
}

const matching = ({ clients }: Tables, { organization_id, type }: ClientFilter) =>
  and(organization_id && eq(clients.organization_id, organization_id), type && eq(clients.type, type))

export const listClients = (q: Queries, filter: ClientFilter, range: Range): Promise<Client[]> => {
  const { clients } = q.tables
  const { created_at, client_id } = clients
  return q
    .select()
    .from(clients)
    .where(and(matching(q.tables, filter), beyond(range, created_at, client_id)))
    .orderBy(...byCreation(range.order, created_at, client_id))
    .limit(range.limit)
}

export const countClients = (q: Queries, filter: ClientFilter): Promise<number> => {
  const { clients } = q.tables
  const found = q
    .select({ client_id: clients.client_id })
    .from(clients)
    .where(matching(q.tables, filter))
    .limit(COUNT_LIMIT + 1)
  return q.$count(found.as('found'))
}
