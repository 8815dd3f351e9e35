import {
  Column,
  getTableColumns,
  getTableName,
  is,
  Param,
  Placeholder,
  SQL,
  sql,
  type Table,
} from 'drizzle-orm'

// Binds values and reads rows of statements made with drizzle's builder, for both engines.
// test/storage/drizzle-contract.test.ts verifies the undocumented members of drizzle used in this folder.

export type Values = Record<string, unknown>
export type Row = Record<string, unknown>
export type Decode = (value: unknown) => unknown

/** A selected column or expression, and its path in the row. */
export interface SelectedField {
  path: string[]
  field: Column | SQL | SQL.Aliased
}

/** A parameter of a statement: a value, or a placeholder with the function that encodes its value. */
export type Parameter =
  | { value: unknown }
  | { name: string; encode?: ((value: unknown) => unknown) | undefined }

/** Converts a parameter of drizzle's builder. */
export const parameterOf = (param: unknown): Parameter => {
  const placeholder = is(param, Param) ? param.value : param
  if (!is(placeholder, Placeholder)) return { value: param }
  const { name } = placeholder
  const encodes = is(param, Param) && param.encoder.mapToDriverValue !== Column.prototype.mapToDriverValue
  return encodes ? { name, encode: value => param.encoder.mapToDriverValue(value) } : { name }
}

/**
 * Returns a row for a prepared insert. The row has a placeholder for each column except `generated`, which
 * the database fills in. The placeholders have the names of the columns.
 */
export const placeholderRow = (table: Table, generated: string) =>
  Object.fromEntries(
    Object.keys(getTableColumns(table))
      .filter(name => name !== generated)
      .map(name => [name, sql.placeholder(name)]),
  ) as never

const argumentOf = (parameter: Parameter, values: Values): unknown => {
  if ('value' in parameter) return parameter.value
  const value = values[parameter.name]
  if (value === undefined) throw new TypeError(`No value for the placeholder ${parameter.name}`)
  return parameter.encode && value !== null ? parameter.encode(value) : value
}

/**
 * Returns a function that takes the values of placeholders by name. It returns the parameters of the
 * statement in order.
 */
export const binder =
  (parameters: readonly Parameter[]) =>
  (values: Values = {}): unknown[] => {
    const bound: unknown[] = []
    for (const parameter of parameters) bound.push(argumentOf(parameter, values))
    return bound
  }

/**
 * Returns the decoder of a field. Returns undefined when the engine's value needs no decoding. This is the
 * case for most columns.
 */
export const decoderOf = ({ field }: SelectedField): Decode | undefined => {
  if (is(field, Column) && field.mapFromDriverValue === Column.prototype.mapFromDriverValue) return undefined
  const decoder: { mapFromDriverValue: Decode } = is(field, Column)
    ? field
    : Reflect.get(is(field, SQL) ? field : field.sql, 'decoder')
  return value => decoder.mapFromDriverValue(value)
}

/**
 * Returns a function that takes the values of a row in the order of the fields. It returns the object that
 * the query selects.
 *
 * @param optional names of objects that are null when a left join finds no row
 */
export const rowMapper = (
  fields: readonly { path: string[] }[],
  decoders: (Decode | undefined)[],
  optional: Iterable<string> = [],
) => {
  const places = fields.map(({ path }, i) => ({
    parents: path.slice(0, -1),
    name: path.at(-1) ?? '',
    decode: decoders[i],
  }))
  return (values: unknown[]): Row => {
    const row: Row = {}
    let i = 0
    for (const { parents, name, decode } of places) {
      const value = values[i++]
      let node = row
      for (const parent of parents) {
        node[parent] ??= {}
        node = node[parent] as Row
      }
      node[name] = value === null || !decode ? value : decode(value)
    }
    for (const name of optional)
      if (Object.values(row[name] as Row).every(value => value === null)) row[name] = null
    return row
  }
}

/** Returns the names of objects that are null when a left join finds no row. */
export const optionalObjects = (
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
