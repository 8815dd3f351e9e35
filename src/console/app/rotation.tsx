import { useState } from 'preact/hooks'
import { ConfirmCall } from './confirm-call.tsx'
import { mayOn } from './me.ts'
import { Once } from './once.tsx'
import { words } from './words.ts'

const { common } = words

/**
 * Shows a button that replaces the secret of the screen's object and shows the new secret once, if the caller
 * may change the object. The person confirms first, because programs must then get the new secret.
 */
export const RotateButton = <T,>(props: {
  /** Text about the consequences of a new secret. */
  text: string
  path: string
  body?: object
  /** Title and text of the dialog that shows the new secret. */
  shown: { title: string; text: string }
  secretOf(answer: T): string
  onSecret?(secret: string): void
}) => {
  const { text, path, body, shown, secretOf, onSecret } = props
  const [isAsked, setAsked] = useState(false)
  const [secret, setSecret] = useState<string>()
  if (!mayOn('update', path)) return null
  return (
    <>
      <button type="button" onClick={() => setAsked(true)}>
        {common.newSecret}
      </button>
      {isAsked && (
        <ConfirmCall<T>
          title={common.newSecretTitle}
          text={text}
          action={common.newSecret}
          method="POST"
          path={path}
          body={body}
          onDone={answer => {
            setAsked(false)
            const secret = secretOf(answer)
            setSecret(secret)
            onSecret?.(secret)
          }}
          onClose={() => setAsked(false)}
        />
      )}
      {secret && <Once {...shown} value={secret} onClose={() => setSecret(undefined)} />}
    </>
  )
}
