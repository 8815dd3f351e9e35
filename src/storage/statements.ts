import { Column, getTableName, is, Param, Placeholder, SQL } from 'drizzle-orm'

// Binds values and reads rows of statements made with drizzle's builder, for both engines. Most of this work
// is done once for each statement; drizzle's own sessions repeat it at each execution.
// test/storage/drizzle-contract.test.ts verifies the undocumented members of drizzle used in this folder.

export type Values = Record<string, unknown>
export type Row = Record<string, unknown>
export type Decode = (value: unknown) => unknown

/** A selected column or expression, and its path in the row. */
export interface SelectedField {
  path: string[]
  field: Column | SQL | SQL.Aliased
}

/** Returns a function from the values of placeholders to the parameters of the statement, in order. */
export const binder = (params: unknown[]): ((values?: Values) => unknown[]) => {
  const binds = params.map(param => {
    const placeholder = is(param, Param) ? param.value : param
    if (!is(placeholder, Placeholder)) return () => param
    const { name } = placeholder
    const encoder =
      is(param, Param) && param.encoder.mapToDriverValue !== Column.prototype.mapToDriverValue
        ? param.encoder
        : undefined
    return (values: Values) => {
      const value = values[name]
      if (value === undefined) throw new TypeError(`No value for the placeholder ${name}`)
      return encoder && value !== null ? encoder.mapToDriverValue(value) : value
    }
  })
  return (values = {}) => binds.map(bind => bind(values))
}

/** Returns the decoder of a field, or undefined when the engine's value needs none (most columns). */
export const decoderOf = ({ field }: SelectedField): Decode | undefined => {
  if (is(field, Column) && field.mapFromDriverValue === Column.prototype.mapFromDriverValue) return undefined
  const decoder: { mapFromDriverValue: Decode } = is(field, Column)
    ? field
    : Reflect.get(is(field, SQL) ? field : field.sql, 'decoder')
  return value => decoder.mapFromDriverValue(value)
}

/**
 * Returns a function from the values of a row, in the order of the fields, to the object that the query
 * selects.
 */
export const rowMapper = (
  fields: SelectedField[],
  decoders: (Decode | undefined)[],
  notNullable: Record<string, boolean> | undefined,
) => {
  const optional = optionalObjects(fields, notNullable)
  return (values: unknown[]): Row => {
    const row: Row = {}
    fields.forEach(({ path }, i) => {
      const [value, decode] = [values[i], decoders[i]]
      let node = row
      for (const name of path.slice(0, -1)) {
        node[name] ??= {}
        node = node[name] as Row
      }
      node[path.at(-1) ?? ''] = value === null || !decode ? value : decode(value)
    })
    for (const name of optional)
      if (Object.values(row[name] as Row).every(value => value === null)) row[name] = null
    return row
  }
}

/** Returns the names of objects that are null when a left join finds no row. */
const optionalObjects = (
  fields: SelectedField[],
  notNullable: Record<string, boolean> | undefined,
): Set<string> =>
  new Set(
    fields.flatMap(({ path: [name = '', inner], field }) =>
      inner !== undefined && notNullable && is(field, Column) && !notNullable[getTableName(field.table)]
        ? [name]
        : [],
    ),
  )
