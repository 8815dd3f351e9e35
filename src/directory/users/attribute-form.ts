import type { UserAttribute } from '#src/directory/organizations/user-attributes.ts'
import type { AttributeField } from '#src/pages/data.ts'
import { attributeProblem, ownAttribute } from './attributes.ts'
import { freeAttributesProblem } from './free-attributes.ts'

type Attributes = Record<string, unknown>

/** Error codes by the id of the form field. */
export type AttributeErrors = Record<string, NonNullable<AttributeField['error']>>

const idOf = ({ name }: Pick<UserAttribute, 'name'>): string => `attribute.${name}`

const textOf = (value: unknown): string =>
  value === undefined ? '' : Array.isArray(value) ? value.join(', ') : String(value)

/**
 * Returns the form fields of the attributes that users see.
 *
 * @param refused a refused form, if any: its values, which the page shows again, and its errors
 */
export const attributeFields = (
  definitions: readonly UserAttribute[],
  attributes: Attributes,
  refused?: { form: ReadonlyMap<string, string>; errors: AttributeErrors },
): AttributeField[] =>
  definitions.flatMap(definition => {
    const { name, label = name, type, required, visible, editable } = definition
    if (visible !== 'user') return []
    const id = idOf(definition)
    const value = textOf(ownAttribute(attributes, name))
    const error = refused?.errors[id]
    return {
      id,
      label,
      type: type === 'boolean' ? 'checkbox' : 'text',
      value: refused && editable === 'user' ? (refused.form.get(id) ?? '') : value,
      required,
      editable: editable === 'user',
      ...(error && { error }),
    }
  })

const NUMBER = /^[+-]?\d{1,16}(\.\d{1,16})?$/

const readValue = ({ type }: UserAttribute, text: string | undefined): unknown => {
  if (type === 'boolean') return text === 'true'
  const trimmed = text?.trim() || undefined
  const number = trimmed !== undefined && type !== 'string' && NUMBER.test(trimmed) ? Number(trimmed) : NaN
  // A larger number may lose digits. Its text is returned and then refused, because it is no number.
  return Math.abs(number) <= Number.MAX_SAFE_INTEGER ? number : trimmed
}

/**
 * Reads a form, and returns the changed attributes and the errors. Only attributes that users may edit are
 * read. The form field `attributes` lists the attributes that the page showed, because browsers do not send
 * an unticked checkbox.
 */
export const readAttributes = (
  definitions: readonly UserAttribute[],
  attributes: Attributes,
  form: ReadonlyMap<string, string>,
): { changes: Attributes; errors: AttributeErrors } => {
  const shown = new Set(form.get('attributes')?.split(' '))
  const changes: Attributes = {}
  const errors: AttributeErrors = {}
  for (const definition of definitions) {
    const id = idOf(definition)
    if (definition.editable !== 'user' || !shown.has(id)) continue
    const { name, required } = definition
    const text = form.get(id)
    // An unchanged value stays, even if the form would refuse this value now.
    if (text && text === textOf(ownAttribute(attributes, name))) continue
    const read = readValue(definition, text)
    // If an optional attribute has no stored value, an unticked box does not count as `false`.
    const isUntouched = read === false && !required && ownAttribute(attributes, name) === undefined
    const value = isUntouched ? undefined : read
    changes[name] = value
    if (value === undefined && required) errors[id] = 'required'
    if (value !== undefined && attributeProblem(definition, value)) errors[id] = 'value'
  }
  // Attributes must not exceed the limits of the admin API. Otherwise the API would refuse a PUT with the
  // unchanged answer of a GET. Values that the form removes or leaves unchanged are not marked.
  if (freeAttributesProblem({ ...attributes, ...changes }))
    for (const [name, value] of Object.entries(changes))
      if (value !== undefined && value !== ownAttribute(attributes, name)) errors[idOf({ name })] ??= 'value'
  return { changes, errors }
}

/** Returns the attributes that the user still has to fill in. */
export const missingAttributes = (
  definitions: readonly UserAttribute[],
  attributes: Attributes,
): UserAttribute[] =>
  definitions.filter(({ name, required }) => required && ownAttribute(attributes, name) === undefined)
