import type { ComponentChildren } from 'preact'
import { useLayoutEffect, useRef, useState } from 'preact/hooks'
import { useRefusals } from './api-form.tsx'
import { Field, Refusals } from './fields.tsx'
import { Icon } from './icons.tsx'
import { MORE, type Options } from './options.ts'
import { joined, say, words } from './words.ts'

const { common } = words

/** Shows a button that removes an item. `label` names the item for screen readers. */
export const RemoveButton = ({ label, onClick }: { label: string; onClick(): void }) => (
  <button
    type="button"
    class="quiet remove"
    aria-label={say(common.removeOne, { name: label })}
    title={say(common.removeOne, { name: label })}
    onClick={onClick}
  >
    <Icon name="cross" />
  </button>
)

/**
 * Edits a list of objects. The component numbers the items, so that removing an item does not reset the
 * fields of the other items. Give the component a new `key` when `items` is replaced from outside.
 */
export const Entries = <T extends object>(props: {
  items: readonly T[]
  onItems(items: T[]): void
  /** The initial value of a new entry. */
  fresh: T
  add: string
  empty: string
  label(item: T): string
  inline?: boolean
  children(item: T, set: (change: Partial<T>) => void, index: number): ComponentChildren
}) => {
  const { items, onItems } = props
  const [keys, setKeys] = useState(() => items.map((_, index) => index))
  const append = () => {
    setKeys([...keys, Math.max(-1, ...keys) + 1])
    onItems([...items, props.fresh])
  }
  const remove = (at: number) => {
    setKeys(keys.filter((_, index) => index !== at))
    onItems(items.filter((_, index) => index !== at))
  }
  const change = (at: number) => (change: Partial<T>) =>
    onItems(items.map((item, index) => (index === at ? { ...item, ...change } : item)))
  return (
    <div class="entries">
      {items.length === 0 && props.empty && <p class="hint">{props.empty}</p>}
      {items.map((item, index) => (
        <fieldset key={keys[index]} class={props.inline ? 'entry inline' : 'entry'}>
          <legend class="unseen">{props.label(item)}</legend>
          <div>{props.children(item, change(index), index)}</div>
          <RemoveButton label={props.label(item)} onClick={() => remove(index)} />
        </fieldset>
      ))}
      <button type="button" class="add" onClick={append}>
        <Icon name="plus" /> {props.add}
      </button>
    </div>
  )
}

/**
 * Chooses a value, which a button or Enter adds. The choice alone adds nothing, because each arrow key makes
 * another choice. The choice needs a label for the id `name`, and is described by `children`.
 */
export const Adder = (props: {
  name: string
  taken: readonly string[]
  options: Options
  onAdd(value: string): void
  children: ComponentChildren
}) => {
  const { name, taken } = props
  const { all, more } = props.options
  const [chosen, setChosen] = useState('')
  const [added, setAdded] = useState('')
  const select = useRef<HTMLSelectElement>(null)
  const left = all.filter(([value]) => !taken.includes(value))
  const [value, label] = left.find(([value]) => value === chosen) ?? ['', '']
  const isRefused = useRefusals(name).length > 0
  // A form that is sent would leave the choice out, so the browser refuses to send it.
  const complaint = value && say(common.notAdded, { add: words.groups.addAction, name: label })
  useLayoutEffect(() => select.current?.setCustomValidity(complaint), [complaint])
  const choose = (value: string) => {
    setChosen(value)
    setAdded('')
  }
  const add = () => {
    select.current?.focus()
    if (value === '') return
    props.onAdd(value)
    setChosen('')
    setAdded(say(common.added, { name: label }))
  }
  return (
    <>
      <div class="input">
        <select
          ref={select}
          id={name}
          value={value}
          aria-describedby={`${name}-about`}
          aria-invalid={isRefused || undefined}
          aria-disabled={left.length === 0}
          onChange={({ currentTarget }) => {
            if (currentTarget.value !== MORE) return choose(currentTarget.value)
            currentTarget.value = value
            more()
          }}
          onKeyDown={event => {
            if (event.key !== 'Enter' || value === '') return
            // Enter would send the form without the chosen value.
            event.preventDefault()
            add()
          }}
        >
          <option value="">{left.length > 0 ? common.choose : common.nothingLeft}</option>
          {left.map(([value, label]) => (
            <option key={value} value={value}>
              {label}
            </option>
          ))}
        </select>
        <button
          type="button"
          aria-label={joined([words.groups.addAction, label])}
          disabled={left.length === 0}
          onClick={add}
        >
          {words.groups.addAction}
        </button>
        <span class="unseen" role="status">
          {added}
        </span>
      </div>
      <div id={`${name}-about`}>
        {complaint && <p class="field-error complaint">{complaint}</p>}
        {props.children}
      </div>
    </>
  )
}

/** Chooses some of the given values. Each chosen value has a button that removes it. */
export const Picker = (props: {
  name: string
  label: string
  hint?: string
  chosen: readonly string[]
  options: Options
  onChosen(chosen: string[]): void
}) => {
  const { name, chosen, options, onChosen } = props
  const labelOf = (value: string) => options.all.find(([known]) => known === value)?.[1] ?? value
  return (
    <div class="field">
      <label for={name}>{props.label}</label>
      {chosen.length > 0 && (
        <ul class="chips">
          {chosen.map(value => (
            <li key={value}>
              <span>{labelOf(value)}</span>
              <RemoveButton
                label={labelOf(value)}
                onClick={() => onChosen(chosen.filter(each => each !== value))}
              />
            </li>
          ))}
        </ul>
      )}
      <Adder
        name={name}
        taken={chosen}
        options={options}
        onAdd={value => onChosen([...chosen, value].sort())}
      >
        {props.hint && <p class="hint">{props.hint}</p>}
        <Refusals name={name} />
      </Adder>
    </div>
  )
}

/**
 * Edits a list of texts, one per line. If `rows` is 0, the texts stand in one line, separated by spaces. The
 * component keeps the text as its state. A new `key` resets the text.
 */
export const LinesField = (props: {
  name: string
  label: string
  hint?: string
  rows?: number
  lines: readonly string[]
  onLines(lines: string[]): void
}) => {
  const { lines, onLines, rows = 3, ...more } = props
  const [typed, setTyped] = useState(() => lines.join(rows > 0 ? '\n' : ' '))
  return (
    <Field
      {...more}
      multiline={rows}
      spellcheck={false}
      value={typed}
      onValue={text => {
        setTyped(text)
        onLines(text.split(/\s+/).filter(Boolean))
      }}
    />
  )
}
