import { useState } from 'preact/hooks'
import type { SessionAnswer } from '#src/sessions/schema.ts'
import { useAction } from '../action.ts'
import { withQuery } from '../api.ts'
import { ConfirmCall } from '../confirm-call.tsx'
import { useList, useSettled } from '../hooks.ts'
import { ListCard } from '../list.tsx'
import { Empty, Heading, Refused, When } from '../parts.tsx'
import { programOf, say, words } from '../words.ts'

/** Screen of the list of sessions. */
export const SessionsScreen = () => {
  const [filters, setFilters] = useState({ user_id: '', client_id: '' })
  const [isAsked, setAsked] = useState(false)
  const settled = useSettled(filters, 300)
  const list = useList<SessionAnswer>('/sessions', { ...settled, limit: 50 })
  const one = useAction(list.reload)
  const isFiltered = settled.user_id !== '' || settled.client_id !== ''
  const field = (name: 'user_id' | 'client_id', label: string) => (
    <label class="choice">
      <span>{label}</span>
      <input
        value={filters[name]}
        autocomplete="off"
        spellcheck={false}
        onInput={event => setFilters({ ...filters, [name]: event.currentTarget.value.trim() })}
      />
    </label>
  )
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
        {field('user_id', words.sessions.userId)}
        {field('client_id', words.sessions.clientId)}
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
                {[session.client_id, session.location || session.ip_address, programOf(session.user_agent)]
                  .filter(Boolean)
                  .join(' · ')}
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
          path={withQuery('/sessions', settled)}
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
