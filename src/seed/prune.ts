import type { Core } from '#src/context.ts'
import { DEFAULT_ORGANIZATION } from '#src/lib/ids.ts'
import { seedKindOf } from './kinds.ts'
import { type Entry, entryName, type ReadSeed, uniqueName } from './read.ts'
import { type SeedSection, seedSections } from './schema.ts'
import type { Change, Step } from './steps.ts'
import * as stored from './store.ts'
import type { SeedRun } from './transaction.ts'

/** True for a row that `prune` must keep. Built-in roles need no check, because `allRoles` omits them. */
const isKept = (base: Core, section: SeedSection, row: { id?: string; client_id?: string }): boolean =>
  (section === 'organizations' && row.id === DEFAULT_ORGANIZATION) ||
  (section === 'clients' && row.client_id === base.config.admin_client_id)

const all = {
  organizations: stored.allOrganizations,
  roles: stored.allRoles,
  users: stored.allUsers,
  groups: stored.allGroups,
  clients: stored.allClients,
  apis: stored.allApis,
  identity_providers: stored.allProviders,
  webhooks: stored.allWebhooks,
}

/**
 * Deletes stored entries that the file does not name. Sections that the file does not have stay unchanged,
 * except for the entries of a deleted organization, which are deleted with it.
 */
export async function* prune({ context, tx }: SeedRun, { entries, present }: ReadSeed): AsyncGenerator<Step> {
  // The file can give an organization a new slug. Names in the file begin with the new slug.
  const slugs = new Map([
    ...(await stored.allOrganizations(tx)).map(({ id, slug }) => [id, slug] as const),
    ...entries.organizations.flatMap(({ value: { id, slug } }) => (id ? [[id, slug] as const] : [])),
  ])
  for (const section of seedSections) {
    if (!present.has(section)) continue
    // The rows are read after the organizations are pruned, because this also deletes their users and other
    // rows.
    const rows = await all[section](tx)
    const ids = new Set<string>(rows.flatMap(row => ('id' in row ? [row.id] : [])))
    // An entry that is stored under its id does not keep another object that has its new name.
    const wanted = new Set<string>(
      (entries[section] as Entry[]).map(({ value }) =>
        'id' in value && value.id && ids.has(value.id) ? value.id : uniqueName(section, value),
      ),
    )
    for (const row of rows) {
      const organization = 'organization_id' in row ? slugs.get(row.organization_id) : undefined
      const entry = { ...row, organization }
      if (
        wanted.has(uniqueName(section, entry)) ||
        ('id' in row && wanted.has(row.id)) ||
        isKept(context, section, row)
      )
        continue
      const name = entryName(section, entry)
      const run = async (work: SeedRun): Promise<Change> => {
        await seedKindOf(section).remove(work.context, row)
        return { action: 'delete', section, name }
      }
      yield { path: `${section}: ${name}`, run }
    }
  }
}
