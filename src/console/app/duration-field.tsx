import { useState } from 'preact/hooks'
import { useLimit } from './api-form.tsx'
import { Field } from './fields.tsx'
import { say, words } from './words.ts'

/**
 * Seconds of each unit, in the order in which `textOf` tries the units. Weeks come last, so `textOf` never
 * writes weeks, but a person can type them.
 */
const units = { d: 86_400, h: 3_600, m: 60, s: 1, w: 604_800 }
type Unit = keyof typeof units

/**
 * Returns a number of seconds as a text such as `12h`, in the first of the `units` that divides the number.
 */
const textOf = (seconds: number): string => {
  const unit = (Object.keys(units) as Unit[]).find(unit => seconds % units[unit] === 0) ?? 's'
  return `${seconds / units[unit]}${unit}`
}

/** Parses a duration such as `12h` into seconds. Returns NaN for any other text. */
const secondsOf = (text: string): number => {
  const [, count, unit] = /^(\d{1,9})([smhdw])$/.exec(text) ?? []
  return Number(count) * units[unit as Unit]
}

/**
 * Edits a duration as a text such as `12h`. The API keeps the duration as a number of seconds or days. The
 * component keeps the text as its state. A new `key` resets the text.
 */
export const DurationField = (props: {
  name: string
  label: string
  hint?: string
  /** Unit of the API's number. */
  unit?: 's' | 'd'
  value: number | null | undefined
  onValue(value: number | null): void
}) => {
  const { name, label, hint = '', unit = 's', value, onValue } = props
  const { min = 0, max = Infinity } = useLimit(name)
  const [typed, setTyped] = useState(value == null ? '' : textOf(value * units[unit]))
  const read = (text: string): number => secondsOf(text) / units[unit]
  const isGood = (text: string): boolean => {
    const value = read(text)
    return text === '' || (Number.isInteger(value) && value >= min && value <= max)
  }
  const [from = '', to = ''] = [min, max].map(bound => textOf(bound * units[unit]))
  return (
    <Field
      name={name}
      label={label}
      hint={`${say(words.common.range, { from, to })} ${hint}`}
      type="text"
      autocomplete="off"
      spellcheck={false}
      value={typed}
      bad={isGood(typed) ? undefined : say(words.common.duration, { example: from })}
      onValue={text => {
        setTyped(text)
        // Even an invalid text is reported as a change. The field keeps the form from sending that text.
        onValue(text === '' ? null : isGood(text) ? read(text) : (text as never))
      }}
    />
  )
}
