/** Types of the value of an attribute. */
export const attributeTypes = ['string', 'integer', 'number', 'boolean', 'array', 'object'] as const
/** People who may see, or may edit, a value. */
export const attributeReaders = ['administrator', 'user', 'nobody'] as const

/**
 * A definition with its defaults. The rules of definitions are in user-attributes-schema.ts, a separate file
 * that the server need not load at its start.
 */
export type UserAttribute = {
  name: string
  label?: string | undefined
  type: (typeof attributeTypes)[number]
  required: boolean
  searchable: boolean
  visible: (typeof attributeReaders)[number]
  editable: (typeof attributeReaders)[number]
}

type Given = Pick<UserAttribute, 'name' | 'label' | 'type'> & {
  [Key in 'required' | 'searchable' | 'visible' | 'editable']?: UserAttribute[Key] | undefined
}

/**
 * Fills in the defaults of a definition. By default only administrators see and edit a value. A missing
 * `visible` thus never shows a value to users.
 */
export const withDefaults = ({
  required = false,
  searchable = false,
  visible = 'administrator',
  editable = 'administrator',
  ...attribute
}: Given): UserAttribute => ({ ...attribute, required, searchable, visible, editable })

/** Returns definitions with their defaults. */
export const definitionsOf = (attributes: readonly Given[] | null | undefined): UserAttribute[] =>
  (attributes ?? []).map(withDefaults)

/** Returns the names of the searchable attributes, sorted. */
export const searchableNames = (attributes: readonly UserAttribute[]): string[] =>
  attributes.flatMap(({ name, searchable }) => (searchable ? name : [])).sort()
