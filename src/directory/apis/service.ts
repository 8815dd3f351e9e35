import type { Caller, Core } from '#src/context.ts'
import {
  type ChangedBy,
  changedFields,
  readOnlyProblems,
  recordChange,
  requireOrganization,
  writableFields,
} from '#src/directory/access.ts'
import { whenTaken } from '#src/directory/store.ts'
import { rolesNamed } from '#src/directory/users/store.ts'
import { writeAs } from '#src/http/guard.ts'
import { within } from '#src/http/tenant.ts'
import { conflict, type Detail, notFound, throwProblems } from '#src/lib/app-error.ts'
import { type ApiId, newId, type OrganizationId } from '#src/lib/ids.ts'
import { publishedIds } from '#src/protocol/oauth/published-documents.ts'
import { resourceKey } from '#src/protocol/oauth/resource.ts'
import type { Queries, Transaction } from '#src/storage/store.ts'
import { ensureKey } from '#src/tokens/rotation.ts'
import { apiAnswer, type CreateApi, type UpdateApi, writable } from './schema.ts'
import {
  type Api,
  clientsAmong,
  countApis,
  findApiById,
  forgetClient,
  haveClient,
  insertApi,
  type NamedApi,
  removeApi,
  saveApi,
} from './store.ts'

/**
 * Returns an API of an organization that the caller may act on.
 *
 * @throws AppError 404 when the API is unknown or of another organization
 */
export const getApi = async (q: Queries, caller: Caller, id: string): Promise<Api> => {
  const api = await findApiById(q, id, within(caller))
  if (!api) throw notFound('The API')
  return api
}

const problem = (field: string, code: string, message: string): Detail => ({ field, code, message })

/**
 * Maximum number of APIs of an organization. The limit bounds the work of deleting a client, which changes
 * each API that names the client.
 */
const MAX = 200

/**
 * Maximum bytes of the scopes and clients of an API as JSON. Each read of an API includes them, so a page of
 * 100 APIs contains at most 12.5 MiB of scopes and clients.
 */
const PARTS_BYTES = 128 * 1024

type Parts = Partial<Pick<Api, 'scopes' | 'clients' | 'served_by'>>

const rolesOf = ({ scopes = [] }: Parts): string[] => scopes.flatMap(({ role }) => role ?? [])

/**
 * Returns the problems of scopes, roles and clients. Roles and clients must belong to the API's organization,
 * so that no tenant grants rights at another tenant's API. Roles that `before` already names are not checked,
 * because a deleted role must not prevent other changes.
 */
const partProblems = async (
  q: Queries,
  organization_id: OrganizationId,
  { scopes = [], clients = [], served_by = [] }: Parts,
  before: Parts = {},
): Promise<Detail[]> => {
  const problems: Detail[] = []
  if (Buffer.byteLength(JSON.stringify([scopes, clients, served_by])) > PARTS_BYTES)
    problems.push(
      problem('scopes', 'too_big', `Scopes and clients take more than ${PARTS_BYTES / 1024} KiB as JSON.`),
    )
  const names = scopes.map(({ name }) => name)
  if (new Set(names).size < names.length)
    problems.push(problem('scopes', 'repeated', 'Two scopes have the same name.'))
  const stored = rolesOf(before)
  const wanted = rolesOf({ scopes }).filter(name => !stored.includes(name))
  const found = (await rolesNamed(q, organization_id, wanted)).map(({ name }) => name)
  const roles = new Set([...stored, ...found])
  for (const [i, { role }] of scopes.entries())
    if (role !== null && !roles.has(role))
      problems.push(problem(`scopes.${i}.role`, 'unknown_role', 'The organization has no such role.'))
  const ids = clients.map(each => each.client_id)
  if (new Set(ids).size < ids.length)
    problems.push(problem('clients', 'repeated', 'A client is named twice.'))
  const known = await clientsAmong(q, [...ids, ...served_by], organization_id)
  for (const [i, entry] of clients.entries()) {
    if (!known.has(entry.client_id))
      problems.push(
        problem(`clients.${i}.client_id`, 'unknown_client', 'The organization has no such client.'),
      )
    if (!entry.scopes.every(scope => names.includes(scope)))
      problems.push(problem(`clients.${i}.scopes`, 'unknown_scope', 'The API has no such scope.'))
  }
  for (const [i, id] of served_by.entries())
    if (!known.has(id))
      problems.push(problem(`served_by.${i}`, 'unknown_client', 'The organization has no such client.'))
  return problems
}

const hrefOf = (uri: string): string => resourceKey(URL.parse(uri)?.href ?? '')

/**
 * Returns a problem when the identifier is a client_id, the URL of this server or a URL below it, because the
 * audience of a token must identify exactly one API, client or server. Different spellings of the server's
 * URL count as equal. For a client_id, only a trailing slash makes no difference.
 */
const identifierProblems = async ({ config }: Core, q: Queries, identifier = ''): Promise<Detail[]> => {
  const key = resourceKey(identifier)
  const isOwn = `${hrefOf(identifier)}/`.startsWith(`${hrefOf(config.url)}/`)
  const spellings = [key, `${key}/`]
  const isClient = spellings.some(id => publishedIds.includes(id)) || (await haveClient(q, spellings))
  return isOwn || isClient
    ? [
        problem(
          'identifier',
          'reserved',
          'The identifier must not be a client_id, the URL of this server or a URL below it.',
        ),
      ]
    : []
}

/**
 * Returns the organization and the problems of a new API.
 *
 * @throws AppError 422 for an unknown organization
 */
export const judgeNew = async (context: Core, q: Queries, input: Partial<CreateApi>, by: ChangedBy) => {
  const { id } = await requireOrganization(q, by.caller, input.organization_id)
  const problems = await identifierProblems(context, q, input.identifier)
  return { organization_id: id, problems: [...problems, ...(await partProblems(q, id, input))] }
}

/**
 * Generates the signing key of the API's tokens unless the key exists. The key is thus published before the
 * first token is issued.
 */
const publishKey = async (context: Core, api: Api): Promise<Api> => {
  if (api.access_token_alg) await ensureKey(context, api.access_token_alg)
  return api
}

/** Creates an API. */
export const createApi = async (
  context: Core,
  input: CreateApi & { id?: ApiId },
  by: ChangedBy,
): Promise<Api> => {
  const created = await writeAs(context, by.caller, async tx => {
    const { organization_id, problems } = await judgeNew(context, tx, input, by)
    throwProblems(problems)
    if ((await countApis(tx, organization_id)) >= MAX)
      throw conflict(`The organization already has ${MAX} APIs, which is the maximum.`)
    const now = context.clock.now()
    const api: Api = {
      ...input,
      id: input.id ?? newId('api', now),
      identifier_key: resourceKey(input.identifier),
      organization_id,
      created_at: now,
      updated_at: now,
    }
    await insertApi(tx, api).catch(whenTaken('identifier', 'Another API has this identifier.'))
    await recordApi(context, tx, by, 'api.created', api, {})
    return api
  })
  return publishKey(context, created)
}

/**
 * Returns the changed API, the names of the changed fields, and the problems of the change. Stores nothing.
 *
 * @throws AppError 404 when the API is unknown or of another organization
 */
export const judgeChange = async (q: Queries, id: string, change: UpdateApi, by: ChangedBy) => {
  const api = await getApi(q, by.caller, id)
  const fields = changedFields(apiAnswer(api), change)
  const changed: Api = { ...api, ...writableFields(change, writable) }
  const problems = [
    ...readOnlyProblems(fields, writable),
    ...(await partProblems(q, api.organization_id, changed, api)),
  ]
  return { api: changed, fields, problems }
}

/**
 * Changes the given fields.
 *
 * @throws AppError 404 when the API is unknown or of another organization, 422 with the problems of the
 * change
 */
export const updateApi = async (
  context: Core,
  id: string,
  change: UpdateApi,
  by: ChangedBy,
): Promise<Api> => {
  const updated = await writeAs(context, by.caller, async tx => {
    const { api, fields, problems } = await judgeChange(tx, id, change, by)
    throwProblems(problems)
    if (fields.length === 0) return api
    const changed = { ...api, updated_at: context.clock.now() }
    await saveApi(tx, changed)
    await recordApi(context, tx, by, 'api.updated', changed, { fields })
    return changed
  })
  return publishKey(context, updated)
}

/**
 * Deletes an API. No further token is issued for it. Its existing tokens stay valid until they expire,
 * because services verify tokens without a call to this server.
 */
export const deleteApi = (context: Core, id: string, by: ChangedBy): Promise<void> =>
  writeAs(context, by.caller, async tx => {
    const api = await getApi(tx, by.caller, id)
    await removeApi(tx, api)
    await recordApi(context, tx, by, 'api.deleted', api, {})
  })

/** Removes a client that is being deleted from the APIs that name it. Records an event for each such API. */
export const removeFromApis = async (
  context: Core,
  tx: Transaction,
  client: { client_id: string; organization_id: OrganizationId },
  by: ChangedBy,
): Promise<void> => {
  for (const { api, fields } of await forgetClient(tx, client, context.clock.now()))
    await recordApi(context, tx, by, 'api.updated', api, { fields })
}

const recordApi = (
  context: Core,
  tx: Transaction,
  by: ChangedBy,
  type: 'api.created' | 'api.updated' | 'api.deleted',
  { id, organization_id, identifier, name }: NamedApi,
  metadata: Record<string, unknown>,
): Promise<void> =>
  recordChange(context, tx, by, {
    type,
    target_id: id,
    organization_id,
    metadata: { identifier, name, ...metadata },
  })
