import { useAction } from './action.ts'
import { curlOf } from './curl.ts'
import { Confirm } from './dialogs.tsx'

/** Asks for confirmation of a call that cannot be undone, shows the call as curl, and makes it. */
export const ConfirmCall = <T,>(props: {
  title: string
  /** Text about the consequences of the call. */
  text: string
  /** Text of the button. */
  action: string
  /** Text that the person has to type to confirm. */
  typed?: string | undefined
  method: 'POST' | 'PUT' | 'DELETE'
  path: string
  body?: object | undefined
  /** Notice after the call has succeeded. */
  done?: string
  onDone(answer: T): void
  onClose(): void
}) => {
  const { method, path, body, done, onDone, ...asked } = props
  const { run, dialog } = useAction<T>(onDone)
  return (
    <Confirm
      {...asked}
      {...dialog}
      curl={curlOf(method, path, body)}
      onConfirm={() => void run(method, path, done, body)}
    />
  )
}
