import type { GroupAnswer } from '#src/directory/groups/schema.ts'
import type { RoleAnswer } from '#src/directory/roles/schema.ts'
import { asProblem, callApi, type Problem } from '../api.ts'
import { Check, Refusals } from '../fields.tsx'
import { type PageOf, useObject } from '../hooks.ts'
import { consoleLimits } from '../limits.ts' with { type: 'macro' }
import { may } from '../me.ts'
import { Card } from '../parts.tsx'
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
 * True when the caller may grant the permission: the caller has it, or it is for the own profile, which each
 * user may read and change.
 */
const mayGive = (permission: string): boolean =>
  permission === '*' ? permissions.every(mayGive) : permission.startsWith('profile:') || may(permission)

/** Reads the roles and groups of the caller's organization that the caller may grant. */
export const useGrants = (): { roles: Role[] | undefined; groups: Group[] } => {
  const list = (kind: string) => `/${kind}?limit=100&organization_id=${person.value?.organization_id}`
  const seesRoles = may('roles:read')
  const mayJoin = seesRoles && may('groups:read') && may('groups:update')
  const all = useObject<PageOf<Role>>(seesRoles ? list('roles') : undefined).data?.data
  const groups = useObject<PageOf<Group>>(mayJoin ? list('groups') : undefined).data?.data ?? []
  const roles = all?.filter(role => role.permissions.every(mayGive))
  const isGiven = (name: string) => roles?.some(role => role.name === name)
  return { roles, groups: groups.filter(group => group.roles.every(isGiven)) }
}

/** Adds a user to groups. Returns the groups that refused. */
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
      {grants.roles && (
        <Card title={words.user.roles} lead={words.user.rolesLead}>
          <div class="checks">
            {grants.roles.map(({ name, description }) => (
              <Check
                key={name}
                label={name}
                hint={description}
                checked={roles.includes(name)}
                onChecked={isOn =>
                  props.onRoles(isOn ? [...roles, name].sort() : roles.filter(each => each !== name))
                }
              />
            ))}
          </div>
          <Refusals name="roles" />
        </Card>
      )}
      {grants.groups.length > 0 && (
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
        </Card>
      )}
    </>
  )
}
