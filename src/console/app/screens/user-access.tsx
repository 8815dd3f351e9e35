import type { GroupAnswer } from '#src/directory/groups/schema.ts'
import { type Loaded, type PageOf, useObject } from '../hooks.ts'
import { Icon, type IconName } from '../icons.tsx'
import { Rows } from '../list.tsx'
import { Card, Empty, When } from '../parts.tsx'
import { joined, say, words } from '../words.ts'

type Group = (typeof GroupAnswer)['_output']

const text = words.access

/** Reads the groups of a user. */
export const useGroups = (user_id: string): Loaded<PageOf<Group>> =>
  useObject<PageOf<Group>>(`/groups?${new URLSearchParams({ user_id, limit: '100' })}`)

/** Shows a short list in a card. The card also shows that the list is loading, has failed or is empty. */
const Few = <T,>(props: {
  title: string
  loaded: Loaded<{ data: T[] }>
  empty: [icon: IconName, title: string, text?: string]
  row(item: T): preact.JSX.Element
}) => {
  const { loaded, empty } = props
  return (
    <Card title={props.title} flush>
      <Rows
        list={loaded}
        items={loaded.data?.data}
        placeholders={2}
        empty={
          <Empty title={empty[1]} icon={empty[0]}>
            {empty[2]}
          </Empty>
        }
        row={props.row}
      />
    </Card>
  )
}

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

/** Shows the groups of a user, and the roles that each grants. */
export const Groups = ({ groups }: { groups: Loaded<PageOf<Group>> }) => (
  <Few
    title={text.groups}
    loaded={groups}
    empty={['groups', text.noGroups, text.noGroupsText]}
    row={group => (
      <GroupRow
        key={group.id}
        group={group}
        about={group.roles.length > 0 ? say(text.gives, { roles: group.roles.join(', ') }) : text.givesNone}
      />
    )}
  />
)

/** Returns the groups that grant a role. */
export const Givers = ({ role, organization_id }: { role: string; organization_id: string }) => (
  <Few
    title={text.givenBy}
    loaded={useObject<PageOf<Group>>(
      `/groups?${new URLSearchParams({ role, organization_id, limit: '100' })}`,
    )}
    empty={['groups', text.noGivers]}
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

/** Returns the name of a scope without the id of its API, which precedes it in the database. */
const scopeName = (scope: string): string => scope.replace(/^api_[^/]+\//, '')

/** Shows the applications that a user has used, with consent and sessions. */
export const Applications = ({ id }: { id: string }) => (
  <Few
    title={text.applications}
    loaded={useObject<{ data: Application[] }>(`/users/${id}/applications`)}
    empty={['clients', text.noApplications]}
    row={({ client_id, name, scopes, sessions, last_active_at }) => (
      <li key={client_id}>
        <a class="row link" href={`/console/clients/${encodeURIComponent(client_id)}`}>
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
          <Icon name="right" />
        </a>
      </li>
    )}
  />
)
