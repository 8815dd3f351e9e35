import type { ComponentChildren } from 'preact'
import { useState } from 'preact/hooks'
import { asProblem, callApi, type Problem } from './api.ts'
import { Dialog, Refused } from './parts.tsx'
import { words } from './words.ts'

/** A small form in a dialog that makes an object by POST. */
export const NewDialog = <T,>(props: {
  title: string
  path: string
  body: object
  onMade(made: T): void
  onClose(): void
  children(problem: Problem | undefined): ComponentChildren
}) => {
  const [problem, setProblem] = useState<Problem>()
  const [isBusy, setBusy] = useState(false)
  const submit = async (event: Event) => {
    event.preventDefault()
    setBusy(true)
    try {
      props.onMade((await callApi<T>('POST', props.path, { body: props.body })).data)
    } catch (error) {
      setProblem(asProblem(error))
      setBusy(false)
    }
  }
  return (
    <Dialog title={props.title} onClose={props.onClose}>
      <form onSubmit={event => void submit(event)}>
        {problem && !problem.details && <Refused problem={problem} />}
        {props.children(problem)}
        <div class="dialog-actions">
          <button type="button" onClick={props.onClose}>
            {words.common.cancel}
          </button>
          <button type="submit" class="primary" disabled={isBusy}>
            {words.common.create}
          </button>
        </div>
      </form>
    </Dialog>
  )
}
