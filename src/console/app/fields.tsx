import type { ComponentChildren } from 'preact'
import type { Problem } from './api.ts'
import { Copy } from './parts.tsx'
import { words } from './words.ts'

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
