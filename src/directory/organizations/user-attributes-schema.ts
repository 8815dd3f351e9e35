import { z } from 'zod'
import { flag, line, oneOf } from '#src/directory/fields.ts'
import { attributeReaders, attributeTypes, type UserAttribute, withDefaults } from './user-attributes.ts'

/**
 * Maximum number of definitions. The definitions are part of the settings, which each login reads. The
 * account page shows all of them.
 */
const MAX_ATTRIBUTES = 50
/** Maximum number of searchable attributes. Each value of a user is a row of the index. */
const MAX_SEARCHABLE = 10
const NAME = 'A letter, then at most 63 letters, digits, hyphens and underscores.'

/**
 * Returns the rules of a definition. A rule consists of the field, a value that is true if the definition
 * breaks the rule, and the message.
 */
const rules = ({ name, type, required, searchable, visible, editable }: UserAttribute) =>
  [
    [
      'visible',
      visible === 'user' && type === 'object',
      'Pages cannot show objects: set `visible` to `administrator` or `nobody`.',
    ],
    [
      'visible',
      editable === 'user' && visible !== 'user',
      'Users must see what they edit: set `visible` to `user`.',
    ],
    [
      'visible',
      editable === 'administrator' && visible === 'nobody',
      'Administrators must see what they edit: set `visible` to `administrator` or `user`.',
    ],
    [
      'required',
      required && editable !== 'user',
      'Users are asked for a required attribute, so set `editable` to `user`.',
    ],
    [
      'searchable',
      searchable && (visible === 'nobody' || type === 'object'),
      'Objects, and attributes that nobody sees, cannot be searched.',
    ],
    // Pages have no input for a list. An attribute such as `phone_number_verified` is the result of a check,
    // so users must not set it.
    [
      'editable',
      editable === 'user' && (type === 'array' || name.endsWith('_verified')),
      'Users cannot edit a list, or an attribute whose name ends in `_verified`: set `editable` to `administrator` or `nobody`.',
    ],
  ] as const

/** The definition of a user attribute. */
const UserAttributeSchema = z
  .strictObject(
    {
      name: z
        .string(NAME)
        .regex(/^[A-Za-z][A-Za-z0-9_-]{0,63}$/, NAME)
        .describe('Key in `attributes`.'),
      label: line(64, 1).optional().describe('Name on the account pages; default: `name`.'),
      type: oneOf(attributeTypes).describe(
        'Type of the value. `string`: a line of at most 1,024 characters; `array`: at most 100 lines of at most 256 characters.',
      ),
      required: flag
        .optional()
        .describe(
          'Whether users are asked for the value at their next login. The admin API accepts users without a value.',
        ),
      searchable: flag
        .optional()
        .describe(`Whether \`listUsers\` can filter by the value; at most ${MAX_SEARCHABLE} attributes.`),
      visible: oneOf(attributeReaders)
        .optional()
        .describe(
          '`administrator`: administrators see the value; `user`: administrators and the user see the value; `nobody`: the value appears only in claims. Users who download their own data get every value.',
        ),
      editable: oneOf(attributeReaders)
        .optional()
        .describe(
          '`administrator`: administrators change the value; `user`: administrators and the user change the value; `nobody`: only the seed file changes the value.',
        ),
    },
    'The definition of an attribute.',
  )
  .superRefine((attribute, issues) => {
    for (const [field, broken, message] of rules(withDefaults(attribute)))
      if (broken) issues.addIssue({ code: 'custom', path: [field], message })
  })
  .meta({
    id: 'UserAttribute',
    description: 'An attribute that users of an organization may have.',
    example: {
      name: 'department',
      label: 'Department',
      type: 'string',
      required: false,
      searchable: true,
      visible: 'user',
      editable: 'administrator',
    },
  })
/** The definitions of an organization, in the order of the account pages. */
export const UserAttributes = z
  .array(UserAttributeSchema, 'A list of definitions.')
  .max(MAX_ATTRIBUTES, `At most ${MAX_ATTRIBUTES} definitions.`)
  .superRefine((attributes, issues) => {
    const names = attributes.map(({ name }) => name)
    for (const [index, name] of names.entries())
      if (names.indexOf(name) < index)
        issues.addIssue({ code: 'custom', path: [index, 'name'], message: 'This name is defined twice.' })
    if (attributes.filter(({ searchable }) => searchable).length > MAX_SEARCHABLE)
      issues.addIssue({ code: 'custom', message: `At most ${MAX_SEARCHABLE} attributes are searchable.` })
  })
