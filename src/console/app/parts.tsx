/**
 * Small parts that all screens share. Over 300 lines on purpose: one file is easier to search than forty.
 */
import type { ComponentChildren } from 'preact'
import { useEffect, useRef, useState } from 'preact/hooks'
import type { Problem } from './api.ts'
import { ago, fullDate, say, words } from './words.ts'

const { common } = words

const shapes = {
  overview: 'M4 13h6V4H4zM14 20h6v-9h-6zM4 20h6v-3H4zM14 7h6V4h-6z',
  users:
    'M9 11a3.5 3.5 0 1 0 0-7 3.5 3.5 0 0 0 0 7ZM2.5 20a6.5 6.5 0 0 1 13 0M16 4.3a3.5 3.5 0 0 1 0 6.4M18 14.5a6.5 6.5 0 0 1 3.5 5.5',
  clients: 'M4 5h16v14H4zM4 9.5h16M7 7.2h.01M9.5 7.2h.01',
  events: 'M5 4h14v16H5zM8.5 8.5h7M8.5 12h7M8.5 15.5h4',
  sessions: 'M3 5h18v11H3zM8.5 20h7M12 16v4',
  organizations: 'M4 20V6l8-3 8 3v14M9 20v-5h6v5M8 9h.01M12 9h.01M16 9h.01M8 12h.01M16 12h.01',
  roles: 'M12 3 4.5 6v5.5c0 4.5 3 8 7.5 9.5 4.5-1.5 7.5-5 7.5-9.5V6ZM9 11.5l2.2 2.2L15.5 9.5',
  groups:
    'M12 10.5a3 3 0 1 0 0-6 3 3 0 0 0 0 6ZM6.5 19a5.5 5.5 0 0 1 11 0M4.8 11.5a2.2 2.2 0 1 1 1-4M2 17a4.5 4.5 0 0 1 2.5-3.4M19.2 11.5a2.2 2.2 0 1 0-1-4M22 17a4.5 4.5 0 0 0-2.5-3.4',
  providers: 'M10 14a4 4 0 0 0 6 .5l3-3a4 4 0 0 0-6-6l-1 1M14 10a4 4 0 0 0-6-.5l-3 3a4 4 0 0 0 6 6l1-1',
  webhooks: 'M12 8.5a3 3 0 1 0-2.2-1l-3 5.5M14.2 7.5l3 5.5M17.5 12.8a3 3 0 1 1-2.9 3.7H9.4a3 3 0 1 1-3-3.7',
  settings:
    'M4 7h9M17 7h3M4 17h3M11 17h9M15 9.5a2.5 2.5 0 1 0 0-5 2.5 2.5 0 0 0 0 5ZM9 19.5a2.5 2.5 0 1 0 0-5 2.5 2.5 0 0 0 0 5Z',
  account: 'M12 12a4 4 0 1 0 0-8 4 4 0 0 0 0 8ZM4.5 20.5a7.5 7.5 0 0 1 15 0',
  guide: 'M12 6.5C10 5 7 4.5 4 5v13.5c3-.5 6 0 8 1.5 2-1.5 5-2 8-1.5V5c-3-.5-6 0-8 1.5ZM12 6.5V20',
  menu: 'M4 7h16M4 12h16M4 17h16',
  search: 'M11 18a7 7 0 1 0 0-14 7 7 0 0 0 0 14ZM20 20l-4-4',
  copy: 'M9 9h11v11H9zM5 15H4V4h11v1',
  check: 'M5 12.5 10 17l9-10',
  alert: 'M12 8.5v4.5M12 16.5h.01M12 3.5 2.5 20h19z',
  mail: 'M3.5 6h17v12h-17zM4 6.5l8 6.5 8-6.5',
  lock: 'M6 11h12v9H6zM8.5 11V8a3.5 3.5 0 0 1 7 0v3',
  plus: 'M12 5v14M5 12h14',
  cross: 'M6.5 6.5l11 11M17.5 6.5l-11 11',
  apis: 'M12 3 20 7.5v9L12 21l-8-4.5v-9ZM4 7.5l8 4.5 8-4.5M12 12v9',
  right: 'm9 5 7 7-7 7',
  web: 'M12 21a9 9 0 1 0 0-18 9 9 0 0 0 0 18ZM3 12h18M12 3c5 5 5 13 0 18M12 3c-5 5-5 13 0 18',
  spa: 'M4 5h16v14H4zM4 9h16M9.5 12.5 7.5 14.5l2 2M14.5 12.5l2 2-2 2',
  native: 'M7 3h10v18H7zM11 18h2',
  service: 'M4 5h16v6H4zM4 13h16v6H4zM7.5 8h.01M7.5 16h.01',
}
export type IconName = keyof typeof shapes

/** Shows an icon that screen readers skip. */
export const Icon = ({ name }: { name: IconName }) => (
  <svg class="icon" viewBox="0 0 24 24" aria-hidden="true">
    <path d={shapes[name]} />
  </svg>
)

/** Shows the heading of a screen, with its actions. */
export const Heading = (props: {
  title: string
  back?: { href: string; label: string }
  badge?: ComponentChildren
  lead?: ComponentChildren
  children?: ComponentChildren
}) => {
  useEffect(() => {
    document.title = `${props.title} · Gatehouse`
  }, [props.title])
  return (
    <header class="heading">
      <div class="heading-text">
        {props.back && (
          <a class="back" href={props.back.href}>
            {props.back.label}
          </a>
        )}
        <h1 tabIndex={-1}>
          {props.title} {props.badge}
        </h1>
        {props.lead && <p class="lead">{props.lead}</p>}
      </div>
      {props.children && <div class="actions">{props.children}</div>}
    </header>
  )
}

/** Shows a short state in a tone of its meaning. */
export const Badge = ({
  tone = 'plain',
  children,
}: {
  tone?: 'good' | 'bad' | 'warn' | 'plain'
  children: ComponentChildren
}) => <span class={`badge ${tone}`}>{children}</span>

/** Shows content in a box with an optional title. */
export const Card = (props: {
  title?: string
  lead?: ComponentChildren
  aside?: ComponentChildren
  flush?: boolean
  children: ComponentChildren
}) => (
  <section class={props.flush ? 'card flush' : 'card'}>
    {props.title && (
      <div class="card-head">
        <div>
          <h2>{props.title}</h2>
          {props.lead && <p class="hint">{props.lead}</p>}
        </div>
        {props.aside}
      </div>
    )}
    {props.children}
  </section>
)

/** Shows an ISO 8601 time relative to now; null is shown as "never". */
export const When = ({ time }: { time: string | null }) =>
  time === null ? (
    <span class="muted">{common.never}</span>
  ) : (
    <time dateTime={time} title={fullDate(time)}>
      {ago(time)}
    </time>
  )

/** Shows a placeholder while rows are loaded. */
export const Loading = ({ rows = 3 }: { rows?: number }) => (
  <div class="loading" role="status" aria-label={common.loading}>
    {Array.from({ length: rows }, (_, row) => (
      <span key={row} />
    ))}
  </div>
)

/** Shows that a list has no rows, and optionally an action. */
export const Empty = (props: { title: string; children?: ComponentChildren; icon?: IconName }) => (
  <div class="empty">
    <Icon name={props.icon ?? 'search'} />
    <p class="empty-title">{props.title}</p>
    {props.children && <div class="hint">{props.children}</div>}
  </div>
)

/** Shows a refused or failed read in place of its result. */
export const Failure = (props: {
  problem: Problem
  retry?: (() => void) | undefined
  children?: ComponentChildren
}) => {
  const { problem, retry } = props
  const [title, text, icon] =
    problem.status === 403
      ? ([common.forbidden, common.forbiddenText, 'lock'] as const)
      : problem.status === 404
        ? ([common.missing, common.missingText, 'search'] as const)
        : ([common.failed, problem.error_description, 'alert'] as const)
  return (
    <div class="empty" role="alert">
      <Icon name={icon} />
      <p class="empty-title">{title}</p>
      <p class="hint">{text}</p>
      {problem.request_id && <RequestId id={problem.request_id} />}
      {retry && problem.status !== 403 && problem.status !== 404 && (
        <button type="button" onClick={retry}>
          {common.retry}
        </button>
      )}
      {props.children}
    </div>
  )
}

const RequestId = ({ id }: { id: string }) => (
  <p class="request-id">
    {common.requestId} <code>{id}</code> <Copy text={id} />
  </p>
)

/** Shows a refused change above the form. */
export const Refused = ({ problem }: { problem: Problem | undefined }) =>
  problem ? (
    <div class="notice bad" role="alert">
      <Icon name="alert" />
      <div>
        <p>{problem.error_description}</p>
        {problem.request_id && <RequestId id={problem.request_id} />}
      </div>
    </div>
  ) : null

/** Shows a button that copies a text. */
export const Copy = ({ text, label }: { text: string; label?: string }) => {
  const [isCopied, setCopied] = useState(false)
  const copy = async () => {
    await navigator.clipboard.writeText(text)
    setCopied(true)
    setTimeout(() => setCopied(false), 1_500)
  }
  return (
    <button type="button" class="copy" onClick={() => void copy()} title={label ?? common.copy}>
      <Icon name={isCopied ? 'check' : 'copy'} />
      <span class={label ? '' : 'unseen'} aria-live="polite">
        {isCopied ? common.copied : (label ?? common.copy)}
      </span>
    </button>
  )
}

/** Shows a value with a button that copies it. */
export const Value = ({ text }: { text: string }) => (
  <span class="value">
    <code>{text}</code>
    <Copy text={text} />
  </span>
)

/** A keyboard can reach text that scrolls. */
const focusable = { tabIndex: 0 }

/** Shows a call as a shell command, folded. */
export const AsCurl = ({ text }: { text: string }) => (
  <details>
    <summary>{common.asCurl}</summary>
    <Code text={text} />
  </details>
)

/** Shows code with a button that copies it. */
export const Code = ({ text }: { text: string }) => (
  <div class="code">
    <pre {...focusable}>{text}</pre>
    <Copy text={text} />
  </div>
)

/** Shows a modal dialog, which Escape closes. */
export const Dialog = (props: { title: string; onClose(): void; children: ComponentChildren }) => {
  const dialog = useRef<HTMLDialogElement>(null)
  useEffect(() => dialog.current?.showModal(), [])
  return (
    <dialog ref={dialog} aria-label={props.title} onClose={props.onClose}>
      <h2>{props.title}</h2>
      {props.children}
    </dialog>
  )
}

/** Asks for confirmation before a step that cannot be undone. The person first has to enter `typed`. */
export const Confirm = (props: {
  title: string
  text: string
  action: string
  typed?: string
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
        <Refused problem={props.problem} />
        {props.typed !== undefined && (
          <label class="field">
            <span>{say(common.typeName, { name: props.typed })}</span>
            <input autocomplete="off" value={given} onInput={event => setGiven(event.currentTarget.value)} />
          </label>
        )}
        <div class="dialog-actions">
          <button type="button" onClick={props.onClose}>
            {common.cancel}
          </button>
          <button
            type="submit"
            class="danger"
            disabled={props.isBusy || (props.typed !== undefined && given !== props.typed)}
          >
            {props.action}
          </button>
        </div>
      </form>
    </Dialog>
  )
}

/** Returns the API's refusals of a field and of its parts. */
export const Refusals = ({ name, problem }: { name: string; problem: Problem | undefined }) => (
  <>
    {refusalsOf(name, problem).map(({ message }) => (
      <p class="field-error" key={message}>
        {message}
      </p>
    ))}
  </>
)

const refusalsOf = (name: string, problem: Problem | undefined) =>
  (problem?.details ?? []).filter(({ field }) => field === name || field.startsWith(`${name}.`))

/** Shows a labelled field with its refusal. `copied` adds a button that copies the value. */
export const Field = (props: {
  label: string
  name: string
  hint?: ComponentChildren
  problem?: Problem | undefined
  multiline?: number
  value: string
  onValue(value: string): void
  type?: 'text' | 'email' | 'number'
  /** Id of a list of suggestions. */
  list?: string
  required?: boolean
  autocomplete?: 'off'
  spellcheck?: boolean
  copied?: boolean
}) => {
  const { label, name, hint, problem, multiline, value, onValue, copied, ...more } = props
  const about = `${name}-about`
  const common = {
    id: name,
    name,
    value,
    'aria-describedby': about,
    'aria-invalid': refusalsOf(name, problem).length > 0,
    ...more,
  }
  return (
    <div class="field">
      <label for={name}>{label}</label>
      {multiline ? (
        <textarea
          {...(common as object)}
          rows={multiline}
          onInput={event => onValue(event.currentTarget.value)}
        />
      ) : (
        <div class="input">
          <input {...(common as object)} onInput={event => onValue(event.currentTarget.value)} />
          {copied && <Copy text={value} label={words.common.copy} />}
        </div>
      )}
      <div id={about}>
        {hint && <p class="hint">{hint}</p>}
        <Refusals name={name} problem={problem} />
      </div>
    </div>
  )
}

/** Shows a labelled checkbox. */
export const Check = (props: {
  label: string
  hint?: string
  checked: boolean
  onChecked(checked: boolean): void
}) => (
  <label class="check">
    <input
      type="checkbox"
      checked={props.checked}
      onChange={event => props.onChecked(event.currentTarget.checked)}
    />
    <span>
      {props.label}
      {props.hint && <span class="hint">{props.hint}</span>}
    </span>
  </label>
)

/** Shows a labelled choice among fixed values. */
export const Choice = (props: {
  label: string
  value: string
  options: readonly (readonly [value: string, label: string])[]
  name?: string
  problem?: Problem | undefined
  onValue(value: string): void
}) => {
  const about = props.name && `${props.name}-about`
  return (
    <div class="choice">
      <label>
        <span>{props.label}</span>
        <select
          value={props.value}
          aria-describedby={about}
          onChange={event => props.onValue(event.currentTarget.value)}
        >
          {props.options.map(([value, label]) => (
            <option key={value} value={value}>
              {label}
            </option>
          ))}
        </select>
      </label>
      {props.name && (
        <div id={about}>
          <Refusals name={props.name} problem={props.problem} />
        </div>
      )}
    </div>
  )
}

/** Shows the initials of a person on that person's colour. */
export const Avatar = ({ name, id }: { name: string; id: string }) => {
  const initials = name
    .split(/[\s._-]+/)
    .filter(Boolean)
    .slice(0, 2)
    .map(part => [...part][0]?.toUpperCase())
  const tone = ([...id].reduce((sum, letter) => sum + letter.charCodeAt(0), 0) % 6) + 1
  return (
    <span class={`avatar tone-${tone}`} aria-hidden="true">
      {initials}
    </span>
  )
}
