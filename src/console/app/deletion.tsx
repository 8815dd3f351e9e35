import { useState } from 'preact/hooks'
import { ConfirmCall } from './confirm-call.tsx'
import { go } from './router.ts'
import { say, words } from './words.ts'

const { common } = words

/** Deletes the object of a screen after a confirmation, and opens the list of its kind. */
export const DeleteButton = (props: {
  name: string
  /** The text that the person types to confirm. */
  typed: string
  /** The consequences. */
  text: string
  /** The path of the API. */
  path: string
  /** The path of the list in the console. */
  list: string
}) => {
  const { name, typed, text, path, list } = props
  const [isAsked, setAsked] = useState(false)
  return (
    <>
      <button type="button" class="danger" onClick={() => setAsked(true)}>
        {common.delete}
      </button>
      {isAsked && (
        <ConfirmCall
          title={say(common.deleteOne, { name })}
          text={text}
          action={common.delete}
          typed={typed}
          method="DELETE"
          path={path}
          done={say(common.deleted, { name })}
          onDone={() => go(list)}
          onClose={() => setAsked(false)}
        />
      )}
    </>
  )
}
