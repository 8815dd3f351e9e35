import { type ScalarTag, stringify } from 'yaml'
import type { Core } from '#src/context.ts'
import { openSecret } from '#src/directory/identity-providers/secret.ts'
import { contentOf, withContents } from '#src/directory/organizations/assets.ts'
import { Settings } from '#src/directory/organizations/schema.ts'
import { pictureContent } from '#src/directory/users/picture.ts'
import { inDoubleQuotes } from '#src/lib/quoted.ts'
import type { Queries } from '#src/storage/store.ts'
import { openWebhookSecret, secretText } from '#src/webhooks/signature.ts'
import { rightsFields, Seed, type SeedSection, seedSections } from './schema.ts'
import {
  allApis,
  allClients,
  allGroups,
  allOrganizations,
  allProviders,
  allRoles,
  allUsers,
  allWebhooks,
  membersOf,
  rolesOfGroups,
} from './store.ts'

type Row = Record<string, unknown>

/** Parts that an export contains only on request. */
export interface ExportOptions {
  secrets?: boolean | undefined
  pictures?: boolean | undefined
}

/**
 * Exports the instance as a file that `apply` reads. With `secrets` the file also has the hashes of passwords
 * and of client secrets. It then also has two kinds of secrets in plain text: secrets that Gatehouse uses at
 * identity providers, and secrets of webhooks. With `pictures` the file also has the pictures of people, of
 * up to 350 kB each. The file omits the first admin client, because every instance has its own.
 */
export const exportSeed = async (base: Core, options: ExportOptions): Promise<Record<string, Row[]>> => {
  const rows = await base.store.read(q => readAll(base, q, options))
  return Object.fromEntries(
    seedSections.flatMap(section => {
      const entries = rows[section].map(row => withoutDefaults(section, row))
      return entries.length > 0 ? [[section, entries]] : []
    }),
  )
}

/**
 * Texts that a tool for YAML 1.1 may read as another value, such as `=`, `12:30` and `:on`, or as several
 * lines; those with tabs, which it may refuse; and lines after white space, which `stringify` writes wrongly.
 */
const misread = /^(?:\s|\P{L}.*$)|(?!\n)[\p{C}\p{Zl}\p{Zp}]/u
const quoted: ScalarTag = {
  tag: 'tag:yaml.org,2002:str',
  default: true,
  identify: value => typeof value === 'string' && misread.test(value),
  resolve: text => text,
  stringify: ({ value }) => inDoubleQuotes(String(value)),
}

/**
 * Renders a seed as YAML. Without secrets the file is suitable for version control. Tools for YAML 1.1 read
 * the same values: with `compat`, words such as `no` have quotes.
 */
export const renderSeed = (seed: Record<string, Row[]>): string =>
  stringify(seed, { lineWidth: 0, compat: 'yaml-1.1', customTags: tags => [quoted, ...tags] })

/** Returns an object in which each name is null, the default of a setting. */
const unset = (names: readonly string[]) => Object.fromEntries(names.map(name => [name, null]))
const passwordRules = Object.keys(Settings.shape.password_policy.unwrap().unwrap().shape)

/** Returns settings with all that give rights. An apply changes only the given rules of a password policy. */
const withRights = ({ password_policy, ...settings }: Settings): Row => ({
  ...unset(rightsFields.organizations),
  ...settings,
  ...(password_policy && { password_policy: { ...unset(passwordRules), ...password_policy } }),
})

const readAll = async (
  base: Core,
  q: Queries,
  { secrets, pictures }: ExportOptions,
): Promise<Record<SeedSection, Row[]>> => {
  const organizations = await allOrganizations(q)
  const slugs = new Map(organizations.map(({ id, slug }) => [id, slug]))
  const homed = <T extends { organization_id: (typeof organizations)[number]['id'] }>(row: T) => ({
    ...row,
    organization: slugs.get(row.organization_id),
  })
  const groups = await allGroups(q)
  const groupRoles = Map.groupBy(await rolesOfGroups(q), ({ group_id }) => group_id)
  const clients = await allClients(q)
  return {
    organizations: await Promise.all(
      organizations.map(async row => ({
        ...row,
        settings: withRights(await withContents(q, row.settings)),
      })),
    ),
    roles: (await allRoles(q)).map(homed),
    users: await Promise.all(
      (await allUsers(q)).map(async ({ password_hash, password_temporary, picture, ...user }) => ({
        ...homed(user),
        ...(secrets && password_hash && { password_hash, password_temporary }),
        ...(pictures && picture && { picture: await pictureContent(q, picture) }),
      })),
    ),
    groups: await Promise.all(
      groups.map(async group => ({
        ...homed(group),
        roles: (groupRoles.get(group.id) ?? []).map(({ name }) => name),
        members: (await membersOf(q, group.id)).map(({ username }) => username),
      })),
    ),
    clients: await Promise.all(
      clients
        .filter(({ client_id }) => client_id !== base.config.admin_client_id)
        .map(async client => ({
          ...homed(client),
          ...(client.logo && { logo: await contentOf(q, client.logo) }),
          ...(secrets && client.secret_hash && { client_secret_hash: client.secret_hash }),
        })),
    ),
    apis: (await allApis(q)).map(homed),
    identity_providers: (await allProviders(q)).map(provider => {
      const { settings, roles, ...row } = provider
      const secret = secrets && openSecret(base, provider)
      return {
        ...homed(row),
        ...settings,
        default_roles: roles.map(({ name }) => name),
        client_secret: secret || undefined,
      }
    }),
    webhooks: (await allWebhooks(q)).map(hook => ({
      ...homed(hook),
      secret: secrets ? secretText(hook.signature, openWebhookSecret(base, hook)) : undefined,
    })),
  }
}

/**
 * Returns the fields that give rights, and those that differ from their defaults. A reviewer thus reads only
 * the values that somebody has chosen, and a later `plan` of the file shows each right that was added.
 */
const withoutDefaults = (section: SeedSection, row: Row): Row => {
  const shape = shapeOf(section, row)
  const rights: readonly string[] = rightsFields[section]
  return Object.fromEntries(
    Object.entries(shape).flatMap(([name, field]) => {
      const usual = field.safeParse(undefined)
      const value = row[name]
      const isUsual = usual.success && Bun.deepEquals(usual.data, value)
      return value === undefined || (isUsual && !rights.includes(name)) ? [] : [[name, value]]
    }),
  )
}

type Field = { safeParse(value: unknown): { success: boolean; data?: unknown } }

const shapeOf = (section: SeedSection, row: Row): Record<string, Field> => {
  const entry = Seed.shape[section].unwrap().element
  if (!('options' in entry)) return entry.shape
  return entry.options.find(option => option.shape.type.value === row.type)?.shape ?? {}
}
