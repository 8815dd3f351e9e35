import { z } from 'zod'
import { flag, line } from '#src/directory/fields.ts'
import { settingsOf } from '#src/directory/organizations/settings.ts'
import type { Organization } from '#src/directory/organizations/store.ts'
import type { UserAttribute } from '#src/directory/organizations/user-attributes.ts'
import type { Detail } from '#src/lib/app-error.ts'
import { isRecord } from '#src/lib/json.ts'
import { freeAttributesProblem, numberProblems } from './free-attributes.ts'

type Attributes = Record<string, unknown>

const LIST = 'A list of at most 100 lines of 1 to 256 characters.'

const TOO_LARGE = 'At most 64 KiB as JSON, together with the attributes that cannot be changed.'

const schemas: Record<UserAttribute['type'], z.ZodType> = {
  string: line(1024, 1),
  integer: z.int('A whole number.'),
  number: z.number('A number.'),
  boolean: flag,
  array: z.array(line(256, 1), LIST).max(100, LIST),
  object: z.custom(isRecord, 'A JSON object.'),
}

/** Returns why a value does not have the type of the attribute. Returns undefined when it has the type. */
export const attributeProblem = ({ type }: UserAttribute, value: unknown): string | undefined =>
  schemas[type].safeParse(value).error?.issues[0]?.message

/** Returns the value of an attribute. Names that objects inherit, such as `constructor`, have no value. */
export const ownAttribute = (attributes: Attributes, name: string): unknown =>
  Object.hasOwn(attributes, name) ? attributes[name] : undefined

/** Returns the attributes that administrators may see. */
const shownOf = (definitions: readonly UserAttribute[], attributes: Attributes): Attributes => {
  const hidden = definitions.flatMap(({ name, visible }) => (visible === 'nobody' ? name : []))
  return Object.fromEntries(Object.entries(attributes).filter(([name]) => !hidden.includes(name)))
}

/**
 * Checks new attributes against the definitions of the organization. An unchanged value is accepted, because
 * the definition may be newer than the value. An administrator's change replaces all attributes. If the
 * change lacks an attribute that administrators cannot change, this attribute keeps its value. Some
 * attributes may neither be seen nor changed by administrators. A value for such an attribute is refused,
 * even if it equals the stored value. Otherwise a caller could find the stored value by trying values.
 *
 * @param isCaller true for a change through the admin API; false for a change by the server (seed file) or by
 * the user
 */
export const judgeAttributes = (
  definitions: readonly UserAttribute[],
  before: Attributes,
  given: Attributes,
  isCaller: boolean,
): { attributes: Attributes; problems: Detail[] } => {
  const attributes = { ...given }
  const problems: Detail[] = []
  for (const definition of definitions) {
    const { name, editable, visible } = definition
    const [old, value] = [ownAttribute(before, name), ownAttribute(given, name)]
    const isFixed = isCaller && editable === 'nobody'
    if (isFixed && value === undefined && old !== undefined) attributes[name] = old
    const isGuess = isFixed && visible === 'nobody'
    if (value === undefined || (Bun.deepEquals(value, old) && !isGuess)) continue
    const message = isFixed ? 'This attribute cannot be changed.' : attributeProblem(definition, value)
    const code = isFixed ? 'read_only' : 'invalid_type'
    if (message) problems.push({ field: `attributes.${name}`, code, message })
  }
  // The size of the given attributes is already checked, but not together with the kept attributes. Hidden
  // attributes are not counted, because the refusal would reveal their size.
  const isKeeping = Object.keys(attributes).length > Object.keys(given).length
  if (isKeeping && freeAttributesProblem(shownOf(definitions, attributes)))
    problems.push({ field: 'attributes', code: 'too_large', message: TOO_LARGE })
  // Numbers are checked only if there is no other problem. Otherwise a caller could guess a large number in
  // an attribute that nobody may see: each guess is refused as read-only, but only a wrong guess would also
  // be refused because it may lose digits.
  return { attributes, problems: problems.length > 0 ? problems : numberProblems(given, before) }
}

/** Returns the user without the attributes that administrators may not see. */
export const asShown = <User extends { attributes: Attributes }>(
  organization: Organization | undefined,
  user: User,
): User => {
  const definitions = organization ? settingsOf(organization).user_attributes : []
  const isHiding = definitions.some(
    ({ visible, name }) => visible === 'nobody' && Object.hasOwn(user.attributes, name),
  )
  return isHiding ? { ...user, attributes: shownOf(definitions, user.attributes) } : user
}

/**
 * Returns the attributes after a change by the user. The value `undefined` removes an attribute. A new phone
 * number counts as unverified, because only the old number was verified.
 */
export const withOwnAttributes = (before: Attributes, changes: Attributes): Attributes => {
  const attributes = Object.fromEntries(
    Object.entries({ ...before, ...changes }).filter(([, value]) => value !== undefined),
  )
  const isMoved = !Bun.deepEquals(
    ownAttribute(before, 'phone_number'),
    ownAttribute(attributes, 'phone_number'),
  )
  if (isMoved) delete attributes.phone_number_verified
  return attributes
}
