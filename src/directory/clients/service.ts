import type { Caller, Core } from '#src/context.ts'
import {
  type ChangedBy,
  changedFields,
  mayActOn,
  mayGrant,
  permissionChange,
  readOnlyProblems,
  recordChange,
  requireOrganization,
  writableFields,
} from '#src/directory/access.ts'
import { removeFromApis } from '#src/directory/apis/service.ts'
import { readApi } from '#src/directory/apis/store.ts'
import { type Asset, insertAssets } from '#src/directory/organizations/asset-store.ts'
import { removeUnusedAssets, takeAsset } from '#src/directory/organizations/assets.ts'
import { afterChange, whenTaken } from '#src/directory/store.ts'
import { numberProblems } from '#src/directory/users/free-attributes.ts'
import { writeAs } from '#src/http/guard.ts'
import { within } from '#src/http/tenant.ts'
import { conflict, type Detail, notFound, throwProblems, valueTaken } from '#src/lib/app-error.ts'
import { CONSOLE_CLIENT } from '#src/lib/ids.ts'
import { hashSecret, newSecret, type Secret, type SecretHash } from '#src/lib/secrets.ts'
import { redirectLogouts } from '#src/sessions/logout-store.ts'
import { releaseSessions } from '#src/sessions/service.ts'
import { inBatches } from '#src/storage/batches.ts'
import { endPurge, isPurging } from '#src/storage/purges.ts'
import { removeRemains } from '#src/storage/remains.ts'
import type { Queries, Transaction } from '#src/storage/store.ts'
import { ensureKey } from '#src/tokens/rotation.ts'
import {
  admissionProblems,
  documentProblems,
  mayNameDocument,
  mayReachAcross,
  shapeProblems,
} from './rules.ts'
import { type CreateClient, clientAnswer, type UpdateClient, writable } from './schema.ts'
import { type Client, insertClient, readClient, removeClient, saveClient, saveSecret } from './store.ts'

/**
 * Returns a client of an organization that the caller may act on.
 *
 * @throws AppError 404 when the client is unknown or of another organization
 */
export const getClient = async (q: Queries, caller: Caller, client_id: string): Promise<Client> => {
  const client = await readClient(q, client_id, within(caller))
  if (!client) throw notFound('The client')
  return client
}

export const BUILT_IN = 'This client is the console. It is built in and cannot be changed or deleted.'

/**
 * Returns the client that a call is about to change.
 *
 * @throws AppError 404 when the client is unknown or of another organization; 409 for the console; 403 when
 * the client has permissions that the caller lacks. Also 403 for a caller of a tenant when the client has
 * `cross_organization`, or an id that begins with https://.
 */
const getClientToChange = async (q: Queries, { caller }: ChangedBy, client_id: string): Promise<Client> => {
  if (client_id === CONSOLE_CLIENT) throw conflict(BUILT_IN)
  const client = await getClient(q, caller, client_id)
  mayActOn(caller, client.scopes)
  mayReachAcross(caller, client.capabilities)
  mayNameDocument(caller, client_id)
  return client
}

/**
 * Returns the organization of a new client, its logo as `takeLogo` returns it, and the problems.
 *
 * @throws AppError 403 when the caller may not give a client these scopes, capabilities or client_id, 422 for
 * an unknown organization
 */
export const judgeNew = async (q: Queries, input: Partial<CreateClient>, by: ChangedBy) => {
  mayGrant(by.caller, input.scopes ?? [])
  mayReachAcross(by.caller, input.capabilities ?? [])
  mayNameDocument(by.caller, input.client_id ?? '')
  const problems = [...shapeProblems(input), ...numberProblems(input.attributes)]
  const { id } = await requireOrganization(q, by.caller, input.organization_id, problems)
  const taken = takeLogo({ organization_id: id, logo: null }, input)
  problems.push(
    ...taken.problems,
    ...(await admissionProblems(q, id, input)),
    ...(await documentProblems(q, input)),
  )
  return { organization_id: id, taken, problems }
}

/** Returns the field `logo` to store, the new asset, and the problems of the logo. */
const takeLogo = (
  { organization_id, logo: stored }: Pick<Client, 'organization_id' | 'logo'>,
  { logo }: { logo?: string | null | undefined },
): { given: { logo?: string | null }; assets: Asset[]; problems: Detail[] } => {
  if (!logo) return { given: logo === null ? { logo } : {}, assets: [], problems: [] }
  const { address, ...taken } = takeAsset(organization_id, 'logo', logo, stored)
  return { given: { logo: address }, ...taken }
}

/**
 * Creates a client. If the client is confidential and `secret_hash` is absent, also generates and returns a
 * secret. The server stores only the hash, so nobody can read the secret again.
 */
export const createClient = async (
  context: Core,
  input: CreateClient & { secret_hash?: SecretHash },
  by: ChangedBy,
): Promise<{ client: Client; secret: Secret | undefined }> => {
  const isPublic = input.type === 'public'
  const token_endpoint_auth_method =
    input.token_endpoint_auth_method ?? (isPublic ? 'none' : 'client_secret_basic')
  const secret = isPublic || input.secret_hash ? undefined : newSecret()
  if (input.client_id === CONSOLE_CLIENT) throw conflict(BUILT_IN)
  await purgeClient(context, input.client_id)
  const client = await writeAs(context, by.caller, async tx => {
    const { organization_id, taken, problems } = await judgeNew(tx, input, by)
    throwProblems(problems)
    const now = context.clock.now()
    const client = {
      ...input,
      ...taken.given,
      organization_id,
      token_endpoint_auth_method,
      secret_hash: secret ? hashSecret(secret) : (input.secret_hash ?? null),
      created_at: now,
      updated_at: now,
    }
    // Sessions and consents of a deleted client with this id may still exist. The new client must not get
    // them.
    if (await isPurging(tx, client.client_id))
      throw valueTaken('client_id', 'A client with this client_id is still being deleted.')
    if (await readApi(tx, client.client_id))
      throwProblems([
        {
          field: 'client_id',
          code: 'reserved',
          message: 'The client_id must not be the identifier of an API.',
        },
      ])
    await insertClient(tx, client).catch(whenTaken('client_id', 'Another client has this client_id.'))
    await insertAssets(tx, taken.assets)
    await recordClient(context, tx, by, 'client.created', client, {
      name: client.name,
      type: client.type,
      ...permissionChange([], client.scopes),
    })
    return client
  })
  await publishKeys(context, client)
  return { client, secret }
}

/**
 * Generates the missing keys for the signing algorithms of the client, before the client gets a token. The
 * first start of a server generates only the keys for ES256, RS256 and the algorithms in the settings.
 */
const publishKeys = async (context: Core, client: Client): Promise<void> => {
  for (const alg of [client.id_token_signed_response_alg, client.access_token_signed_response_alg])
    if (alg) await ensureKey(context, alg)
}

/**
 * Returns the client before and after the change, the names of the changed fields, and the problems of the
 * change.
 *
 * @throws AppError 403 when the caller may not change the client or give it these scopes or capabilities; 404
 * when the client is unknown or of another organization; 409 for the console
 */
export const judgeChange = async (q: Queries, client_id: string, change: UpdateClient, by: ChangedBy) => {
  const client = await getClientToChange(q, by, client_id)
  mayGrant(by.caller, change.scopes ?? [])
  mayReachAcross(by.caller, change.capabilities ?? [])
  const taken = takeLogo(client, change)
  const given = { ...change, ...taken.given }
  const fields = changedFields(clientAnswer(client), given)
  const changed: Client = { ...client, ...writableFields(given, writable) }
  return {
    client,
    changed,
    fields,
    assets: taken.assets,
    problems: [
      ...taken.problems,
      ...readOnlyProblems(fields, writable),
      ...shapeProblems(changed),
      ...numberProblems(changed.attributes, client.attributes),
      ...(await admissionProblems(q, client.organization_id, changed, client)),
      ...(fields.includes('redirect_uris') ? await documentProblems(q, changed) : []),
    ],
  }
}

/**
 * Changes the given fields of a client.
 *
 * @throws AppError 422 with the problems of the change; the errors of `judgeChange`
 */
export const updateClient = async (
  context: Core,
  client_id: string,
  change: UpdateClient,
  by: ChangedBy,
): Promise<Client> => {
  const changed = await writeAs(context, by.caller, async tx => {
    const { client, fields, problems, ...judged } = await judgeChange(tx, client_id, change, by)
    throwProblems(problems)
    if (fields.length === 0) return client
    const changed = { ...judged.changed, updated_at: context.clock.now() }
    await saveClient(tx, changed)
    await insertAssets(tx, judged.assets)
    if (fields.includes('logo')) await removeUnusedAssets(tx, changed.organization_id)
    if (fields.includes('backchannel_logout_uri')) await redirectLogouts(tx, changed, changed.updated_at)
    await recordClient(context, tx, by, 'client.updated', client, {
      fields,
      ...permissionChange(client.scopes, changed.scopes),
    })
    return changed
  })
  await publishKeys(context, changed)
  return changed
}

/** Replaces the secret. The old secret may have leaked, so it becomes invalid at once. */
export const regenerateSecret = async (context: Core, client_id: string, by: ChangedBy): Promise<Secret> => {
  const secret = newSecret()
  await replaceSecret(context, client_id, hashSecret(secret), by)
  return secret
}

/** Replaces the stored hash of the secret with the hash of a new secret. */
export const replaceSecret = (
  context: Core,
  client_id: string,
  secret_hash: SecretHash,
  by: ChangedBy,
): Promise<void> =>
  writeAs(context, by.caller, async tx => {
    const client = await getClientToChange(tx, by, client_id)
    if (client.type === 'public')
      throwProblems([
        { field: 'client_id', code: 'public_client', message: 'A public client has no secret.' },
      ])
    await saveSecret(tx, client_id, { secret_hash, updated_at: context.clock.now() })
    await recordClient(context, tx, by, 'client.secret_regenerated', client)
  })

/**
 * Deletes a client. Its sessions and refresh tokens end with it, because no later call could end them.
 * Gatehouse refuses the access tokens of ended sessions, but services that verify tokens themselves accept
 * such a token until it expires. A token that the client got for itself also stays valid until it expires; at
 * the admin API it has no permissions.
 */
export const deleteClient = async (context: Core, client_id: string, by: ChangedBy): Promise<void> => {
  await writeAs(context, by.caller, async tx => {
    const client = await getClientToChange(tx, by, client_id)
    await removeClient(tx, client_id, context.clock.now())
    await removeFromApis(context, tx, client, by)
    if (client.logo) await removeUnusedAssets(tx, client.organization_id)
    await recordClient(context, tx, by, 'client.deleted', client, { name: client.name })
  })
  await afterChange(context, core => purgeClient(core, client_id), true)
}

/**
 * Ends the sessions of a deleted client, and removes its consents and pending requests. A new client with the
 * same id thus inherits nothing. Each write has a bounded size.
 */
export const purgeClient = async (context: Core, client_id: string): Promise<void> => {
  if (!(await context.store.read(q => isPurging(q, client_id)))) return
  await inBatches(context.store, async (tx, limit) => {
    // If another purge of this client has finished, a new client may have this id. Its sessions must not end.
    if (!(await isPurging(tx, client_id))) return 0
    const ended = (await releaseSessions(context, tx, { client_id }, limit)).length
    const removed = ended > 0 ? ended : await removeRemains(tx, 'client', [client_id], limit)
    if (removed === 0) await endPurge(tx, client_id)
    return removed
  })
}

const recordClient = (
  context: Core,
  tx: Transaction,
  by: ChangedBy,
  type: 'client.created' | 'client.updated' | 'client.deleted' | 'client.secret_regenerated',
  { client_id, organization_id }: Client,
  metadata: Record<string, unknown> = {},
): Promise<void> => recordChange(context, tx, by, { type, target_id: client_id, organization_id, metadata })
