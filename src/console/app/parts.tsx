import type { ComponentChildren } from 'preact'
import { useLayoutEffect, useRef, useState } from 'preact/hooks'
import type { Detail, Problem } from './api.ts'
import { useStanding } from './api-form.tsx'
import { Icon, type IconName } from './icons.tsx'
import { may } from './me.ts'
import { reveal, useArrival } from './router.ts'
import { ago, exactDate, exactTime, inEnglish, words } from './words.ts'

const { common } = words

/** Shows the heading of a screen and the actions beside it. */
export const Heading = (props: {
  title: string
  back?: { href: string; label: string }
  badge?: ComponentChildren
  lead?: ComponentChildren
  children?: ComponentChildren
}) => {
  useArrival()
  useLayoutEffect(() => {
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

/** Shows a link to the audit events about an object, if the caller may read events. */
export const EventsLink = ({ of }: { of: string }) =>
  may('events:read') ? (
    <a class="button" href={`/console/events?target_id=${encodeURIComponent(of)}`}>
      {common.events}
    </a>
  ) : null

/** Shows a button that opens the form for a new object, if the caller has the permission. */
export const AddButton = (props: { label: string; permission: string; onAdd(): void }) =>
  may(props.permission) ? (
    <button type="button" class="primary" onClick={props.onAdd}>
      <Icon name="plus" /> {props.label}
    </button>
  ) : null

/** Shows a state in a few words, coloured by its meaning. */
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

/**
 * Shows an ISO 8601 time relative to now. If `exact` is set, shows the time with its seconds. Shows null as
 * "Never". The tooltip has the exact time in local time and in UTC.
 */
export const When = ({ time, exact }: { time: string | null; exact?: boolean | undefined }) =>
  time === null ? (
    <span class="muted">{common.never}</span>
  ) : (
    <time dateTime={time} title={`${exactDate(time)}\n${time}`}>
      {exact ? exactTime(time) : ago(time)}
    </time>
  )

/** Shows placeholders while rows load. */
export const Loading = ({ rows = 3 }: { rows?: number }) => (
  <div class="loading" role="status" aria-label={common.loading}>
    {Array.from({ length: rows }, (_, row) => (
      <span key={row} />
    ))}
  </div>
)

/** Shows that a list has no rows, and an action if one is given. */
export const Empty = (props: { title: string; children?: ComponentChildren; icon?: IconName }) => (
  <div class="empty">
    <Icon name={props.icon ?? 'search'} />
    <p class="empty-title">{props.title}</p>
    {props.children && <div class="hint">{props.children}</div>}
  </div>
)

/** Shows a failed or refused read in place of its result. */
export const Failure = (props: {
  problem: Problem
  retry?: (() => void) | undefined
  children?: ComponentChildren
}) => {
  const { problem, retry } = props
  const details = problem.details?.map(({ field, message }) => `${field}: ${message}`).join(' ')
  const [title, text, icon] =
    problem.status === 403
      ? ([common.forbidden, common.forbiddenText, 'lock'] as const)
      : problem.status === 404
        ? ([common.missing, common.missingText, 'search'] as const)
        : ([common.failed, details || problem.error_description, 'alert'] as const)
  return (
    <div class="empty" role="alert">
      <Icon name={icon} />
      <p class="empty-title">{title}</p>
      <p class="hint" {...(title === common.failed && problem.request_id && inEnglish)}>
        {text}
      </p>
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

/**
 * Shows a refused call. In a form it leaves out refusals that are shown beside their fields, and the first
 * refused field gets the focus. If this field has no input that could get the focus, the text of its refusal
 * gets the focus.
 */
export const Refused = ({ problem }: { problem: Problem | undefined }) => {
  const notice = useRef<HTMLDivElement>(null)
  const [shown, setShown] = useState<{ problem: Problem | undefined; fields: (string | undefined)[] }>()
  const point = () => {
    const form = notice.current?.closest('form')
    const refusals = [...(form?.querySelectorAll<HTMLElement>('[data-refused]') ?? [])]
    setShown({ problem, fields: refusals.map(({ dataset }) => dataset.refused) })
    const first = form?.querySelector<HTMLElement>('[aria-invalid=true], [data-refused]')
    if (!first) return
    reveal(first)
    first.focus()
  }
  // The fields get the refusal from a context and are rendered after this part, but in the same task. An
  // effect after the paint would move the focus while the person already types in another field.
  useLayoutEffect(() => queueMicrotask(point), [problem])
  const standing = useStanding(problem)
  if (!standing) return null
  const { error, error_description, details = [], request_id } = standing
  const isAtField = ({ field }: Detail): boolean =>
    !shown || shown.problem !== problem || shown.fields.includes(field)
  const isSaid = details.some(detail => isAtField(detail) && detail.message === error_description)
  return (
    <div class="notice bad" role="alert" ref={notice}>
      <Icon name="alert" />
      <div>
        {!isSaid && <p {...(error !== 'console' && request_id && inEnglish)}>{error_description}</p>}
        {details
          .filter(detail => !isAtField(detail))
          .map(({ field, message }) => (
            <p key={field + message} {...(request_id && inEnglish)}>
              <code>{field}</code> {message}
            </p>
          ))}
        {request_id && <RequestId id={request_id} />}
      </div>
    </div>
  )
}

/** Shows a button that copies a text. */
export const Copy = ({ text, label, isMain }: { text: string; label?: string; isMain?: boolean }) => {
  const [isCopied, setCopied] = useState(false)
  const copy = async () => {
    await navigator.clipboard.writeText(text)
    setCopied(true)
    setTimeout(() => setCopied(false), 1_500)
  }
  return (
    <button
      type="button"
      class={isMain ? 'primary' : 'copy'}
      autofocus={isMain}
      onClick={() => void copy()}
      title={label ?? common.copy}
    >
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

/** Makes scrollable text reachable by keyboard. */
const focusable = { tabIndex: 0 }

/** Shows a call as a shell command, collapsed until a click. */
export const AsCurl = ({ text }: { text: string }) => (
  <details>
    <summary>{common.asCurl}</summary>
    <Code text={text} />
  </details>
)

/** Says where mail is set up. */
export const MailPlace = () => (
  <>
    {words.mail.where} <a href="/console/guide/mail">{words.mail.guide}</a>
  </>
)

/** Shows code with a button that copies it. */
export const Code = ({ text }: { text: string }) => (
  <div class="code">
    <pre {...focusable}>{text}</pre>
    <Copy text={text} />
  </div>
)

/** Shows the initials of a person on a colour that is derived from the id. */
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
