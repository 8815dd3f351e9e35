import { useState } from 'preact/hooks'
import type { SessionAnswer } from '#src/sessions/schema.ts'
import { useAction } from '../action.ts'
import { withQuery } from '../api.ts'
import { ConfirmCall } from '../confirm-call.tsx'
import { useList } from '../hooks.ts'
import { ListCard } from '../list.tsx'
import { NameFilter } from '../name-filter.tsx'
import { Empty, Heading, Refused, When } from '../parts.tsx'
import { joined, programOf, say, words } from '../words.ts'

/** Screen of the list of sessions. */
export const SessionsScreen = () => {
  const [filters, setFilters] = useState({ user_id: '', client_id: '' })
  const [isAsked, setAsked] = useState(false)
  const list = useList<SessionAnswer>('/sessions', { ...filters, limit: 50 })
  const one = useAction(list.reload)
  const isFiltered = filters.user_id !== '' || filters.client_id !== ''
  return (
    <>
      <Heading title={words.nav.sessions} lead={words.sessions.lead}>
        {isFiltered && list.items.length > 0 && (
          <button type="button" class="danger" onClick={() => setAsked(true)}>
            {words.sessions.endAll}
          </button>
        )}
      </Heading>
      <div class="filters">
        <NameFilter
          kind="user"
          label={words.user.one}
          onId={user_id => setFilters(filters => ({ ...filters, user_id }))}
        />
        <NameFilter
          kind="client"
          label={words.client.one}
          onId={client_id => setFilters(filters => ({ ...filters, client_id }))}
        />
      </div>
      <Refused problem={one.problem} />
      <ListCard
        list={list}
        empty={<Empty title={isFiltered ? words.sessions.noneFits : words.sessions.none} icon="sessions" />}
        row={session => (
          <li key={session.id} class="row">
            <span>
              <a href={`/console/users/${session.user_id}`}>
                <strong>{session.username}</strong>
              </a>
              <span class="hint">
                {joined([
                  session.client_id,
                  session.location || session.ip_address,
                  programOf(session.user_agent),
                ])}
              </span>
            </span>
            <When time={session.last_active_at} />
            <button
              type="button"
              onClick={() => void one.run('DELETE', `/sessions/${session.id}`, words.sessions.ended)}
            >
              {words.sessions.end}
            </button>
          </li>
        )}
      />
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
