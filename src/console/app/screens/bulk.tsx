import { useEffect, useRef, useState } from 'preact/hooks'
import type { UserAnswer } from '#src/directory/users/schema.ts'
import { asProblem, callApi, type Problem } from '../api.ts'
import { Confirm } from '../dialogs.tsx'
import { may } from '../me.ts'
import { show } from '../toast.tsx'
import { say, words } from '../words.ts'

/**
 * Maximum number of users in one bulk change. Each user needs a call with its own check and event, and the
 * administrator waits for all of the calls.
 */
export const MAX_BULK = 100

type Bulk = 'disable' | 'enable' | 'sign_out'
const bulks: Record<
  Bulk,
  { permission: string; label: string; text: string; run(user: UserAnswer): Promise<unknown> }
> = {
  disable: {
    permission: 'users:update',
    label: words.users.disable,
    text: words.users.disableText,
    run: ({ id }) => callApi('PUT', `/users/${id}`, { body: { enabled: false } }),
  },
  enable: {
    permission: 'users:update',
    label: words.users.enable,
    text: words.users.enableText,
    run: ({ id }) => callApi('PUT', `/users/${id}`, { body: { enabled: true } }),
  },
  sign_out: {
    permission: 'sessions:revoke',
    label: words.users.signOut,
    text: words.users.signOutText,
    run: ({ id }) => callApi('DELETE', `/users/${id}/sessions`),
  },
}

/** Returns the changes of several users that the caller may make. */
export const openBulks = (): Bulk[] =>
  (Object.keys(bulks) as Bulk[]).filter(bulk => may(bulks[bulk].permission))

/** Shows the buttons that change the selected users, and asks for confirmation. */
export const BulkBar = (props: { users: UserAnswer[]; onDone(): void }) => {
  const [asked, setAsked] = useState<Bulk>()
  const [done, setDone] = useState<number>()
  const [problem, setProblem] = useState<Problem>()
  const { users } = props
  const isStopped = useRef(false)
  // If Back removes the screen while a change runs, the dialog sends no close event. The change is then
  // stopped here.
  useEffect(
    () => () => {
      isStopped.current = true
    },
    [],
  )
  /** True when users have been changed and the list has not been read again. */
  const isStale = useRef(false)
  const finish = () => {
    setAsked(undefined)
    setProblem(undefined)
    if (isStale.current) props.onDone()
  }
  const run = async (bulk: Bulk): Promise<void> => {
    setProblem(undefined)
    isStopped.current = false
    let changed = 0
    try {
      // The loop stops at the first refusal, which is shown. Changes that were made before the refusal are
      // kept.
      for (const user of users) {
        setDone(changed)
        await bulks[bulk].run(user)
        changed++
        isStale.current = true
        if (isStopped.current) break
      }
    } catch (error) {
      if (!isStopped.current) return setProblem(asProblem(error))
    } finally {
      setDone(undefined)
    }
    if (changed > 0) show(say(words.users.done, { action: bulks[bulk].label, count: changed }))
    finish()
  }
  /** Closes the dialog. A running change stops after the current user. */
  const close = () => {
    isStopped.current = true
    if (done === undefined) finish()
    else setAsked(undefined)
  }
  const count = say(words.common.users, { count: users.length })
  return (
    <div class="bulk" role="toolbar" aria-label={words.users.selection}>
      <strong>{say(words.users.selected, { count: users.length })}</strong>
      {openBulks().map(bulk => (
        <button key={bulk} type="button" disabled={done !== undefined} onClick={() => setAsked(bulk)}>
          {bulks[bulk].label}
        </button>
      ))}
      <button type="button" class="quiet" onClick={props.onDone}>
        {words.common.cancel}
      </button>
      {asked && (
        <Confirm
          title={say(words.users.bulkTitle, { action: bulks[asked].label, users: count })}
          text={bulks[asked].text}
          action={
            done === undefined
              ? say(words.users.bulk, { action: bulks[asked].label, users: count })
              : say(words.users.progress, { done: done + 1, total: users.length })
          }
          isBusy={done !== undefined}
          isStoppable
          problem={problem}
          onConfirm={() => void run(asked)}
          onClose={close}
        />
      )}
    </div>
  )
}
