import type { CalledFor, Caller, Context } from '#src/context.ts'
import {
  type ChangedBy,
  changedFields,
  mayActOn,
  mayGrant,
  permissionsOf,
  readOnlyProblems,
  recordChange,
  refuse,
  requireOrganization,
} from '#src/directory/access.ts'
import { whenTaken } from '#src/directory/store.ts'
import { rolesToGive } from '#src/directory/users/rules.ts'
import { writeAs } from '#src/http/guard.ts'
import { isAllowed } from '#src/http/outbound.ts'
import { within } from '#src/http/tenant.ts'
import { type Detail, notFound } from '#src/lib/app-error.ts'
import { type IdentityProviderId, newId, type OrganizationId } from '#src/lib/ids.ts'
import { exceeding } from '#src/lib/permission.ts'
import type { Queries, Transaction } from '#src/storage/store.ts'
import { settingsFrom } from './metadata.ts'
import { findPreset } from './presets.ts'
import {
  type CreateIdentityProvider,
  providerAnswer,
  type UpdateIdentityProvider,
  writable,
} from './schema.ts'
import { defaults, settings as schemas } from './settings.ts'
import {
  insertProvider,
  readProvider,
  removeProvider,
  rolesOf,
  rolesReached,
  saveProvider,
  withRoles,
} from './store.ts'
import type { IdentityProvider, ProviderWithRoles } from './types.ts'

type Type = IdentityProvider['type']
type Given = Record<string, unknown>

/** By id or alias. */
export const getProvider = async (q: Queries, caller: Caller, ref: string): Promise<ProviderWithRoles> => {
  const row = await readProvider(q, ref, within(caller))
  const [provider] = row ? await withRoles(q, [row]) : []
  if (!provider) throw notFound('The identity provider')
  return provider
}

/** A provider that names roles itself can make anybody anything. */
const granted = (mapping: { roles?: string | undefined } | undefined): string[] =>
  mapping?.roles ? ['*'] : []

/**
 * The provider as the caller may act on it: 404 when unknown or foreign, 403 when its new users, or people who come in
 * through it already, have more rights: whoever turns it elsewhere could come in as one of them.
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

/** What a provider of this type is made of: `given` over what is stored over its preset over the defaults. */
const settle = (type: Type, given: Given, before: Given = {}) => {
  const isNewPreset = given.preset !== undefined && given.preset !== before.preset
  const filled: Given = {
    ...defaults[type],
    ...before,
    ...(isNewPreset && findPreset(given.preset)?.settings),
    ...given,
  }
  const names = Object.keys(schemas[type].shape)
  const result = schemas[type].safeParse(Object.fromEntries(names.map(name => [name, filled[name]])))
  const problems = (result.error?.issues ?? []).map(issue => ({
    field: issue.path.join('.'),
    code: filled[String(issue.path[0])] === undefined ? 'required' : issue.code,
    message: issue.message,
  }))
  return { settings: result.data, problems }
}

/** Plain http is for hosts that the server's settings name. */
const addressProblems = ({ config }: Context, organization: CalledFor, given: Given): Detail[] =>
  Object.entries(given).flatMap(([field, value]) => {
    const url = /^(?:issuer|\w+_endpoint|\w+_url)$/.test(field) ? URL.parse(String(value)) : null
    return url?.protocol === 'http:' && !isAllowed(config, url, organization)
      ? [
          {
            field,
            code: 'http',
            message:
              'https is needed, unless GATEHOUSE_OUTBOUND_ALLOW names host and port for the organization.',
          },
        ]
      : []
  })

const fieldProblems = (type: Type, given: Given): Detail[] => {
  const fields = { ...schemas.oidc.shape, ...schemas.oauth2.shape, ...schemas.saml.shape }
  const others = Object.keys(fields).filter(name => !Object.hasOwn(schemas[type].shape, name))
  const foreign = [...others, ...(type === 'saml' ? ['client_secret'] : ['metadata_xml', 'metadata_url'])]
  return foreign
    .filter(field => given[field] !== undefined)
    .map(field => ({
      field,
      code: 'unknown_field',
      message: `A provider of type ${type} has no such field.`,
    }))
}

const labelOf = (id: string): string => `identity_provider:${id}`

/** The secret of our client at the provider; an empty text for a public client. */
export const openSecret = (
  { master }: Pick<Context, 'master'>,
  { id, client_secret }: Pick<IdentityProvider, 'id' | 'client_secret'>,
): string => (client_secret ? master.open(client_secret, labelOf(id)).toString() : '')

const sealSecret = ({ master }: Context, id: string, secret: string): Buffer | null =>
  secret ? master.seal(Buffer.from(secret), labelOf(id)) : null

const mayGive = async (by: ChangedBy, q: Queries, organization_id: OrganizationId, given: Given) => {
  mayGrant(by.caller, granted(given.attribute_mapping as IdentityProvider['attribute_mapping']))
  const names = (given.default_roles as string[] | undefined) ?? []
  const { ids, problems } = await rolesToGive(q, by, organization_id, names)
  return { ids, problems: problems.map(problem => ({ ...problem, field: 'default_roles' })) }
}

/** Where the secret goes, or tokens that it was exchanged for: what a provider of each type has of these. */
const CALLED = ['issuer', 'token_endpoint', 'userinfo_endpoint', 'emails_endpoint'] as const

/** Nobody can read the secret; nobody gets it, or tokens, either by turning the provider to a server of their own. */
const secretProblems = (provider: IdentityProvider, given: Given, after: Given = {}): Detail[] => {
  const before: Given = { ...provider.settings }
  const isMoved = CALLED.some(name => after[name] && after[name] !== before[name])
  return provider.client_secret && given.client_secret === undefined && isMoved
    ? [
        {
          field: 'client_secret',
          code: 'required',
          message: 'The provider is called at another address from now on: the secret must be given again.',
        },
      ]
    : []
}

const ALIAS_TAKEN = whenTaken('Another identity provider has this alias.')

/** With a new id, unless one is chosen. 403 for roles that the caller may not give, 409 for an alias that is taken, 422. */
export const createProvider = async (
  context: Context,
  input: CreateIdentityProvider & { id?: IdentityProviderId },
  by: ChangedBy,
): Promise<ProviderWithRoles> => {
  const check = async (q: Queries) => {
    const organization = await requireOrganization(q, by.caller, input.organization_id)
    return { organization, roles: await mayGive(by, q, organization.id, input) }
  }
  // Nobody makes the server load a document who may not create the provider.
  const { organization: asking } = await context.store.read(check)
  const { found, problems } = await settingsFrom(context, asking, input.type === 'saml' ? input : {})
  const { settings, problems: unfit } = settle(input.type, { ...input, ...found })
  return writeAs(context, by.caller, async tx => {
    const { organization, roles } = await check(tx)
    refuse([...roles.problems, ...problems, ...(problems.length > 0 ? [] : unfit)])
    refuse(addressProblems(context, organization, settings ?? {}))
    const now = context.clock.now()
    const id = input.id ?? newId('idp', now)
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
      client_secret: sealSecret(context, id, 'client_secret' in input ? input.client_secret : ''),
      created_at: now,
      updated_at: now,
    } as IdentityProvider
    await insertProvider(tx, provider).catch(ALIAS_TAKEN)
    await recordProvider(context, tx, by, 'identity_provider.created', provider)
    return getProvider(tx, by.caller, id)
  })
}

/** What a PUT is compared with: every field as it would be sent. */
const asSent = (context: Context, provider: ProviderWithRoles): Given => ({
  ...providerAnswer(provider, context.clock.now()),
  ...('certificates' in provider.settings && { certificates: provider.settings.certificates }),
  client_secret: openSecret(context, provider),
})

/** Changes what `change` names, as the rest allows it. 403, 404, 409, 422 as above. */
export const updateProvider = async (
  context: Context,
  ref: string,
  change: UpdateIdentityProvider,
  by: ChangedBy,
): Promise<ProviderWithRoles> => {
  const { metadata_xml, metadata_url, ...given } = change
  const check = async (q: Queries) => {
    const provider = await getProviderToChange(q, by, ref)
    const [organization, roles] = await Promise.all([
      requireOrganization(q, by.caller, provider.organization_id),
      mayGive(by, q, provider.organization_id, given),
    ])
    return { provider, organization, roles }
  }
  const { provider: known, organization: asking } = await context.store.read(check)
  const foreign = fieldProblems(known.type, change)
  refuse(foreign)
  const { found, problems } = await settingsFrom(context, asking, { metadata_xml, metadata_url })
  const sent: Given = { ...given, ...found }
  return writeAs(context, by.caller, async tx => {
    const { provider, organization, roles } = await check(tx)
    const fields = changedFields(asSent(context, provider), sent)
    const { settings, problems: unfit } = settle(provider.type, sent, { ...provider.settings })
    refuse([...readOnlyProblems(fields, writable), ...roles.problems, ...problems, ...unfit])
    refuse(addressProblems(context, organization, settings ?? {}))
    refuse(secretProblems(provider, given, settings))
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
        client_secret: sealSecret(context, provider.id, given.client_secret),
      }),
      settings,
      updated_at: context.clock.now(),
    } as IdentityProvider
    await saveProvider(tx, changed).catch(ALIAS_TAKEN)
    await recordProvider(context, tx, by, 'identity_provider.updated', changed, { fields })
    return getProvider(tx, by.caller, provider.id)
  })
}

/** Nobody comes in through it any more; users that it brought stay. */
export const deleteProvider = (context: Context, ref: string, by: ChangedBy): Promise<void> =>
  writeAs(context, by.caller, async tx => {
    const provider = await getProviderToChange(tx, by, ref)
    await removeProvider(tx, provider.id, context.clock.now())
    await recordProvider(context, tx, by, 'identity_provider.deleted', provider)
  })

const recordProvider = (
  context: Context,
  tx: Transaction,
  by: ChangedBy,
  type: 'identity_provider.created' | 'identity_provider.updated' | 'identity_provider.deleted',
  { id, organization_id, alias, name, ...provider }: IdentityProvider,
  metadata: Given = {},
): Promise<void> =>
  recordChange(context, tx, by, {
    type,
    target_id: id,
    organization_id,
    metadata: { alias, name, type: provider.type, ...metadata },
  })
