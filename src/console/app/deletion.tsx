import { useState } from 'preact/hooks'
import { ConfirmCall } from './confirm-call.tsx'
import { mayOn } from './me.ts'
import { Card } from './parts.tsx'
import { go } from './router.ts'
import { say, words } from './words.ts'

const { common } = words

/**
 * Shows a card with a button that deletes the object of a screen, if the caller may delete it. The person
 * confirms the deletion. Afterwards the list of objects of this kind opens. The card is the last card of a
 * screen, so that nobody deletes an object by accident.
 */
export const Deletion = (props: {
  name: string
  /** Text that the person has to type to confirm, because a deletion cannot be undone. */
  typed: string
  /** Text about the consequences of the deletion. */
  text: string
  /** Path of the object in the API. */
  path: string
  /** Path of the list in the console. */
  list: string
}) => {
  const { name, typed, text, path, list } = props
  const [isAsked, setAsked] = useState(false)
  if (!mayOn('delete', path)) return null
  return (
    <Card
      title={common.delete}
      lead={text}
      aside={
        <button type="button" class="danger" onClick={() => setAsked(true)}>
          {common.delete}
        </button>
      }
    >
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
    </Card>
  )
}
