import type { GroupAnswer } from '#src/directory/groups/schema.ts'
import { CONSOLE_CLIENT } from '#src/lib/ids.ts'
import { mayBeDynamic } from '#src/protocol/oauth/dynamic-id.ts'
import { type Listed, useList } from '../hooks.ts'
import { Icon } from '../icons.tsx'
import { ShortList } from '../list.tsx'
import { may } from '../me.ts'
import { When } from '../parts.tsx'
import { joined, say, words } from '../words.ts'

type Group = (typeof GroupAnswer)['_output']

const text = words.access

/** Reads the groups of a user, if the caller may read groups. */
export const useGroups = (user_id: string): Listed<Group> =>
  useList<Group>(may('groups:read') && '/groups', { user_id, limit: 100 })

/** Shows a group as a row that links to it. */
export const GroupRow = ({ group, about }: { group: Group; about: string }) => (
  <li>
    <a class="row link" href={`/console/groups/${group.id}`}>
      <span>
        <strong>{group.name}</strong>
        <span class="hint">{about}</span>
      </span>
      <Icon name="right" />
    </a>
  </li>
)

/**
 * Says that a list of groups or users is empty. Links to all groups or users if the caller may change them.
 */
export const NotGiven = (props: { text: string; by: 'groups' | 'users'; action: string }) => (
  <>
    {props.text}
    {may(`${props.by}:update`) && (
      <>
        {' · '}
        <a href={`/console/${props.by}`}>{props.action}</a>
      </>
    )}
  </>
)

/** Shows the groups of a user, and the roles that each group grants. */
export const Groups = ({ groups }: { groups: Listed<Group> }) => (
  <ShortList
    title={text.groups}
    list={groups}
    empty={<NotGiven text={text.noGroups} by="groups" action={text.joinGroup} />}
    row={group => (
      <GroupRow
        key={group.id}
        group={group}
        about={group.roles.length > 0 ? say(text.gives, { roles: group.roles.join(', ') }) : text.givesNone}
      />
    )}
  />
)

/** Shows the groups that grant a role. */
export const Givers = ({ role, organization_id }: { role: string; organization_id: string }) => (
  <ShortList
    title={text.givenBy}
    list={useList<Group>('/groups', { role, organization_id, limit: 100 })}
    empty={<NotGiven text={text.noGivers} by="groups" action={text.giveGroup} />}
    row={group => (
      <GroupRow
        key={group.id}
        group={group}
        about={say(words.common.members, { count: group.member_count })}
      />
    )}
  />
)

interface Application {
  client_id: string
  name: string
  scopes: string[]
  granted_at: string | null
  sessions: number
  last_active_at: string | null
}

/**
 * Removes an API's id, which the admin API puts before the names of the API's scopes. A scope of a client may
 * begin with `api_` too, so the whole id is matched.
 */
const scopeName = (scope: string): string => scope.replace(/^api_[\da-f-]{36}\//i, '')

/**
 * True for an application whose screen the caller may open. The console and dynamic applications have no
 * screen. An id with `https:` counts as dynamic, because the API does not say who registered it.
 */
const hasScreen = (client_id: string): boolean =>
  may('clients:read') && client_id !== CONSOLE_CLIENT && !mayBeDynamic(client_id)

/** Shows the applications that a user has used, with consent and sessions. */
export const Applications = ({ id }: { id: string }) => (
  <ShortList
    title={text.applications}
    list={useList<Application>(`/users/${id}/applications`, {})}
    empty={text.noApplications}
    row={({ client_id, name, scopes, sessions, last_active_at }) => {
      const facts = (
        <>
          <span>
            <strong>{name}</strong>
            <span class="hint">
              {joined([
                say(text.sessions, { count: sessions }),
                scopes.length > 0
                  ? say(text.consented, { scopes: scopes.map(scopeName).join(', ') })
                  : text.noConsent,
              ])}
            </span>
          </span>
          {last_active_at && <When time={last_active_at} />}
        </>
      )
      return hasScreen(client_id) ? (
        <li key={client_id}>
          <a class="row link" href={`/console/clients/${encodeURIComponent(client_id)}`}>
            {facts}
            <Icon name="right" />
          </a>
        </li>
      ) : (
        <li key={client_id} class="row">
          {facts}
        </li>
      )
    }}
  />
)
