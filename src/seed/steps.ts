import { uniqueName } from './read.ts'
import type { SeedOf, SeedSection } from './schema.ts'
import type { SeedRun } from './transaction.ts'

/** A change that `apply` makes and `plan` lists. */
export interface Change {
  action: 'create' | 'update' | 'delete'
  section: SeedSection
  name: string
  /** The changed fields of an update. */
  fields?: string[]
}

/** Work on one entry: an entry of the file, or a stored entry that is pruned. */
export interface Step {
  path: string
  /** Key of the entry of the file ({@link entryKey}). */
  key?: string
  /** Resolves to the change, or to undefined when the entry is up to date. */
  run(work: SeedRun): Promise<Change | undefined>
}

const referred: Record<SeedSection, readonly SeedSection[]> = {
  organizations: [],
  roles: ['organizations'],
  users: ['organizations', 'roles'],
  groups: ['organizations', 'roles', 'users'],
  clients: ['organizations'],
  apis: ['organizations', 'roles', 'clients'],
  identity_providers: ['organizations', 'roles'],
  webhooks: ['organizations'],
}

/** Returns a text that identifies an entry in the file. */
export const entryKey = (section: SeedSection, value: object): string =>
  `${section} ${uniqueName(section, value)}`

/** Fields by which an entry names its organization, roles and groups. */
type Names = Partial<
  Pick<SeedOf<'users'>, 'organization' | 'roles'> &
    Pick<SeedOf<'clients'>, 'allowed_roles' | 'allowed_groups'> &
    Pick<SeedOf<'identity_providers'>, 'default_roles'>
>

/** Fields by which an API names roles and clients. */
type ApiNames = Partial<Pick<SeedOf<'apis'>, 'scopes' | 'served_by' | 'clients'>>

/**
 * Returns the sections that an entry refers to, and the keys of the entries that it names ({@link entryKey}).
 * A client refers to roles or groups only if it names some in `allowed_roles` or `allowed_groups`. Members of
 * a group are left out, because `isNamed` of a run covers them.
 */
export const referredBy = (section: SeedSection, value: SeedOf<SeedSection>): readonly string[] => {
  const names = value as Names
  const { organization, roles = [], allowed_roles = [], allowed_groups = [], default_roles = [] } = names
  // `scopes` of a client has another type.
  const {
    scopes = [],
    served_by = [],
    clients = [],
  }: ApiNames = section === 'apis' ? (value as SeedOf<'apis'>) : {}
  const scopeRoles = scopes.flatMap(({ role }) => role ?? [])
  const keys = (section: SeedSection, list: readonly string[]) =>
    list.map(name => entryKey(section, { organization, name }))
  return [
    ...referred[section],
    ...(allowed_roles.length > 0 ? ['roles'] : []),
    ...(allowed_groups.length > 0 ? ['groups'] : []),
    entryKey('organizations', { slug: organization }),
    ...keys('roles', [...roles, ...allowed_roles, ...default_roles, ...scopeRoles]),
    ...keys('groups', allowed_groups),
    ...[...served_by, ...clients.map(({ client_id }) => client_id)].map(client_id =>
      entryKey('clients', { client_id }),
    ),
  ]
}
