import type { SessionAnswer } from '#src/sessions/schema.ts'
import { ConfirmCall } from './confirm-call.tsx'
import { say, words } from './words.ts'

/** Asks before a session is ended. */
export const EndSession = (props: { session: SessionAnswer; onEnded(): void; onClose(): void }) => {
  const { id, username, client_id } = props.session
  return (
    <ConfirmCall
      title={say(words.sessions.endTitle, { user: username, client: client_id })}
      text={words.sessions.endText}
      action={words.sessions.end}
      method="DELETE"
      path={`/sessions/${id}`}
      done={words.sessions.ended}
      onDone={() => {
        props.onClose()
        props.onEnded()
      }}
      onClose={props.onClose}
    />
  )
}
