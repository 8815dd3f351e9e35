import { findGroup } from '#src/directory/groups/store.ts'
import { readOrganizationBySlug } from '#src/directory/organizations/store.ts'
import { NO_ORGANIZATION } from '#src/lib/ids.ts'
import type { Queries } from '#src/storage/store.ts'
import { PART } from './members.ts'
import type { ReadSeed } from './read.ts'
import { seedSections } from './schema.ts'
import { findGroupNamed } from './store.ts'

/**
 * Maximum number of entries of a file that is applied in one transaction. A longer transaction would delay
 * all other writes too much.
 */
const SHORT = 25

/**
 * True for a file that is applied in one transaction. Ten members that a group has, or should have, count as
 * an entry.
 */
export const isShort = async (q: Queries, { entries }: ReadSeed): Promise<boolean> => {
  let size = seedSections.reduce((sum, section) => sum + entries[section].length, 0)
  if (size > SHORT) return false
  // The file can give an organization a new slug.
  const ids = new Map(entries.organizations.map(({ value: { id, slug } }) => [slug, id]))
  for (const { value } of entries.groups) {
    const { id, name, organization } = value
    const home =
      ids.get(organization) ?? (await readOrganizationBySlug(q, organization))?.id ?? NO_ORGANIZATION
    const group = await (id ? findGroup(q, id) : findGroupNamed(q, home, name))
    size += Math.floor((value.members.length + (group?.member_count ?? 0)) / PART)
  }
  return size <= SHORT
}
