import type { Caller, Core } from '#src/context.ts'
import {
  type ChangedBy,
  changedFields,
  mayActOn,
  permissionsOf,
  readOnlyProblems,
  recordChange,
  requireOrganization,
  roleChange,
} from '#src/directory/access.ts'
import { adminKeeper } from '#src/directory/administrators.ts'
import { MAX_RENAMED, renameAllowedGroup } from '#src/directory/clients/store.ts'
import { effectiveRoles, groupNames } from '#src/directory/effective-roles-store.ts'
import { chosenId, whenTaken } from '#src/directory/store.ts'
import { rolesToGive } from '#src/directory/users/rules.ts'
import { findUser, type UserRow } from '#src/directory/users/store.ts'
import { writeAs } from '#src/http/guard.ts'
import { within } from '#src/http/tenant.ts'
import { conflict, notFound, throwProblems } from '#src/lib/app-error.ts'
import { type GroupId, newId } from '#src/lib/ids.ts'
import type { Queries, Transaction } from '#src/storage/store.ts'
import { type CreateGroup, groupAnswer, type UpdateGroup, writable } from './schema.ts'
import {
  addMember,
  findGroup,
  type GroupWithRoles,
  insertGroup,
  removeGroup,
  removeMember,
  replaceGroupRoles,
  saveGroup,
} from './store.ts'

/**
 * Returns a group of an organization that the caller may act on.
 *
 * @throws AppError 404 when the group is unknown or of another organization
 */
export const getGroup = async (q: Queries, caller: Caller, id: string): Promise<GroupWithRoles> => {
  const group = await findGroup(q, id, within(caller))
  if (!group) throw notFound('The group')
  return group
}

/**
 * Returns the group that a call is about to change.
 *
 * @throws AppError 404 when the group is unknown or of another organization, 403 when its roles have
 * permissions that the caller lacks
 */
const getGroupToChange = async (q: Queries, { caller }: ChangedBy, id: string): Promise<GroupWithRoles> => {
  const group = await getGroup(q, caller, id)
  mayActOn(caller, permissionsOf(group.roles))
  return group
}

const NAME_TAKEN = whenTaken('name', 'The organization already has a group of this name.')

/**
 * Returns the organization, the ids of the roles, and the problems of a new group.
 *
 * @throws AppError 403 for roles with permissions that the caller lacks, 422 for an unknown organization
 */
export const judgeNew = async (
  q: Queries,
  { organization_id, roles = [] }: Partial<CreateGroup>,
  by: ChangedBy,
) => {
  const { id } = await requireOrganization(q, by.caller, organization_id)
  return { organization_id: id, ...(await rolesToGive(q, by, id, roles)) }
}

/**
 * Creates a group. The id is `input.id`, otherwise a new one.
 *
 * @throws AppError 409 when the name is taken; 422 for unknown roles; the errors of `judgeNew` and `chosenId`
 */
export const createGroup = (
  context: Core,
  input: CreateGroup & { id?: GroupId },
  by: ChangedBy,
): Promise<GroupWithRoles> =>
  writeAs(context, by.caller, async tx => {
    const { organization_id, ids, problems } = await judgeNew(tx, input, by)
    throwProblems(problems)
    const now = context.clock.now()
    const { name, description } = input
    const id = (await chosenId(tx, 'group', input.id)) ?? newId('grp', now)
    await insertGroup(
      tx,
      { id, organization_id, name, description, created_at: now, updated_at: now },
      ids,
    ).catch(NAME_TAKEN)
    const group = await getGroup(tx, by.caller, id)
    await recordGroup(context, tx, by, 'group.created', group, { name, roles: input.roles })
    return group
  })

/**
 * Returns the group before the change, the names of the changed fields, the ids of the new roles, and the
 * problems of the change.
 *
 * @throws AppError 403 when the old or new roles have permissions that the caller lacks, 404 when the group
 * is unknown or of another organization
 */
export const judgeChange = async (q: Queries, id: string, change: UpdateGroup, by: ChangedBy) => {
  const group = await getGroupToChange(q, by, id)
  const roles = await rolesToGive(q, by, group.organization_id, change.roles ?? [])
  const fields = changedFields(groupAnswer(group), change)
  return {
    group,
    fields,
    ids: roles.ids,
    problems: [...readOnlyProblems(fields, writable), ...roles.problems],
  }
}

/**
 * Replaces the name of a group in the clients that admit the members of the group. Otherwise a new name would
 * lock the members out, and another group that gets the old name would be admitted. The caller needs no
 * permission for the clients, because the clients admit the same users as before.
 *
 * @throws AppError 409 when too many clients name the group
 */
const renameInClients = async (
  context: Core,
  tx: Transaction,
  by: ChangedBy,
  group: GroupWithRoles,
  changed: GroupWithRoles,
): Promise<void> => {
  const clients = await renameAllowedGroup(tx, group, changed)
  if (!clients)
    throw conflict(
      `More than ${MAX_RENAMED} clients name this group in allowed_groups, so its name cannot be changed.`,
    )
  for (const target_id of clients)
    await recordChange(context, tx, by, {
      type: 'client.updated',
      target_id,
      organization_id: group.organization_id,
      metadata: { fields: ['allowed_groups'] },
    })
}

/**
 * Changes the given fields.
 *
 * @throws AppError 409 when the name is taken, when too many clients contain the name, or for
 * `last_administrator`; 422 with the problems of the change; the errors of `judgeChange`
 */
export const updateGroup = (
  context: Core,
  id: string,
  change: UpdateGroup,
  by: ChangedBy,
): Promise<GroupWithRoles> =>
  writeAs(context, by.caller, async tx => {
    const { group, fields, ids, problems } = await judgeChange(tx, id, change, by)
    throwProblems(problems)
    if (fields.length === 0) return group
    const { name = group.name, description = group.description } = change
    const changed = { ...group, name, description, updated_at: context.clock.now() }
    await saveGroup(tx, changed).catch(NAME_TAKEN)
    if (fields.includes('name')) await renameInClients(context, tx, by, group, changed)
    if (fields.includes('roles')) {
      const keepAdmin = await adminKeeper(tx, by, group.organization_id, group.name)
      await replaceGroupRoles(tx, group.id, ids)
      await keepAdmin()
    }
    await recordGroup(context, tx, by, 'group.updated', group, {
      name,
      fields,
      ...(change.roles &&
        fields.includes('roles') && { roles: change.roles, ...roleChange(namesOf(group), change.roles) }),
    })
    return getGroup(tx, by.caller, id)
  })

/** Deletes a group. Its members lose the inherited roles at once. */
export const deleteGroup = (context: Core, id: string, by: ChangedBy): Promise<void> =>
  writeAs(context, by.caller, async tx => {
    const group = await getGroupToChange(tx, by, id)
    const keepAdmin = await adminKeeper(tx, by, group.organization_id, group.name)
    await removeGroup(tx, group.id, context.clock.now())
    await keepAdmin()
    await recordGroup(context, tx, by, 'group.deleted', group, {
      name: group.name,
      ...roleChange(namesOf(group), []),
    })
  })

/**
 * Returns the group and the user for a change of membership. The caller needs the permissions of the user.
 * The caller also needs the permissions of the group, because a member inherits them.
 *
 * @throws AppError 404 when the group or user is unknown, or when they belong to different organizations; 403
 * for permissions that the caller lacks
 */
const getPair = async (q: Queries, by: ChangedBy, group_id: string, user_id: string) => {
  const group = await getGroup(q, by.caller, group_id)
  const user = await findUser(q, group.organization_id, user_id)
  if (!user) throw notFound('The user')
  mayActOn(by.caller, permissionsOf([...group.roles, ...(await effectiveRoles(q, user.id))]))
  return { group, user }
}

/**
 * Adds a member. If the user is already a member, changes nothing and records no event.
 *
 * @throws AppError the errors of `getPair` and `joinGroup`
 */
export const putMember = (context: Core, group_id: string, user_id: string, by: ChangedBy): Promise<void> =>
  writeAs(context, by.caller, async tx => {
    const { group, user } = await getPair(tx, by, group_id, user_id)
    await joinGroup(context, tx, group, user, by)
  })

/**
 * Maximum number of groups of a user. Each token request of the user reads the groups and their roles, at
 * most 100 roles of each group.
 */
const MAX_GROUPS = 200

/**
 * Adds a member in a write that has checked the caller's permissions.
 *
 * @throws AppError 409 when the user has too many groups
 */
export const joinGroup = async (
  context: Core,
  tx: Transaction,
  group: GroupWithRoles,
  user: UserRow,
  by: ChangedBy,
): Promise<void> => {
  if (!(await addMember(tx, group.id, user.id))) return
  if ((await groupNames(tx, user.id)).length > MAX_GROUPS)
    throw conflict(`The user already has ${MAX_GROUPS} groups, which is the maximum.`)
  await touch(context, tx, by, group, user, 'member_added')
}

/**
 * Removes a member.
 *
 * @throws AppError 404 when the user is not a member; 409 `last_administrator`; the errors of `getPair`
 */
export const deleteMember = (
  context: Core,
  group_id: string,
  user_id: string,
  by: ChangedBy,
): Promise<void> =>
  writeAs(context, by.caller, async tx => {
    const { group, user } = await getPair(tx, by, group_id, user_id)
    const keepAdmin = await adminKeeper(tx, by, group.organization_id, user.username)
    if (!(await removeMember(tx, group.id, user.id))) throw notFound('The user')
    await keepAdmin()
    await touch(context, tx, by, group, user, 'member_removed')
  })

const touch = async (
  context: Core,
  tx: Transaction,
  by: ChangedBy,
  group: GroupWithRoles,
  user: UserRow,
  change: 'member_added' | 'member_removed',
): Promise<void> => {
  await saveGroup(tx, { ...group, updated_at: context.clock.now() })
  const roles = namesOf(group)
  const metadata = {
    name: group.name,
    [change]: user.id,
    ...(change === 'member_added' ? roleChange([], roles) : roleChange(roles, [])),
  }
  await recordGroup(context, tx, by, 'group.updated', group, metadata, user)
}

const namesOf = ({ roles }: GroupWithRoles): string[] => roles.map(({ name }) => name)

const recordGroup = (
  context: Core,
  tx: Transaction,
  by: ChangedBy,
  type: 'group.created' | 'group.updated' | 'group.deleted',
  group: GroupWithRoles,
  metadata: Record<string, unknown>,
  member?: UserRow,
): Promise<void> =>
  recordChange(context, tx, by, {
    type,
    target_id: group.id,
    organization_id: group.organization_id,
    metadata,
    ...(member && { subject_id: member.id }),
  })
