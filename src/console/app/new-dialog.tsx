import type { ComponentChildren } from 'preact'
import { useState } from 'preact/hooks'
import { asProblem, callApi, type Problem } from './api.ts'
import { Dialog } from './dialogs.tsx'
import { curlOf } from './forms.tsx'
import { AsCurl, Refused } from './parts.tsx'
import { words } from './words.ts'

/** Returns a body with the names of environment variables in place of its secrets. */
const withoutSecrets = (body: object): object =>
  Object.fromEntries(
    Object.entries(body).map(([name, value]) => [
      name,
      /secret|password/.test(name) ? `$${name.toUpperCase()}` : value,
    ]),
  )

/** Shows a small form in a dialog that creates an object by POST, or changes one by PUT. */
export const NewDialog = <T,>(props: {
  title: string
  path: string
  method?: 'POST' | 'PUT'
  body: object
  onMade(made: T): void
  onClose(): void
  /** Text of the button. */
  action?: string
  children(problem: Problem | undefined): ComponentChildren
}) => {
  const { method = 'POST' } = props
  const [problem, setProblem] = useState<Problem>()
  const [isBusy, setBusy] = useState(false)
  const submit = async (event: Event) => {
    event.preventDefault()
    setBusy(true)
    try {
      props.onMade((await callApi<T>(method, props.path, { body: props.body })).data)
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
        <AsCurl text={curlOf(method, props.path, withoutSecrets(props.body))} />
        <div class="dialog-actions">
          <button type="button" onClick={props.onClose}>
            {words.common.cancel}
          </button>
          <button type="submit" class="primary" disabled={isBusy}>
            {props.action ?? words.common.create}
          </button>
        </div>
      </form>
    </Dialog>
  )
}
