import type { Caller, Core } from '#src/context.ts'
import {
  type ChangedBy,
  changedFields,
  mayActOn,
  mayGrant,
  permissionsOf,
  readOnlyProblems,
  recordChange,
  requireOrganization,
} from '#src/directory/access.ts'
import { chosenId, whenTaken } from '#src/directory/store.ts'
import { rolesToGive } from '#src/directory/users/rules.ts'
import { writeAs } from '#src/http/guard.ts'
import { within } from '#src/http/tenant.ts'
import { conflict, type Detail, notFound, throwProblems } from '#src/lib/app-error.ts'
import { type IdentityProviderId, newId, type OrganizationId } from '#src/lib/ids.ts'
import { exceeding } from '#src/lib/permission.ts'
import type { Queries, Transaction } from '#src/storage/store.ts'
import { settingsForCaller } from './metadata.ts'
import {
  addressProblems,
  completeSettings,
  fieldProblems,
  type GivenSettings,
  secretProblems,
} from './rules.ts'
import {
  type CreateIdentityProvider,
  providerAnswer,
  type UpdateIdentityProvider,
  writable,
} from './schema.ts'
import { openSecret, sealClientSecret } from './secret.ts'
import {
  countProviders,
  insertProvider,
  readProvider,
  removeProvider,
  rolesOf,
  rolesReached,
  saveProvider,
  withRoles,
} from './store.ts'
import type { IdentityProvider, ProviderWithRoles } from './types.ts'

/**
 * Maximum number of identity providers of an organization. The limit bounds the size of the login page, which
 * has a button for each, and the work of reading them after a change.
 */
const MAX = 100

/** Returns a provider by id or alias. Throws 404 when the provider is unknown or of another organization. */
export const getProvider = async (q: Queries, caller: Caller, ref: string): Promise<ProviderWithRoles> => {
  const row = await readProvider(q, ref, within(caller))
  const [provider] = row ? await withRoles(q, [row]) : []
  if (!provider) throw notFound('The identity provider')
  return provider
}

/** Returns the permissions that a mapping can grant. A mapping of `roles` can assign any role. */
const granted = (mapping: { roles?: string | undefined } | undefined): string[] =>
  mapping?.roles ? ['*'] : []

/**
 * Returns the provider that a call is about to change. By changing the provider's addresses, a caller could
 * sign in as a linked user. The caller therefore needs the permissions of the linked users.
 *
 * @throws AppError 404 when the provider is unknown or of another organization; 403 when the caller lacks
 * permissions that new or linked users get
 */
const getProviderToChange = async (
  q: Queries,
  { caller }: ChangedBy,
  ref: string,
): Promise<ProviderWithRoles> => {
  const provider = await getProvider(q, caller, ref)
  mayActOn(caller, [...permissionsOf(provider.roles), ...granted(provider.attribute_mapping)])
  const beyond = (await rolesOf(q, provider.organization_id)).filter(
    ({ permissions }) => exceeding(caller.permissions, permissions).length > 0,
  )
  const reached = await rolesReached(
    q,
    provider.id,
    beyond.map(({ id }) => id),
  )
  mayActOn(caller, permissionsOf(beyond.filter(({ id }) => reached.includes(id))))
  return provider
}

const mayGive = async (by: ChangedBy, q: Queries, organization_id: OrganizationId, given: GivenSettings) => {
  mayGrant(by.caller, granted(given.attribute_mapping as IdentityProvider['attribute_mapping']))
  const names = (given.default_roles as string[] | undefined) ?? []
  const { ids, problems } = await rolesToGive(q, by, organization_id, names)
  return { ids, problems: problems.map(problem => ({ ...problem, field: 'default_roles' })) }
}

const ALIAS_TAKEN = whenTaken('alias', 'Another identity provider has this alias.')

/** The settings and the problems that a metadata document gives. */
type Document = Awaited<ReturnType<typeof settingsForCaller>>
const NO_DOCUMENT: Document = { found: {}, problems: [] }

/**
 * Returns the parts and the problems of a new provider. Before the metadata document has been read, a missing
 * field is no problem, because the document can supply required fields.
 *
 * @throws AppError 403 for roles that the caller may not grant, 422 for an unknown organization
 */
const judgeNew = async (
  context: Core,
  q: Queries,
  input: GivenSettings & Pick<CreateIdentityProvider, 'type' | 'organization_id'>,
  by: ChangedBy,
  document?: Document,
) => {
  const organization = await requireOrganization(q, by.caller, input.organization_id)
  const roles = await mayGive(by, q, organization.id, input)
  const { settings, whole, problems } = completeSettings(input.type, { ...input, ...document?.found })
  const isComplete = document?.problems.length === 0
  return {
    organization,
    roles,
    settings,
    problems: [
      ...roles.problems,
      ...(document?.problems ?? []),
      ...problems.filter(({ code }) => isComplete || code !== 'required'),
      ...addressProblems(context, organization, whole),
    ],
  }
}

/** Returns the problems that the schema did not find in a new provider. Loads no metadata document. */
export const reviewNew = async (
  context: Core,
  q: Queries,
  good: Partial<CreateIdentityProvider>,
  bad: ReadonlySet<string>,
  by: ChangedBy,
): Promise<{ problems: Detail[] }> => {
  const { type } = good
  const hasDocument = ['metadata_xml', 'metadata_url'].some(name => name in good || bad.has(name))
  if (type === undefined) return { problems: [] }
  return judgeNew(context, q, { ...good, type }, by, hasDocument ? undefined : NO_DOCUMENT)
}

/**
 * Creates a provider. The id is `input.id`, otherwise a new one.
 *
 * @throws AppError 409 for a taken alias and for too many providers; 422 with problems; errors of `judgeNew`
 * and `settingsForCaller`
 */
export const createProvider = async (
  context: Core,
  input: CreateIdentityProvider & { id?: IdentityProviderId },
  by: ChangedBy,
): Promise<ProviderWithRoles> => {
  // Only a caller who may create the provider may cause an outbound call.
  const known = await context.store.read(q => judgeNew(context, q, input, by))
  const document = await settingsForCaller(context, known.organization, input.type === 'saml' ? input : {})
  return writeAs(context, by.caller, async tx => {
    const { organization, roles, settings, problems } = await judgeNew(context, tx, input, by, document)
    throwProblems(problems)
    if ((await countProviders(tx, { organization_id: organization.id })) >= MAX)
      throw conflict(`The organization already has ${MAX} identity providers, which is the maximum.`)
    const now = context.clock.now()
    const id = (await chosenId(tx, 'identity_provider', input.id)) ?? newId('idp', now)
    const { alias, name, enabled, allow_registration, trust_email, attribute_mapping } = input
    const provider = {
      id,
      alias,
      name,
      type: input.type,
      organization_id: organization.id,
      enabled,
      allow_registration,
      trust_email,
      attribute_mapping,
      default_role_ids: roles.ids,
      settings,
      client_secret: sealClientSecret(context, id, 'client_secret' in input ? input.client_secret : ''),
      created_at: now,
      updated_at: now,
    } as IdentityProvider
    await insertProvider(tx, provider).catch(ALIAS_TAKEN)
    await recordProvider(context, tx, by, 'identity_provider.created', provider)
    return getProvider(tx, by.caller, id)
  })
}

/** Returns the provider as the body of a PUT, for comparison with the body that a caller sent. */
const asSent = (context: Core, provider: ProviderWithRoles): GivenSettings => ({
  ...providerAnswer(provider, context.clock.now()),
  ...('certificates' in provider.settings && { certificates: provider.settings.certificates }),
  client_secret: openSecret(context, provider),
})

/**
 * Returns the provider before the change, the new settings, the changed fields and the problems. Throws the
 * errors of `getProviderToChange`, and 403 for roles that the caller may not grant.
 */
export const judgeChange = async (
  context: Core,
  q: Queries,
  ref: string,
  change: UpdateIdentityProvider,
  by: ChangedBy,
  document = NO_DOCUMENT,
) => {
  const { metadata_xml: _, metadata_url: __, ...given } = change
  const provider = await getProviderToChange(q, by, ref)
  const organization = await requireOrganization(q, by.caller, provider.organization_id)
  const roles = await mayGive(by, q, organization.id, given)
  const sent: GivenSettings = { ...given, ...document.found }
  const before = asSent(context, provider)
  const { settings, whole, problems } = completeSettings(provider.type, sent, before)
  const fields = changedFields(before, { ...sent, ...(sent.preset ? settings : {}) })
  return {
    provider,
    organization,
    roles,
    given,
    fields,
    settings,
    problems: [
      ...fieldProblems(provider.type, change),
      ...readOnlyProblems(fields, writable),
      ...roles.problems,
      ...document.problems,
      ...problems,
      ...addressProblems(context, organization, whole, before),
      ...secretProblems(provider, given, whole),
    ],
  }
}

/** Changes fields. Throws 409 for a taken alias, 422 with problems, and the errors of `judgeChange`. */
export const updateProvider = async (
  context: Core,
  ref: string,
  change: UpdateIdentityProvider,
  by: ChangedBy,
): Promise<ProviderWithRoles> => {
  const known = await context.store.read(q => judgeChange(context, q, ref, change, by))
  const isSaml = known.provider.type === 'saml'
  const document = await settingsForCaller(context, known.organization, isSaml ? change : {})
  return writeAs(context, by.caller, async tx => {
    const judged = await judgeChange(context, tx, ref, change, by, document)
    const { provider, roles, given, fields, settings, problems } = judged
    throwProblems(problems)
    if (fields.length === 0) return provider
    const own = [
      'alias',
      'name',
      'enabled',
      'allow_registration',
      'trust_email',
      'attribute_mapping',
    ] as const
    const { roles: _, ...row } = provider
    const changed = {
      ...row,
      ...Object.fromEntries(own.flatMap(name => (given[name] === undefined ? [] : [[name, given[name]]]))),
      ...(given.default_roles && { default_role_ids: roles.ids }),
      ...(given.client_secret !== undefined && {
        client_secret: sealClientSecret(context, provider.id, given.client_secret),
      }),
      settings,
      updated_at: context.clock.now(),
    } as IdentityProvider
    await saveProvider(tx, changed).catch(ALIAS_TAKEN)
    await recordProvider(context, tx, by, 'identity_provider.updated', changed, { fields })
    return getProvider(tx, by.caller, provider.id)
  })
}

/** Deletes a provider. Logins through it are refused. Users who were created through it are kept. */
export const deleteProvider = (context: Core, ref: string, by: ChangedBy): Promise<void> =>
  writeAs(context, by.caller, async tx => {
    const provider = await getProviderToChange(tx, by, ref)
    await removeProvider(tx, provider.id, context.clock.now())
    await recordProvider(context, tx, by, 'identity_provider.deleted', provider)
  })

const recordProvider = (
  context: Core,
  tx: Transaction,
  by: ChangedBy,
  type: 'identity_provider.created' | 'identity_provider.updated' | 'identity_provider.deleted',
  { id, organization_id, alias, name, ...provider }: IdentityProvider,
  metadata: GivenSettings = {},
): Promise<void> =>
  recordChange(context, tx, by, {
    type,
    target_id: id,
    organization_id,
    metadata: { alias, name, type: provider.type, ...metadata },
  })
