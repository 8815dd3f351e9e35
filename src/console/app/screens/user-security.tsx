import { useState } from 'preact/hooks'
import type { SessionAnswer } from '#src/sessions/schema.ts'
import { useAction } from '../action.ts'
import { curlOf } from '../curl.ts'
import { Confirm } from '../dialogs.tsx'
import { EndSession } from '../end-session.tsx'
import { type PageOf, useList, useObject } from '../hooks.ts'
import { ShortList } from '../list.tsx'
import { may } from '../me.ts'
import { Card, Refused, When } from '../parts.tsx'
import { fullDate, joined, programOf, say, words } from '../words.ts'
import { EventRow, type LogEvent } from './event-row.tsx'

/** Shows the sessions of a user, each with a button that ends it. */
export const Sessions = ({ id }: { id: string }) => {
  const list = useList<SessionAnswer>('/sessions', { user_id: id, limit: 20 })
  const [ending, setEnding] = useState<SessionAnswer>()
  return (
    <ShortList
      title={words.user.sessions}
      list={list}
      empty={words.user.noSessions}
      row={session => (
        <li key={session.id} class="row">
          <span>
            <strong>{session.client_id}</strong>
            <span class="hint">
              {joined([session.location, session.ip_address, programOf(session.user_agent)])}
            </span>
          </span>
          <When time={session.last_active_at} />
          {may('sessions:revoke') && (
            <button
              type="button"
              aria-label={joined([words.sessions.end, session.client_id, programOf(session.user_agent)])}
              onClick={() => setEnding(session)}
            >
              {words.sessions.end}
            </button>
          )}
        </li>
      )}
    >
      {ending && <EndSession session={ending} onEnded={list.reload} onClose={() => setEnding(undefined)} />}
    </ShortList>
  )
}

interface Factor {
  id: string
  type: 'totp' | 'passkey'
  name: string
  last_used_at: string | null
}

/**
 * Asks before a factor is removed. To remove a factor that is the user's only way to sign in, the
 * administrator must confirm twice. Afterwards the user can sign in only with a link from an administrator.
 */
const Removal = (props: { user: string; factor: Factor; onDone(): void; onClose(): void }) => {
  const { run, dialog } = useAction(props.onDone)
  const isLockedOut = dialog.problem?.status === 409
  const path = `/users/${props.user}/factors/${props.factor.id}${isLockedOut ? '?only_way_in=true' : ''}`
  return (
    <Confirm
      title={say(words.user.removeFactorTitle, { name: props.factor.name })}
      text={isLockedOut ? words.user.lockedOut : words.user.removeFactorText}
      action={isLockedOut ? words.user.removeAnyway : words.user.removeFactor}
      isBusy={dialog.isBusy}
      problem={isLockedOut ? undefined : dialog.problem}
      curl={curlOf('DELETE', path)}
      onConfirm={() => void run('DELETE', path, words.user.factorRemoved)}
      onClose={props.onClose}
    />
  )
}

/** Shows the authenticator apps and passkeys of a user, each with a button that removes it. */
export const Factors = ({ id }: { id: string }) => {
  const list = useList<Factor>(`/users/${id}/factors`, {})
  const [asked, setAsked] = useState<Factor>()
  return (
    <ShortList
      title={words.user.factors}
      list={list}
      empty={words.user.noFactors}
      row={factor => (
        <li key={factor.id} class="row">
          <span>
            <strong>{factor.name}</strong>
            <span class="hint">
              {factor.type === 'totp' ? words.user.totp : words.user.passkey} · {words.user.lastUse}{' '}
              <When time={factor.last_used_at} />
            </span>
          </span>
          {may('users:update') && (
            <button
              type="button"
              aria-label={joined([words.user.removeFactor, factor.name])}
              onClick={() => setAsked(factor)}
            >
              {words.user.removeFactor}
            </button>
          )}
        </li>
      )}
    >
      {asked && (
        <Removal
          user={id}
          factor={asked}
          onDone={() => {
            setAsked(undefined)
            list.reload()
          }}
          onClose={() => setAsked(undefined)}
        />
      )}
    </ShortList>
  )
}

interface RememberedBrowser {
  id: string
  ip_address: string
  user_agent: string
  expires_at: string
}

/** Shows the remembered browsers of a user, if there are any. */
export const Remembered = ({ id }: { id: string }) => {
  const path = `/users/${id}/remembered-browsers`
  const list = useObject<PageOf<RememberedBrowser>>(path)
  const action = useAction(list.reload)
  if (!list.data || list.data.data.length === 0) return null
  return (
    <Card title={words.user.remembered} flush>
      <Refused problem={action.problem ?? list.problem} />
      <ul class="rows">
        {list.data.data.map(browser => (
          <li key={browser.id} class="row">
            <span>
              <strong>{browser.ip_address}</strong>
              <span class="hint">{browser.user_agent}</span>
            </span>
            <span>{say(words.invitations.until, { time: fullDate(browser.expires_at) })}</span>
            {may('users:update') && (
              <button
                type="button"
                aria-label={joined([words.user.forget, browser.ip_address, programOf(browser.user_agent)])}
                disabled={action.dialog.isBusy}
                onClick={() => void action.run('DELETE', `${path}/${browser.id}`, words.user.forgotten)}
              >
                {words.user.forget}
              </button>
            )}
          </li>
        ))}
      </ul>
    </Card>
  )
}

/** Shows the newest audit events about a user. */
export const Log = ({ id }: { id: string }) => {
  const list = useList<LogEvent>('/events', { target_id: id, limit: 8 })
  return (
    <ShortList
      title={words.common.events}
      list={list}
      empty={words.user.noEvents}
      aside={<a href={`/console/events?target_id=${id}`}>{words.common.all}</a>}
      row={event => <EventRow key={event.id} event={event} />}
    />
  )
}
