import { useLayoutEffect, useRef, useState } from 'preact/hooks'
import type { UserAnswer } from '#src/directory/users/schema.ts'
import { asProblem, callApi, type Detail, type Problem } from '../api.ts'
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

/** Statuses of a refusal that concerns one user. After another failure the next call would fail, too. */
const REFUSED = [403, 404, 409]

/**
 * Changes users one after the other. Passes over refused users. Stops after another failure, or when `next`
 * returns false. The `problem` names each user whose call has failed. `left` has the refused users, and after
 * a stop those whose turn has not come.
 */
const changeAll = async (bulk: Bulk, users: UserAnswer[], next: (index: number) => boolean) => {
  const { label, run } = bulks[bulk]
  let changed = 0
  let failure: Problem | undefined
  const left: UserAnswer[] = []
  const details: Detail[] = []
  for (const [index, user] of users.entries()) {
    if (!next(index)) {
      left.push(...users.slice(index))
      break
    }
    try {
      await run(user)
      changed++
    } catch (error) {
      failure = asProblem(error)
      details.push({ field: user.username, message: failure.error_description })
      if (!REFUSED.includes(failure.status)) {
        left.push(...users.slice(index))
        break
      }
      left.push(user)
    }
  }
  const result = say(words.users.done, { action: label, count: changed })
  const problem = failure && { ...failure, error: 'console', error_description: result, details }
  return { changed, left, result, problem }
}

/**
 * Shows the buttons that change the selected users, and asks for confirmation. After an attempt, `onDone`
 * gets the users that are left, which stay selected.
 */
export const BulkBar = (props: { users: UserAnswer[]; onDone(left: UserAnswer[]): void }) => {
  const [asked, setAsked] = useState<Bulk>()
  const [done, setDone] = useState<number>()
  const [problem, setProblem] = useState<Problem>()
  /** Users that the last attempt has left. Undefined before the first attempt since the list was read. */
  const [left, setLeft] = useState<UserAnswer[]>()
  const users = left ?? props.users
  const isStopped = useRef(false)
  // If Back removes the screen while a change runs, the dialog sends no close event. The change is then
  // stopped here. An effect after the paint would stop it later, and one more user would be changed.
  useLayoutEffect(
    () => () => {
      isStopped.current = true
    },
    [],
  )
  const finish = (remaining = left) => {
    setAsked(undefined)
    setProblem(undefined)
    setLeft(undefined)
    if (remaining) props.onDone(remaining)
  }
  const run = async (bulk: Bulk): Promise<void> => {
    setProblem(undefined)
    isStopped.current = false
    const { changed, left, result, problem } = await changeAll(bulk, users, index => {
      setDone(index)
      return !isStopped.current
    })
    setDone(undefined)
    if (changed > 0 && (isStopped.current || !problem)) show(result)
    if (!problem) return finish(left)
    // Cancel may have closed the dialog, which names the users whose call has failed.
    setAsked(bulk)
    setLeft(left)
    setProblem(problem)
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
      <strong>{say(words.users.selected, { count: props.users.length })}</strong>
      {openBulks().map(bulk => (
        <button key={bulk} type="button" disabled={done !== undefined} onClick={() => setAsked(bulk)}>
          {bulks[bulk].label}
        </button>
      ))}
      <button type="button" class="quiet" onClick={() => props.onDone([])}>
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
