import type { GroupAnswer } from '#src/directory/groups/schema.ts'
import type { RoleAnswer } from '#src/directory/roles/schema.ts'
import { asProblem, callApi, type Problem } from '../api.ts'
import { Check, Refusals } from '../fields.tsx'
import { useList } from '../hooks.ts'
import { consoleLimits } from '../limits.ts' with { type: 'macro' }
import { ListFoot } from '../list.tsx'
import { may, me } from '../me.ts'
import { Card } from '../parts.tsx'
import { RoleChecks, useRoles } from '../role-checks.tsx'
import { person } from '../session.ts'
import { say, words } from '../words.ts'

type Role = (typeof RoleAnswer)['_output']
type Group = (typeof GroupAnswer)['_output']

/** A group that the new user is to join. */
export type Membership = Pick<Group, 'id' | 'name'>

/** A group that the user could not join, and the reason. */
export interface NotJoined {
  group: Membership
  problem: Problem
}

const { permissions } = consoleLimits()

/**
 * True when the caller may grant the permission. Any caller may grant `profile:*`. The caller may grant
 * another permission only if the caller has it, even if it has no effect in the caller's organization.
 */
const mayGive = (permission: string): boolean =>
  permission === '*'
    ? permissions.every(mayGive)
    : permission.startsWith('profile:') || (me.value?.permissions.includes(permission) ?? false)

/** True when the caller may grant the role. */
export const isGrantable = (role: Role): boolean => role.permissions.every(mayGive)

/**
 * Reads the roles and groups of the organization `wanted`, or of the caller's organization if `wanted` is
 * empty. Groups are read only if the caller may read roles and groups, and change groups. A group is offered
 * when the caller may grant all of its roles. A role on a page that is not loaded yet counts as grantable,
 * because the server decides in any case.
 */
export const useGrants = (wanted: string) => {
  const organization_id = wanted || person.value?.organization_id
  const seesRoles = may('roles:read')
  const mayJoin = seesRoles && may('groups:read') && may('groups:update')
  const roles = useRoles(organization_id, seesRoles)
  const list = useList<Group>(mayJoin && '/groups', { organization_id, limit: 50 })
  const isOffered = (name: string) => {
    const role = roles.known.get(name)
    return !role || isGrantable(role)
  }
  // Groups are offered only after the first page of roles is loaded, because the roles of a group decide
  // whether the caller may grant it.
  const groups = roles.known.size > 0 ? list.items.filter(group => group.roles.every(isOffered)) : []
  return { seesRoles, roles, list, groups }
}

/** Adds a user to groups. Returns the groups that the user could not join. */
export const join = async (user_id: string, groups: readonly Membership[]): Promise<NotJoined[]> => {
  const failed: NotJoined[] = []
  for (const group of groups)
    await callApi('PUT', `/groups/${group.id}/members/${user_id}`).catch(error =>
      failed.push({ group, problem: asProblem(error) }),
    )
  return failed
}

/** Chooses roles and groups of a new user. */
export const Grants = (props: {
  grants: ReturnType<typeof useGrants>
  roles: readonly string[]
  onRoles(roles: string[]): void
  groups: readonly Membership[]
  onGroups(groups: Membership[]): void
}) => {
  const { grants, roles, groups } = props
  return (
    <>
      {grants.seesRoles && (
        <Card title={words.user.roles} lead={words.user.rolesLead}>
          <RoleChecks roles={grants.roles} chosen={roles} isOffered={isGrantable} onChosen={props.onRoles} />
          <Refusals name="roles" />
        </Card>
      )}
      {(grants.groups.length > 0 || grants.list.hasMore) && (
        <Card title={words.access.groups}>
          <div class="checks">
            {grants.groups.map(({ id, name, roles: given }) => (
              <Check
                key={id}
                label={name}
                hint={
                  given.length > 0
                    ? say(words.access.gives, { roles: given.join(', ') })
                    : words.access.givesNone
                }
                checked={groups.some(each => each.id === id)}
                onChecked={isOn =>
                  props.onGroups(isOn ? [...groups, { id, name }] : groups.filter(each => each.id !== id))
                }
              />
            ))}
          </div>
          {grants.list.hasMore && <ListFoot list={grants.list} />}
        </Card>
      )}
    </>
  )
}
