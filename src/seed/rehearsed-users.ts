import { foldIdentifier } from '#src/lib/email.ts'
import type { RehearsedUsers } from '#src/storage/store.ts'
import type { ReadSeed } from './read.ts'

/**
 * Returns the stored users that the rehearsal of a file needs. A run that prunes users needs all users. Any
 * other run needs the users that the file names, also as members of groups, and the stored members of the
 * groups that the file names.
 */
export const usersOf = ({ entries, present }: ReadSeed, prune = false): RehearsedUsers => {
  if (prune && present.has('users')) return 'all'
  // If the file gives an organization a new slug, the database still has the old slug. The organization is
  // therefore found by its id.
  const ids = new Map(entries.organizations.map(({ value: { id, slug } }) => [slug, id]))
  const homeOf = (slug: string): string => ids.get(slug) ?? slug
  const users = entries.users.map(({ value }) => value)
  const groups = entries.groups.map(({ value }) => value)
  return {
    named: [
      ...users.map(({ organization, username, email }) => ({
        organization: homeOf(organization),
        username: foldIdentifier(username),
        email: foldIdentifier(email),
      })),
      ...groups.flatMap(({ organization, members }) =>
        members.map(name => ({ organization: homeOf(organization), username: foldIdentifier(name) })),
      ),
    ],
    ids: users.flatMap(({ id }) => id ?? []),
    // The file has the new name of a renamed group, so the group is found by its id.
    groups: groups.flatMap(({ id, name }) => (id ? [id, name] : name)),
  }
}
