import type { ComponentChildren, RefObject } from 'preact'
import { useLayoutEffect, useRef, useState } from 'preact/hooks'
import type { Problem } from './api.ts'
import { AsCurl, Refused } from './parts.tsx'
import { say, words } from './words.ts'

const { common } = words

/**
 * Opens a dialog, and closes it before it is removed. If an open dialog were removed, the element that had
 * the focus before would not get the focus again.
 */
export const useModal = (dialog: RefObject<HTMLDialogElement | null>): void =>
  useLayoutEffect(() => {
    const { current } = dialog
    current?.showModal()
    return () => {
      // The screen caused this `close` event, not the person, and another dialog may already be shown. The
      // event must therefore not reach `onClose`.
      current?.addEventListener('close', event => event.stopImmediatePropagation(), { capture: true })
      current?.close()
    }
  }, [])

/** Shows a modal dialog, which Escape closes. */
export const Dialog = (props: { title: string; onClose(): void; children: ComponentChildren }) => {
  const dialog = useRef<HTMLDialogElement>(null)
  useModal(dialog)
  return (
    <dialog ref={dialog} aria-label={props.title} onClose={props.onClose}>
      <h2>{props.title}</h2>
      {props.children}
    </dialog>
  )
}

/**
 * Returns a name as a person reads and types it. The stored name may have several spaces in a row, or letters
 * of two characters (decomposed Unicode).
 */
const asShown = (text: string): string => text.normalize('NFC').replace(/\s+/g, ' ').trim()

/**
 * Asks for confirmation before a step that cannot be undone. If `typed` is set, the person first has to enter
 * this text.
 */
export const Confirm = (props: {
  title: string
  text: string
  action: string
  typed?: string | undefined
  /** The call as a shell command, shown for reference. */
  curl?: string
  problem?: Problem | undefined
  isBusy: boolean
  onConfirm(): void
  onClose(): void
}) => {
  const [given, setGiven] = useState('')
  const submit = (event: Event) => {
    event.preventDefault()
    props.onConfirm()
  }
  return (
    <Dialog title={props.title} onClose={props.onClose}>
      <form onSubmit={submit}>
        <p>{props.text}</p>
        {props.typed !== undefined && (
          <label class="field">
            <span>{say(common.typeName, { name: props.typed })}</span>
            <input autocomplete="off" value={given} onInput={event => setGiven(event.currentTarget.value)} />
          </label>
        )}
        <Refused problem={props.problem} />
        {props.curl && <AsCurl text={props.curl} />}
        <div class="dialog-actions">
          <button type="button" autofocus={props.typed === undefined} onClick={props.onClose}>
            {common.cancel}
          </button>
          <button
            type="submit"
            class="danger"
            disabled={props.isBusy || (props.typed !== undefined && asShown(given) !== asShown(props.typed))}
          >
            {props.action}
          </button>
        </div>
      </form>
    </Dialog>
  )
}
