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

/**
 * Returns the sections that an entry refers to. A client refers to roles or groups only if it names some in
 * `allowed_roles` or `allowed_groups`.
 */
export const referredBy = (section: SeedSection, value: SeedOf<SeedSection>): readonly SeedSection[] => {
  const { allowed_roles = [], allowed_groups = [] } = value as Partial<SeedOf<'clients'>>
  return [
    ...referred[section],
    ...(allowed_roles.length > 0 ? (['roles'] as const) : []),
    ...(allowed_groups.length > 0 ? (['groups'] as const) : []),
  ]
}
