import { useState } from 'preact/hooks'
import type { SessionAnswer } from '#src/sessions/schema.ts'
import { withQuery } from '../api.ts'
import { ConfirmCall } from '../confirm-call.tsx'
import { EndSession } from '../end-session.tsx'
import { useFilters } from '../filters.ts'
import { useList } from '../hooks.ts'
import { ListCard } from '../list.tsx'
import { may } from '../me.ts'
import { NameFilter } from '../name-filter.tsx'
import { UserLink, useOrganizations } from '../names.tsx'
import { OrganizationField } from '../organization-field.tsx'
import { Empty, Heading, When } from '../parts.tsx'
import { joined, programOf, say, words } from '../words.ts'

/** Screen of the list of sessions. */
export const SessionsScreen = () => {
  const { entered, filters, change, isFiltered } = useFilters(['user_id', 'client_id', 'organization_id'])
  const [isAsked, setAsked] = useState(false)
  const [ending, setEnding] = useState<SessionAnswer>()
  const list = useList<SessionAnswer>('/sessions', { ...filters, limit: 50 })
  const organizationOf = useOrganizations(list.items)
  const mayEnd = may('sessions:revoke')
  return (
    <>
      <Heading title={words.nav.sessions} lead={words.sessions.lead}>
        {mayEnd && isFiltered && list.items.length > 0 && (
          <button type="button" class="danger" onClick={() => setAsked(true)}>
            {words.sessions.endAll}
          </button>
        )}
      </Heading>
      <div class="filters">
        <NameFilter
          kind="user"
          label={words.user.one}
          id={entered.user_id}
          onId={user_id => change({ user_id })}
        />
        <NameFilter
          kind="client"
          label={words.client.one}
          id={entered.client_id}
          onId={client_id => change({ client_id })}
        />
        <OrganizationField
          id={entered.organization_id}
          onValue={organization_id => change({ organization_id })}
        />
      </div>
      <ListCard
        list={list}
        empty={<Empty title={isFiltered ? words.sessions.noneFits : words.sessions.none} icon="sessions" />}
        row={session => (
          <li key={session.id} class="row">
            <span>
              <UserLink id={session.user_id} username={session.username} />
              <span class="hint">
                {joined([
                  organizationOf(session.organization_id),
                  session.client_id,
                  session.location || session.ip_address,
                  programOf(session.user_agent),
                ])}
              </span>
            </span>
            <When time={session.last_active_at} />
            {mayEnd && (
              <button
                type="button"
                aria-label={joined([words.sessions.end, session.username, session.client_id])}
                onClick={() => setEnding(session)}
              >
                {words.sessions.end}
              </button>
            )}
          </li>
        )}
      />
      {ending && <EndSession session={ending} onEnded={list.reload} onClose={() => setEnding(undefined)} />}
      {isAsked && (
        <ConfirmCall
          title={words.sessions.endAllTitle}
          text={say(words.sessions.endAllText, { count: list.total })}
          action={words.sessions.endAllAction}
          method="DELETE"
          path={withQuery('/sessions', filters)}
          done={words.sessions.allEnded}
          onDone={() => {
            setAsked(false)
            list.reload()
          }}
          onClose={() => setAsked(false)}
        />
      )}
    </>
  )
}
