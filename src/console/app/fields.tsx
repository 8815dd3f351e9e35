import type { ComponentChildren } from 'preact'
import { useLayoutEffect, useRef } from 'preact/hooks'
import { type Limit, useLimit, useRefusals } from './api-form.tsx'
import { Icon } from './icons.tsx'
import { MORE } from './options.ts'
import { Copy } from './parts.tsx'
import { inEnglish, words } from './words.ts'

/**
 * Shows the API's refusals of a field and of its parts. If `isWhole` is true, only the refusals of the field
 * itself are shown. `items` are the items of a list, and stand before their refusals.
 */
export const Refusals = ({
  name,
  isWhole,
  items = [],
}: {
  name: string
  isWhole?: boolean
  items?: readonly string[]
}) => (
  <>
    {useRefusals(name)
      .filter(({ field }) => !isWhole || field === name)
      .map(({ field, message }) => {
        const item = items[Number(field.split('.').at(-1))]
        return (
          <p class="field-error" key={field + message} data-refused={field} tabIndex={-1} {...inEnglish}>
            {item && <code>{item}</code>} {message}
          </p>
        )
      })}
  </>
)

/** Returns the texts of a list that is edited as one text. */
const itemsOf = (text: string): string[] => text.split(/\s+/).filter(Boolean)

/**
 * Returns the API's message for a text that is too long or does not match the pattern. For a list, returns
 * the message for too many texts, or that for the first such text. Returns undefined for a text that is empty
 * or within the limits.
 */
const complaintOf = (text: string, limit: Limit): string | undefined => {
  const { maxLength = Infinity, pattern, message, maxItems, item = {} } = limit
  if (maxItems === undefined)
    return text !== '' && (text.length > maxLength || (pattern && !new RegExp(pattern).test(text)))
      ? message
      : undefined
  const items = itemsOf(text)
  if (items.length > maxItems) return message
  for (const each of items) {
    const complaint = complaintOf(each, item)
    if (complaint) return complaint
  }
  return undefined
}

/** Shows a labelled field with its refusals. `copied` adds a button that copies the value. */
export const Field = (props: {
  label: string
  name: string
  hint?: ComponentChildren
  /** Message for a value that cannot be sent. */
  bad?: string | undefined
  multiline?: number
  value: string
  onValue(value: string): void
  /** Type of the input. Default: number if the limits of the field are numbers, otherwise text. */
  type?: 'text' | 'email'
  /** Id of a `datalist` with suggestions. */
  list?: string
  placeholder?: string
  required?: boolean
  autocomplete?: 'off'
  spellcheck?: boolean
  copied?: boolean
}) => {
  const { label, name, hint, bad, multiline, value, onValue, copied, ...more } = props
  const input = useRef<HTMLInputElement & HTMLTextAreaElement>(null)
  const { min, max, required, ...text } = useLimit(name)
  const complaint = bad ?? complaintOf(value, text)
  // A text that is too long is marked as invalid. The attribute `maxlength` would cut the text without a
  // message.
  useLayoutEffect(() => input.current?.setCustomValidity(complaint ?? ''), [complaint])
  const about = `${name}-about`
  const refusals = useRefusals(name)
  const common = {
    ref: input,
    id: name,
    name,
    value,
    'aria-describedby': about,
    'aria-invalid': refusals.length > 0,
    ...(max !== undefined && !more.type && { type: 'number', min, max }),
    required,
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
        {complaint && refusals.every(({ message }) => message !== complaint) && (
          <p class="field-error complaint" {...(!bad && inEnglish)}>
            {complaint}
          </p>
        )}
        <Refusals name={name} items={text.maxItems === undefined ? [] : itemsOf(value)} />
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

/** Shows a labelled choice among the given values. The hint and the refusals need a `name`. */
export const Choice = (props: {
  label: string
  value: string
  options: readonly (readonly [value: string, label: string, isOff?: boolean])[]
  name?: string
  hint?: ComponentChildren
  /** Reads the next page of options. */
  more?(): void
  onValue(value: string): void
}) => {
  const { name } = props
  const about = name && `${name}-about`
  const isRefused = useRefusals(name).length > 0
  return (
    <div class="choice">
      <label>
        <span>{props.label}</span>
        <select
          name={name}
          value={props.value}
          aria-describedby={about}
          aria-invalid={isRefused || undefined}
          onChange={({ currentTarget: { value } }) =>
            value === MORE ? props.more?.() : props.onValue(value)
          }
        >
          {props.options.map(([value, label, isOff]) => (
            <option key={value} value={value} disabled={isOff}>
              {label}
            </option>
          ))}
        </select>
      </label>
      {name && (
        <div id={about}>
          {props.hint && <p class="hint">{props.hint}</p>}
          <Refusals name={name} />
        </div>
      )}
    </div>
  )
}

/**
 * Shows the search field of a list. The API accepts at most 256 characters. Enter does not send the form that
 * contains the field, because the list is searched while the person types.
 */
export const SearchField = (props: {
  label?: string
  placeholder: string
  value: string
  onValue(value: string): void
}) => (
  <label class="search">
    <Icon name="search" />
    <span class="unseen">{props.label ?? words.common.search}</span>
    <input
      type="search"
      placeholder={props.placeholder}
      value={props.value}
      maxLength={256}
      onInput={event => props.onValue(event.currentTarget.value)}
      onKeyDown={event => event.key === 'Enter' && event.preventDefault()}
    />
  </label>
)
