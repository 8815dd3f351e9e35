import type { Decode, Parameter } from '#src/storage/statements.ts'
import made from './made-statements.json' with { type: 'json' }

/** Form of a value that must be converted before it is bound or after it is read. */
export type Form = 'boolean' | 'json' | 'bytes'

/** One statement in the file that `.ci/statements.ts` generates. */
export interface MadeStatement {
  sql: string
  /** Parameters in order: a value, or the name of a placeholder with its form, such as `resources:json`. */
  parameters: (string | { readonly value: unknown })[]
  /**
   * Paths of the selected fields with their forms, separated by spaces. Undefined when the statement returns
   * no rows.
   */
  fields?: string
}

const encoders: Partial<Record<Form, Decode>> = {
  boolean: value => (value ? 1 : 0),
  json: value => JSON.stringify(value),
}
const decoders: Record<Form, Decode> = {
  boolean: value => value === 1,
  json: value => JSON.parse(String(value)),
  bytes: value => Buffer.from(value as Uint8Array),
}

const statements = made as Record<string, MadeStatement>

/** Returns a statement whose SQL was made at build time (`preparedForStart`). */
export const madeStatement = (name: string) => {
  const found = statements[name]
  if (!found) throw new Error(`${name} is missing: run \`bun run statements:generate\``)
  const { sql, parameters, fields } = found
  return {
    sql,
    parameters: parameters.map((parameter): Parameter => {
      if (typeof parameter !== 'string') return parameter
      const [name, form] = split(parameter)
      return { name, encode: form && encoders[form] }
    }),
    fields: fields?.split(' ').map(field => {
      const [path, form] = split(field)
      return { path: path.split('.'), decode: form && decoders[form] }
    }),
  }
}

const split = (text: string) => text.split(':') as [name: string, form?: Form]
