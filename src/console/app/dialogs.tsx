import type { ComponentChildren, RefObject } from 'preact'
import { useLayoutEffect, useRef, useState } from 'preact/hooks'
import type { Problem } from './api.ts'
import { AsCurl, Refused } from './parts.tsx'
import { useUnsaved } from './router.ts'
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
export const Dialog = (props: {
  title: string
  /** True while a call runs. Its answer, such as a new secret, would be lost with the dialog. */
  isHeld?: boolean
  onClose(): void
  children: ComponentChildren
}) => {
  const { title, isHeld = false, onClose } = props
  const dialog = useRef<HTMLDialogElement>(null)
  useModal(dialog)
  useUnsaved(isHeld)
  return (
    <dialog
      ref={dialog}
      aria-label={title}
      closedby={isHeld ? 'none' : 'closerequest'}
      // For browsers without `closedby`, such as Safari 26.
      onCancel={event => isHeld && event.preventDefault()}
      onClose={onClose}
    >
      <h2 tabIndex={-1}>{title}</h2>
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
  /** True if Cancel stops what is running. Otherwise the person waits for the end of it. */
  isStoppable?: boolean
  onConfirm(): void
  onClose(): void
}) => {
  const [given, setGiven] = useState('')
  const isHeld = props.isBusy && !props.isStoppable
  const submit = (event: Event) => {
    event.preventDefault()
    props.onConfirm()
  }
  return (
    <Dialog title={props.title} isHeld={isHeld} onClose={props.onClose}>
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
          <button
            type="button"
            autofocus={props.typed === undefined}
            disabled={isHeld}
            onClick={props.onClose}
          >
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
