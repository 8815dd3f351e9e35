import type { Caller, Core } from '#src/context.ts'
import { type ChangedBy, changedFields, readOnlyProblems, recordChange } from '#src/directory/access.ts'
import { insertBuiltInRoles } from '#src/directory/roles/store.ts'
import { afterChange, chosenId, whenTaken } from '#src/directory/store.ts'
import { writeAs } from '#src/http/guard.ts'
import { isSlugNamed } from '#src/http/outbound.ts'
import { within } from '#src/http/tenant.ts'
import { conflict, type Detail, forbidden, notFound, throwProblems, valueTaken } from '#src/lib/app-error.ts'
import { DEFAULT_ORGANIZATION, newId, type OrganizationId } from '#src/lib/ids.ts'
import { offersPasskeys } from '#src/lib/passkey-site.ts'
import { SET_MAIL } from '#src/mail/outbox.ts'
import { removeRememberedOf } from '#src/sessions/remembered-store.ts'
import { DELETE_BATCH } from '#src/storage/batches.ts'
import type { Queries } from '#src/storage/store.ts'
import { insertAssets } from './asset-store.ts'
import { removeUnusedAssets, takeAssets } from './assets.ts'
import { beginIndex, rebuildIndex } from './attribute-store.ts'
import { endKeptOut } from './dynamic-clients.ts'
import {
  type CreateOrganization,
  organizationItem,
  type Settings,
  type UpdateOrganization,
  writable,
} from './schema.ts'
import { recordedSettings } from './settings.ts'
import {
  insertOrganization,
  type Organization,
  readOrganization,
  readOrganizationBySlug,
  removeOrganization,
  replaceLoginDomains,
  saveOrganization,
} from './store.ts'
import { definitionsOf, searchableNames } from './user-attributes.ts'

/**
 * Returns an organization by id or slug. No slug has the form of an id.
 *
 * @throws AppError 404 when the organization is unknown, or the caller may not act on it
 */
export const getOrganization = async (
  q: Queries,
  caller: Caller,
  reference: string,
): Promise<Organization> => {
  const organization = reference.startsWith('org_')
    ? await readOrganization(q, reference)
    : await readOrganizationBySlug(q, reference)
  const own = within(caller)
  if (!organization || (own && organization.id !== own)) throw notFound('The organization')
  return organization
}

/** Merges two objects by key, so that callers send only the keys that they change. Null removes a key. */
const merge = <T extends object>(stored: T, change: T): T =>
  Object.fromEntries(
    Object.entries({ ...stored, ...change }).filter(([, value]) => value !== null && value !== undefined),
  ) as T

const mergeSettings = (stored: Settings, change: Settings): Settings => {
  const password_policy =
    change.password_policy && merge(stored.password_policy ?? {}, change.password_policy)
  return merge(stored, {
    ...change,
    ...(password_policy && {
      password_policy: Object.keys(password_policy).length > 0 ? password_policy : null,
    }),
  })
}

const searchableIn = ({ user_attributes }: Settings) => searchableNames(definitionsOf(user_attributes))
const loginDomainsIn = ({ login_domains }: Settings): readonly string[] => login_domains ?? []
const DOMAIN_TAKEN = 'A login domain belongs to another organization.'

/** Returns a problem for `domains` without `allowed_domains`, and for a new policy without a mail server. */
const registrationProblems = ({ mail }: Pick<Core, 'mail'>, old: Settings, now: Settings): Detail[] => {
  const refuse = (message: string): Detail[] => [
    { field: 'settings.registration', code: 'not_allowed', message },
  ]
  const { registration = 'off', allowed_domains } = now
  if (registration === 'domains' && !allowed_domains?.length)
    return refuse('Registration by domain needs `allowed_domains`.')
  return registration === 'off' || registration === old.registration || mail
    ? []
    : refuse(`Registration needs a mail server: ${SET_MAIL}`)
}

/** Returns a problem if the change turns on codes by mail and the server sends no mail. */
const emailCodeProblems = (
  { mail }: Pick<Core, 'mail'>,
  { email_code = 'off' }: Settings,
  old?: Settings,
): Detail[] =>
  email_code === 'off' || email_code === old?.email_code || mail
    ? []
    : [
        {
          field: 'settings.email_code',
          code: 'not_allowed',
          message: `Codes by mail need a mail server: ${SET_MAIL}`,
        },
      ]

/**
 * If browsers offer no passkeys at the server's URL, returns a problem for each setting that requires
 * passkeys. Such a setting would lock everyone out.
 */
const passkeyProblems = (
  { config }: Pick<Core, 'config'>,
  { passkey_required, console_acr }: Settings,
): Detail[] =>
  offersPasskeys(config)
    ? []
    : [
        ...(passkey_required ? ['passkey_required'] : []),
        ...(console_acr === 'phr' ? ['console_acr'] : []),
      ].map(name => ({
        field: `settings.${name}`,
        code: 'not_allowed',
        message: 'Passkeys need an https URL with a host name, or localhost.',
      }))

/** Removes the remembered browsers of an organization, in writes of bounded size. */
const forgetBrowsers = async ({ store }: Core, id: OrganizationId): Promise<void> => {
  const forgetSome = () => store.write(tx => removeRememberedOf(tx, id, DELETE_BATCH))
  while ((await forgetSome()) === DELETE_BATCH) await store.drained()
}

/**
 * Removes remembered browsers that are still stored although `remember_browser_days` was removed. Such
 * browsers remain if the process ended during the removal, or if a login in progress added a browser. They
 * are removed before the setting is set again, because otherwise users would need no second factor in them.
 */
const forgetLeftBrowsers = async (
  context: Core,
  reference: string,
  { settings }: UpdateOrganization,
  { caller }: ChangedBy,
): Promise<void> => {
  if (!settings?.remember_browser_days) return
  const stored = await context.store.read(q => getOrganization(q, caller, reference))
  if (!stored.settings.remember_browser_days) await forgetBrowsers(context, stored.id)
}

const SLUG_TAKEN = 'This slug is taken, or reserved by the operator.'

/** Creates an organization with the roles `admin` and `user`. The id is `input.id`, otherwise a new one. */
export const createOrganization = (
  context: Core,
  input: CreateOrganization & { id?: OrganizationId },
  by: ChangedBy,
): Promise<Organization> =>
  writeAs(context, by.caller, async tx => {
    const now = context.clock.now()
    const { name, slug, display_name = name } = input
    const id = (await chosenId(tx, 'organization', input.id)) ?? newId('org', now)
    const { assets, problems, ...given } = takeAssets(id, {}, input.settings)
    const settings = mergeSettings({}, given.settings)
    throwProblems([
      ...problems,
      ...registrationProblems(context, {}, settings),
      ...passkeyProblems(context, settings),
      ...emailCodeProblems(context, settings),
    ])
    const organization = {
      id,
      name,
      slug,
      display_name,
      settings,
      created_at: now,
      updated_at: now,
    }
    await insertOrganization(tx, organization).catch(whenTaken('slug', SLUG_TAKEN))
    await replaceLoginDomains(tx, id, loginDomainsIn(settings)).catch(
      whenTaken('settings.login_domains', DOMAIN_TAKEN),
    )
    await insertAssets(tx, assets)
    await insertBuiltInRoles(tx, organization.id, now)
    await recordChange(context, tx, by, {
      type: 'organization.created',
      target_id: organization.id,
      organization_id: organization.id,
      metadata: { name, slug },
    })
    return getOrganization(tx, by.caller, organization.id)
  })

/**
 * Returns the organization before the change, the settings after the change, the names of the changed fields,
 * and the problems of the change.
 *
 * @throws AppError 403 when a caller of a tenant changes login domains; the errors of `getOrganization`
 */
export const judgeChange = async (
  context: Pick<Core, 'mail' | 'config'>,
  q: Queries,
  reference: string,
  change: UpdateOrganization,
  by: ChangedBy,
) => {
  const organization = await getOrganization(q, by.caller, reference)
  const { assets, problems, ...given } = takeAssets(
    organization.id,
    organization.settings,
    change.settings ?? {},
  )
  const settings = mergeSettings(organization.settings, given.settings)
  const moved = !Bun.deepEquals(loginDomainsIn(settings), loginDomainsIn(organization.settings))
  // A tenant could claim the domain of another organization. The users of that organization would then get
  // the tenant's login page.
  if (moved && within(by.caller))
    throw forbidden('Only administrators of the default organization can set login domains.')
  const fields = changedFields(organizationItem(organization), { ...change, settings })
  return {
    organization,
    assets,
    settings,
    moved,
    fields,
    problems: [
      ...readOnlyProblems(fields, writable),
      ...problems,
      ...registrationProblems(context, organization.settings, settings),
      // Only sent settings are checked. Stored settings may require passkeys that browsers no longer offer
      // since the server's URL has changed. A check would then block changes of other settings.
      ...passkeyProblems(context, change.settings ?? {}),
      ...emailCodeProblems(context, settings, organization.settings),
    ],
  }
}

/** Changes an organization. Keys of `settings` and of `password_policy` that are not sent stay unchanged. */
export const updateOrganization = async (
  context: Core,
  reference: string,
  change: UpdateOrganization,
  by: ChangedBy,
): Promise<Organization> => {
  await forgetLeftBrowsers(context, reference, change, by)
  const { before, organization, request } = await writeAs(context, by.caller, async tx => {
    const judged = await judgeChange(context, tx, reference, change, by)
    const { organization, assets, settings, moved, fields, problems } = judged
    throwProblems(problems)
    if (fields.length === 0) return { before: organization, organization, request: undefined }
    const { name = organization.name, slug = organization.slug } = change
    // `outbound_allow` names this slug. A tenant that takes the slug could call hosts that the operator did
    // not allow for this tenant.
    if (fields.includes('slug') && within(by.caller) && isSlugNamed(context.config, slug))
      throw valueTaken('slug', SLUG_TAKEN)
    const { display_name = organization.display_name } = change
    const changed = { ...organization, name, slug, display_name, settings, updated_at: context.clock.now() }
    await saveOrganization(tx, changed).catch(whenTaken('slug', SLUG_TAKEN))
    if (moved)
      await replaceLoginDomains(tx, organization.id, loginDomainsIn(settings)).catch(
        whenTaken('settings.login_domains', DOMAIN_TAKEN),
      )
    await insertAssets(tx, assets)
    await removeUnusedAssets(tx, organization.id)
    await recordChange(context, tx, by, {
      type: 'organization.updated',
      target_id: organization.id,
      organization_id: organization.id,
      metadata: { fields, ...(fields.includes('settings') && { settings: recordedSettings(settings) }) },
    })
    const isReindexed = !Bun.deepEquals(searchableIn(settings), searchableIn(organization.settings))
    const request = isReindexed ? await beginIndex(tx, organization.id, context.clock.now()) : undefined
    return { before: organization, organization: changed, request }
  })
  await afterChange(context, async core => {
    await endKeptOut(core, before, organization.settings, by)
    if (before.settings.remember_browser_days && !organization.settings.remember_browser_days)
      await forgetBrowsers(core, organization.id)
  })
  if (request) await afterChange(context, core => rebuildIndex(core, request), true)
  return organization
}

/** Deletes an organization. Reads no longer find it. Its users and other rows are removed later (`purge`). */
export const deleteOrganization = (context: Core, reference: string, by: ChangedBy): Promise<void> =>
  writeAs(context, by.caller, async tx => {
    const { id, name, slug } = await getOrganization(tx, by.caller, reference)
    // Only administrators of the default organization can manage the whole instance.
    if (id === DEFAULT_ORGANIZATION) throw conflict('The default organization cannot be deleted.')
    await removeOrganization(tx, { id, slug }, context.clock.now())
    await recordChange(context, tx, by, {
      type: 'organization.deleted',
      target_id: id,
      // Events of the deleted organization are deleted too, so this event belongs to the default one.
      organization_id: DEFAULT_ORGANIZATION,
      metadata: { name, slug },
    })
  })
