import { and, eq, like, notLike, or, sql } from 'drizzle-orm'
import type { Config } from '#src/config.ts'
import type { Core } from '#src/context.ts'
import { readOrganization } from '#src/directory/organizations/store.ts'
import {
  beyond,
  byCreation,
  comparedCount,
  comparedPage,
  isWithin,
  type Range,
} from '#src/directory/store.ts'
import { CONSOLE_CLIENT, CONSOLE_NAME, DEFAULT_ORGANIZATION, type OrganizationId } from '#src/lib/ids.ts'
import type { SecretHash } from '#src/lib/secrets.ts'
import { isDocumentId } from '#src/protocol/oauth/client-document.ts'
import {
  DOCUMENT_DYNAMIC,
  mayBeDynamic,
  type Origin,
  registeredItself,
} from '#src/protocol/oauth/dynamic-id.ts'
import type { GrantType } from '#src/protocol/oauth/token-request.ts'
import { cached } from '#src/storage/cache.ts'
import { beginPurge, logoutTarget } from '#src/storage/purges.ts'
import { containsText } from '#src/storage/search.ts'
import { preparedForStart, type Queries, type Store, type Transaction } from '#src/storage/store.ts'
import type { Tables } from '#src/storage/tables.ts'
import { asClientRow, asUnread, type HasKeys } from './dynamic.ts'
import { readDynamicClient } from './dynamic-store.ts'
import { noLogouts, plainPresentation } from './plain-fields.ts'

export type Client = Tables['clients']['$inferSelect'] & Pick<Origin, 'from_document'> & HasKeys

const { placeholder } = sql

const select = preparedForStart('client', (q, { clients }) =>
  q
    .select()
    .from(clients)
    .where(and(eq(clients.client_id, placeholder('client_id')), isWithin(clients.organization_id))),
)

/** Reads a client. With `within`, the client must belong to that organization. */
export const readClient = async (
  q: Queries,
  client_id: string,
  within?: OrganizationId,
): Promise<Client | undefined> => (await select(q, { client_id, within: within ?? null }))[0]

const cachedClient = cached('clients', (q, client_id) => readClient(q, client_id))

/** The console: a public client of the default organization. No row stores it, and no call can change it. */
const consoleClient = ({ url }: Config): Client => ({
  client_id: CONSOLE_CLIENT,
  organization_id: DEFAULT_ORGANIZATION,
  secret_hash: null,
  name: CONSOLE_NAME,
  description: '',
  type: 'public',
  kind: 'spa',
  redirect_uris: [`${url}/console/callback`],
  post_logout_redirect_uris: [`${url}/console`],
  web_origins: [],
  grant_types: ['authorization_code'],
  scopes: ['openid', 'admin'],
  token_endpoint_auth_method: 'none',
  // Eight hours, a working day. Three facts make this long lifetime acceptable. The console keeps the token
  // in memory. Each call looks up the token's session and permissions. Calls that could do lasting harm need
  // a fresh authentication (`fresh` in http/guard.ts), for example most deletions.
  access_token_ttl: 28_800,
  refresh_token_ttl: 28_800,
  refresh_token_reuse_window: 0,
  id_token_on_refresh: false,
  ...plainPresentation,
  ...noLogouts,
  attributes: {},
  claims: {},
  allowed_roles: [],
  allowed_groups: [],
  capabilities: ['cross_organization'],
  consent_required: false,
  access_token_typ: 'at+jwt',
  access_token_signed_response_alg: null,
  id_token_signed_response_alg: null,
  created_at: 0,
  updated_at: 0,
})

/**
 * Returns a client by id. The console's client is built in. A client that an administrator registered is
 * cached until a commit changes clients. Its id may be a URL, so registered clients are looked up before
 * clients with a metadata document. A dynamic client is not cached.
 */
export const findClient = (
  { config, store }: Pick<Core, 'config' | 'store'>,
  client_id: string,
): Promise<Client | undefined> => {
  if (client_id === CONSOLE_CLIENT && config.console === 'on') return Promise.resolve(consoleClient(config))
  if (registeredItself(client_id)) return findDynamic(store, client_id)
  const managed = cachedClient(store, client_id)
  return mayBeDynamic(client_id) ? managed.then(client => client ?? findDynamic(store, client_id)) : managed
}

const findDynamic = async (store: Store, client_id: string): Promise<Client | undefined> => {
  const registered = await store.read(q => readDynamicClient(q, client_id))
  return registered && asClientRow(registered)
}

/**
 * Returns the client of a request. A client with a metadata document is built from the request, because the
 * document is read after the login (`authorize/document`).
 */
export const clientOfRequest = (
  core: Pick<Core, 'config' | 'store' | 'clock'>,
  client_id: string,
  redirect_uri: string | undefined,
): Promise<Client | undefined> =>
  findClient(core, client_id).then(client =>
    (client ? client.from_document : isDocumentId(client_id))
      ? asUnread(client_id, redirect_uri, core.clock.now())
      : client,
  )

/**
 * True when pages of this origin may send the client's requests. A client that an administrator registered
 * has a list of origins. A metadata document names no origins. A public client with a document may therefore
 * use every origin, once a user has allowed the client.
 */
export const originOf = async (store: Store, client_id: string, origin: string): Promise<boolean> => {
  const client = await cachedClient(store, client_id)
  if (client || !client_id.startsWith(DOCUMENT_DYNAMIC)) return client?.web_origins.includes(origin) ?? false
  const described = await store.read(q => readDynamicClient(q, client_id))
  return described !== undefined && asClientRow(described).type === 'public'
}

/** Stores a new client. Rejects with a unique violation when the client_id is taken. */
export const insertClient = async (tx: Transaction, client: Client): Promise<void> => {
  await tx.insert(tx.tables.clients).values(client)
  tx.changed('clients')
}

/** Stores the columns of a client. */
export const saveClient = async (tx: Transaction, { client_id, ...columns }: Client): Promise<void> => {
  const { clients } = tx.tables
  await tx.update(clients).set(columns).where(eq(clients.client_id, client_id))
  tx.changed('clients')
}

/** Maximum number of clients that a call of `renameAllowedGroup` changes. */
export const MAX_RENAMED = 100

/**
 * Replaces the name of a group in `allowed_groups` of the organization's clients. Returns the ids of the
 * changed clients. A client with `cross_organization` keeps the name, because the name stands for a group in
 * each organization. Changes nothing and returns undefined when more than `MAX_RENAMED` clients name the
 * group.
 */
export const renameAllowedGroup = async (
  tx: Transaction,
  { organization_id, name }: { organization_id: OrganizationId; name: string },
  renamed: { name: string; updated_at: number },
): Promise<string[] | undefined> => {
  const { clients } = tx.tables
  const names =
    tx.engine === 'postgres'
      ? sql`${clients.allowed_groups}::jsonb @> to_jsonb(${name}::text)`
      : sql`${name} IN (SELECT value FROM json_each(${clients.allowed_groups}))`
  const found = await tx
    .select({ client_id: clients.client_id, allowed_groups: clients.allowed_groups })
    .from(clients)
    .where(
      and(
        eq(clients.organization_id, organization_id),
        names,
        notLike(clients.capabilities, '%"cross_organization"%'),
      ),
    )
    .orderBy(clients.client_id)
    .limit(MAX_RENAMED + 1)
  if (found.length > MAX_RENAMED) return undefined
  for (const { client_id, allowed_groups } of found)
    await tx
      .update(clients)
      .set({
        allowed_groups: [...new Set(allowed_groups.map(each => (each === name ? renamed.name : each)))],
        updated_at: renamed.updated_at,
      })
      .where(eq(clients.client_id, client_id))
  if (found.length > 0) tx.changed('clients')
  return found.map(({ client_id }) => client_id)
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

/**
 * Removes a client. Its dependent rows are removed later in batches (`purges`). The id cannot be reused
 * before these rows are removed.
 */
export const removeClient = async (tx: Transaction, client_id: string, now: number): Promise<void> => {
  const { clients } = tx.tables
  const [gone] = await tx.delete(clients).where(eq(clients.client_id, client_id)).returning()
  const organization = gone && (await readOrganization(tx, gone.organization_id))
  await beginPurge(tx, 'client', client_id, now, organization && logoutTarget(gone, organization.slug))
  tx.changed('clients')
}

/** Returns the names of the clients that the organization has registered. */
export const listClientNames = async (
  q: Queries,
  organization_id: OrganizationId,
): Promise<readonly string[]> => {
  const { clients } = q.tables
  const rows = await q
    .selectDistinct({ name: clients.name })
    .from(clients)
    .where(eq(clients.organization_id, organization_id))
  return rows.map(({ name }) => name)
}

/** Filters of the list. An absent filter matches all clients. */
export interface ClientFilter {
  organization_id: OrganizationId | undefined
  type: Client['type'] | undefined
  grant_type?: GrantType | undefined
  /** Part of the name or of the client_id. */
  search?: string | undefined
}

const matching = (q: Queries, { organization_id, type, grant_type, search }: ClientFilter) => {
  const { clients } = q.tables
  return and(
    organization_id && eq(clients.organization_id, organization_id),
    type && eq(clients.type, type),
    grant_type && like(clients.grant_types, `%"${grant_type}"%`),
    search
      ? or(containsText(q, clients.name, search), containsText(q, clients.client_id, search))
      : undefined,
  )
}

/** Returns a page of clients, in the order of creation. */
export const listClients = (q: Queries, filter: ClientFilter, range: Range): Promise<Client[]> => {
  const { clients } = q.tables
  return q
    .select()
    .from(clients)
    .where(and(matching(q, filter), beyond(range, clients.created_at, clients.client_id)))
    .orderBy(...byCreation(range.order, clients.created_at, clients.client_id))
    .limit(range.limit)
}

/**
 * The columns of a client that the list of the admin API reads. The list does not read the other columns,
 * because they may contain a megabyte.
 */
const itemColumns = ({ clients: t }: Tables) => ({
  client_id: t.client_id,
  name: t.name,
  type: t.type,
  kind: t.kind,
  organization_id: t.organization_id,
  grant_types: t.grant_types,
  scopes: t.scopes,
  created_at: t.created_at,
  updated_at: t.updated_at,
})
export type ClientSummary = Pick<Client, keyof ReturnType<typeof itemColumns>>

const compared = (filter: ClientFilter) => (q: Queries) => {
  const { clients: t } = q.tables
  const found = filter.organization_id && eq(t.organization_id, filter.organization_id)
  return { created_at: t.created_at, id: t.client_id, found, matching: matching(q, filter) }
}

/** Returns a page of clients as the list of the admin API shows them, in the order of creation. */
export const listSummaries = (store: Store, filter: ClientFilter, range: Range): Promise<ClientSummary[]> =>
  comparedPage(store, compared(filter), range, (q, where, order, limit) => {
    const rows = q.select(itemColumns(q.tables)).from(q.tables.clients)
    return rows
      .where(where)
      .orderBy(...order)
      .limit(limit)
  })

/** Counts the clients of the list. The result 10,001 means more than 10,000. */
export const countClients = (store: Store, filter: ClientFilter): Promise<number> =>
  comparedCount(store, compared(filter), (q, where) => {
    const { clients: t } = q.tables
    return q.select({ id: t.client_id }).from(t).where(where)
  })
