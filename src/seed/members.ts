import { serverActor as by } from '#src/directory/access.ts'
import { deleteMember, putMember } from '#src/directory/groups/service.ts'
import { type GroupWithRoles, isMember } from '#src/directory/groups/store.ts'
import { throwProblems } from '#src/lib/app-error.ts'
import { foldIdentifier } from '#src/lib/email.ts'
import type { UserId } from '#src/lib/ids.ts'
import type { SeedOf } from './schema.ts'
import { findUserNamed, membersOf } from './store.ts'
import type { SeedRun } from './transaction.ts'

/** Maximum changes of members in one part. A part takes about as long as a new user. */
export const PART = 10

/**
 * Makes the members of a group match its entry. In a run of small transactions the first part of the changes
 * is made now and the others later, because a group can have 100,000 members.
 */
export const setMembers = async (
  work: SeedRun,
  group: GroupWithRoles,
  { organization, members }: SeedOf<'groups'>,
): Promise<void> => {
  const present = new Map(
    (await membersOf(work.tx, group.id)).map(({ id, username }) => [foldIdentifier(username), id]),
  )
  const wanted = new Map(members.map(name => [foldIdentifier(name), name]))
  const joining = [...wanted].flatMap(([key, name]) => (present.has(key) ? [] : name))
  const leaving = [...present].flatMap(([key, id]) => (wanted.has(key) ? [] : id))
  const parts = [
    ...partsOf(work, joining).map(names => (inner: SeedRun) => join(inner, group, organization, names)),
    ...partsOf(work, leaving).map(ids => (inner: SeedRun) => leave(inner, group, ids)),
  ]
  for (const [i, part] of parts.entries())
    if (i > 0 && work.later) work.later(part)
    else await part(work)
}

const partsOf = <T>({ later }: SeedRun, all: T[]): T[][] =>
  later
    ? Array.from({ length: Math.ceil(all.length / PART) }, (_, i) => all.slice(i * PART, (i + 1) * PART))
    : [all]

const join = async (
  { context, tx, isNamed }: SeedRun,
  { id, organization_id }: GroupWithRoles,
  organization: string,
  names: string[],
): Promise<undefined> => {
  const wanted = await Promise.all(
    names.map(async name => ({ name, user: await findUserNamed(tx, organization_id, name) })),
  )
  const missing = wanted.filter(({ name, user }) => !user && !isNamed(organization, name))
  throwProblems(
    missing.map(({ name }) => ({
      field: 'members',
      code: 'unknown_user',
      message: `The organization has no user ${name}.`,
    })),
  )
  for (const { user } of wanted) if (user) await putMember(context, id, user.id, by)
}

/** Removes members. A concurrent change may have removed some of them since the first part. */
const leave = async (
  { context, tx }: SeedRun,
  { id }: GroupWithRoles,
  members: UserId[],
): Promise<undefined> => {
  for (const member of members)
    if (await isMember(tx, id, member)) await deleteMember(context, id, member, by)
}
