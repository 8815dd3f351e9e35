import { useState } from 'preact/hooks'
import type { OrganizationAnswer } from '#src/directory/organizations/schema.ts'
import { Entries } from '../collections.tsx'
import { Check, Choice, Field, Refusals } from '../fields.tsx'
import type { Loaded } from '../hooks.ts'
import { parseJson } from '../json.ts'
import { Card } from '../parts.tsx'
import { words } from '../words.ts'

export type Organization = (typeof OrganizationAnswer)['_output']
type Definition = NonNullable<Organization['settings']['user_attributes']>[number]
type Values = Record<string, unknown>

const text = words.attributes
const typeOptions = Object.entries(text.types)

/** Edits the attribute definitions of an organization. */
export const Definitions = (props: {
  definitions: Definition[]
  onDefinitions(definitions: Definition[]): void
}) => (
  <Card title={text.definitions} lead={text.definitionsLead}>
    <Refusals name="settings.user_attributes" isWhole />
    <Entries
      items={props.definitions}
      onItems={props.onDefinitions}
      fresh={{ name: '', type: 'string' }}
      add={text.add}
      empty={text.none}
      label={({ name }) => name || text.fresh}
    >
      {(definition, set, index) => {
        const { visible = 'administrator', editable = 'administrator' } = definition
        const of = (name: keyof Definition) => ({
          name: `settings.user_attributes.${index}.${name}`,
        })
        return (
          <>
            <div class="pair">
              <Field
                {...of('name')}
                label={text.name}
                autocomplete="off"
                spellcheck={false}
                value={definition.name}
                onValue={name => set({ name })}
              />
              <Field
                {...of('label')}
                label={text.label}
                autocomplete="off"
                hint={text.labelHint}
                value={definition.label ?? ''}
                onValue={label => set({ label: label || undefined })}
              />
            </div>
            <div class="pair">
              <Choice
                {...of('visible')}
                label={text.visible}
                value={visible}
                options={Object.entries(text.readers)}
                onValue={visible => set({ visible: visible as typeof definition.visible })}
              />
              <Choice
                {...of('editable')}
                label={text.editable}
                value={editable}
                options={Object.entries(text.writers)}
                onValue={editable => set({ editable: editable as typeof definition.editable })}
              />
            </div>
            <div class="pair">
              <Choice
                {...of('type')}
                label={text.type}
                value={definition.type}
                options={typeOptions}
                onValue={type => set({ type: type as Definition['type'] })}
              />
              <div class="checks">
                <Check
                  label={text.required}
                  checked={definition.required ?? false}
                  onChecked={required => set({ required })}
                />
                <Refusals {...of('required')} />
                <Check
                  label={text.searchable}
                  checked={definition.searchable ?? false}
                  onChecked={searchable => set({ searchable })}
                />
                <Refusals {...of('searchable')} />
              </div>
            </div>
          </>
        )
      }}
    </Entries>
  </Card>
)

const shown = (value: unknown): string =>
  value === undefined || value === null
    ? ''
    : typeof value === 'object'
      ? JSON.stringify(value)
      : String(value)

/**
 * Parses the text of an input as a value of the attribute's type. For an empty text, returns no `value`. This
 * removes the attribute. For a text that cannot be parsed, returns the reason in `bad`.
 */
const readValue = (type: Definition['type'], typed: string): { value?: unknown; bad?: string } => {
  if (typed === '') return {}
  if (type === 'string') return { value: typed }
  if (type === 'boolean') return { value: typed === 'true' }
  if (type === 'array') return { value: typed.split('\n').flatMap(line => line.trim() || []) }
  try {
    const value = parseJson(typed)
    if (type === 'object' ? typeof value === 'object' && value !== null : typeof value === 'number')
      return { value }
  } catch {}
  return { bad: type === 'object' ? text.notJson : text.number }
}

const isFixed = ({ editable }: Definition): boolean => editable === 'nobody'

const aboutOf = ({ visible, editable, type }: Definition): string =>
  [
    editable === 'user' ? text.own : visible === 'user' ? text.seen : '',
    type === 'array' ? text.lines : type === 'object' ? text.json : '',
  ]
    .filter(Boolean)
    .join(' ')

/**
 * Edits an attribute that has a definition. If a text cannot be parsed, the field keeps it and shows the
 * reason.
 */
const Defined = (props: { definition: Definition; value: unknown; onValue(value: unknown): void }) => {
  const { definition, value, onValue } = props
  const { type } = definition
  const [typed, setTyped] = useState(
    type === 'array' && Array.isArray(value) ? value.join('\n') : shown(value),
  )
  const [bad, setBad] = useState<string>()
  const field = `attributes.${definition.name}`
  const label = definition.label ?? definition.name
  const change = (typed: string) => {
    setTyped(typed)
    const read = readValue(type, typed)
    setBad(read.bad)
    onValue(read.bad === undefined ? read.value : typed)
  }
  if (isFixed(definition))
    return (
      <div class="field">
        <span>{label}</span>
        <span>{typed || text.unset}</span>
        <p class="hint">{text.fixed}</p>
      </div>
    )
  if (type === 'boolean')
    return (
      <Choice
        name={field}
        label={label}
        value={typed}
        options={[
          ['', text.unset],
          ['true', words.common.yes],
          ['false', words.common.no],
        ]}
        onValue={change}
      />
    )
  return (
    <Field
      name={field}
      label={label}
      hint={aboutOf(definition)}
      autocomplete="off"
      {...(type === 'array' || type === 'object' ? { multiline: 3 } : {})}
      {...(type === 'object' ? { spellcheck: false } : {})}
      value={typed}
      bad={bad}
      onValue={change}
    />
  )
}

/** Parses a typed text as a value of the type of `stored`. Returns the text if it has another type. */
const likeStored = (stored: unknown, typed: string): unknown => {
  if (shown(stored) === typed) return stored
  try {
    const value = parseJson(typed)
    if (typeof stored !== 'string' && typeof value === typeof stored && value !== null) return value
  } catch {}
  return typed
}

/**
 * Edits attributes without a definition. A changed value keeps its type if it can. The organization may have
 * a definition that the caller cannot read.
 */
const Others = (props: { title: string; empty: string; values: Values; onValues(values: Values): void }) => {
  const [rows, setRows] = useState(() =>
    Object.entries(props.values).map(([name, value]) => ({ name, value, typed: shown(value) })),
  )
  const change = (rows: { name: string; value: unknown; typed: string }[]) => {
    setRows(rows)
    const given = rows.filter(({ name, typed }) => name !== '' || typed !== '')
    props.onValues(
      Object.fromEntries(given.map(({ name, value, typed }) => [name, likeStored(value, typed)])),
    )
  }
  return (
    <>
      {props.title && rows.length > 0 && (
        <>
          <h3>{props.title}</h3>
          <p class="hint">{text.othersHint}</p>
        </>
      )}
      <Entries
        inline
        items={rows}
        onItems={change}
        fresh={{ name: '', value: '', typed: '' }}
        add={text.addOther}
        empty={props.empty}
        label={({ name }) => name || text.fresh}
      >
        {({ name, typed }, set, index) => (
          <div class="pair">
            <Field
              name={`other-${index}`}
              label={text.name}
              autocomplete="off"
              spellcheck={false}
              value={name}
              onValue={name => set({ name })}
            />
            <Field
              name={`attributes.${name}`}
              label={text.value}
              autocomplete="off"
              value={typed}
              onValue={typed => set({ typed })}
            />
          </div>
        )}
      </Entries>
    </>
  )
}

/** Edits the attributes of a user. Attributes with a definition come first. */
export const Attributes = (props: {
  organization: Loaded<Organization>
  attributes: Values
  onAttributes(attributes: Values): void
}) => {
  const { organization, attributes, onAttributes } = props
  if (organization.isLoading) return null
  const all = organization.data?.settings.user_attributes ?? []
  const definitions = all.filter(({ visible }) => visible !== 'nobody')
  const isDefined = (name: string) => all.some(definition => definition.name === name)
  const part = (wanted: boolean): Values =>
    Object.fromEntries(
      Object.entries(attributes).filter(([name, value]) => isDefined(name) === wanted && value !== undefined),
    )
  const set = (name: string, value: unknown) => {
    const { [name]: _, ...rest } = attributes
    onAttributes(value === undefined ? rest : { ...attributes, [name]: value })
  }
  return (
    <Card title={text.title}>
      {definitions.map(definition => (
        <Defined
          key={definition.name}
          definition={definition}
          value={attributes[definition.name]}
          onValue={value => set(definition.name, value)}
        />
      ))}
      <Others
        title={definitions.length > 0 ? text.others : ''}
        empty={definitions.length > 0 ? '' : text.empty}
        values={part(false)}
        onValues={values => onAttributes({ ...part(true), ...values })}
      />
    </Card>
  )
}
