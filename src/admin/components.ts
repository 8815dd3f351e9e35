import { z } from 'zod'
import { example } from '#src/http/example.ts'
import type { AdminRoute } from '#src/http/guard.ts'

export type Json = Record<string, unknown>

const ErrorDetail = z
  .object({
    field: z.string().describe('Path of the field, such as `settings.session_ttl`.'),
    code: z.string().describe('Kind of the mistake.'),
    message: z.string().describe('The fault of the value, or the values that are allowed.'),
  })
  .meta({ id: 'ErrorDetail', description: 'A refused field.' })

const ErrorAnswer = z
  .object({
    error: z.string().describe('Kind of the refusal, such as `validation_failed`.'),
    error_description: z.string().describe('The reason as a sentence.'),
    status: z.int().describe('Status of the answer.'),
    request_id: z.string().describe('Id of the request, also in the header `x-request-id` and in the log.'),
    details: z
      .array(ErrorDetail)
      .optional()
      .describe('Each refused field (422), or the field whose value another object already has (409).'),
    current: z
      .record(z.string(), z.unknown())
      .optional()
      .describe('The object as it is stored (412), if the caller may read it.'),
    confirm: z
      .string()
      .optional()
      .describe(
        'The value of the query parameter `confirm` that confirms the change (409 `last_administrator`).',
      ),
  })
  .meta({
    id: 'Error',
    description: 'The body of every refusal.',
    example: {
      error: 'validation_failed',
      error_description: 'A field is not valid.',
      status: 422,
      request_id: example.user_id.slice(4),
      details: [{ field: 'email', code: 'invalid_type', message: 'An e-mail address.' }],
    },
  })

type Converted = { zodSchema: z.core.$ZodTypes; jsonSchema: Json; path: (string | number)[] }

/**
 * Adds the discriminator of a union, and removes bounds that exclude no value. Keeps
 * `additionalProperties: false` only in the outermost object of a body or query. All other objects allow
 * unknown fields: a later version may add some, and a client generated from this document would refuse them.
 */
const override = (io: 'input' | 'output', { zodSchema, jsonSchema, path }: Converted): void => {
  const isOutermost = path.length === 2 || path.at(-2) === 'oneOf'
  if (jsonSchema.additionalProperties === false && !(io === 'input' && isOutermost))
    delete jsonSchema.additionalProperties
  if (jsonSchema.maximum === Number.MAX_SAFE_INTEGER) delete jsonSchema.maximum
  if (jsonSchema.minLength === 0) delete jsonSchema.minLength
  if (jsonSchema.minimum === Number.MIN_SAFE_INTEGER) delete jsonSchema.minimum
  if (!(zodSchema instanceof z.ZodDiscriminatedUnion)) return
  const { discriminator: propertyName, options } = zodSchema.def
  const mapping = options.map((option, i) => [
    (option as z.ZodObject<Record<string, z.ZodLiteral<string>>>).shape[propertyName]?.value,
    (jsonSchema.oneOf as Json[])[i]?.$ref,
  ])
  jsonSchema.discriminator = { propertyName, mapping: Object.fromEntries(mapping) }
}

/** Converts schemas by key. Schemas with an id become `$defs`. */
const convert = (schemas: Record<string, z.ZodType>, io: 'input' | 'output') => {
  const converted = z.toJSONSchema(z.object(schemas), {
    io,
    unrepresentable: 'any',
    override: context => override(io, context),
  })
  const text = JSON.stringify(converted).replaceAll('"#/$defs/', '"#/components/schemas/')
  return JSON.parse(text) as { properties: Record<string, Json>; $defs: Record<string, Json> }
}

const nameIn = (ref: unknown): string => String(ref).slice(String(ref).lastIndexOf('/') + 1)

/** Returns the shared schemas and examples by name. Each body and each answer has a name. */
export const componentsOf = (routes: AdminRoute[]) => {
  const all = (kind: 'body' | 'query' | 'answer') =>
    Object.fromEntries(routes.flatMap(route => (route[kind] ? [[route.id, route[kind]]] : [])))
  const converted = {
    body: convert(all('body'), 'input'),
    query: convert(all('query'), 'input'),
    answer: convert({ ...all('answer'), error: ErrorAnswer }, 'output'),
  }
  const schemas: Record<string, Json> = {}
  for (const { $defs = {} } of Object.values(converted))
    for (const [name, schema] of Object.entries($defs)) {
      // A body and an answer of the same name share one component, so that a generated client has one type.
      if (!Bun.deepEquals(schemas[name] ?? schema, schema))
        throw new Error(`The schema ${name} differs between bodies and answers.`)
      schemas[name] = schema
    }

  /** Returns the example of a schema. A schema without an example gets one from the examples of its parts. */
  const exampleOf = (schema: Json): unknown => {
    if (schema.example !== undefined) return schema.example
    if (schema.$ref) return exampleOf(schemas[nameIn(schema.$ref)] ?? {})
    if (Array.isArray(schema.oneOf)) return exampleOf(schema.oneOf[0])
    if (schema.type === 'array') return [exampleOf(schema.items as Json)]
    const properties = Object.entries((schema.properties ?? {}) as Record<string, Json>)
    return Object.fromEntries(properties.map(([name, property]) => [name, exampleOf(property)]))
  }
  const examples: Record<string, Json> = {}
  const streams = new Set(routes.flatMap(({ id, stream }) => (stream ? [id] : [])))
  const contentOf = (id: string, schema: Json): Json => {
    const name = nameIn(schema.$ref)
    const variants = (schemas[name]?.oneOf as Json[] | undefined)?.map(({ $ref }) => nameIn($ref))
    const names = variants ?? [name]
    for (const each of names) examples[each] = { value: exampleOf(schemas[each] ?? {}) }
    return {
      [streams.has(id) ? 'text/event-stream' : 'application/json']: {
        schema,
        examples: Object.fromEntries(names.map(each => [each, { $ref: `#/components/examples/${each}` }])),
      },
    }
  }
  const contents = (kind: 'body' | 'answer') =>
    new Map(Object.entries(converted[kind].properties).map(([id, schema]) => [id, contentOf(id, schema)]))
  const [bodies, answers] = [contents('body'), contents('answer')]
  for (const schema of Object.values(schemas)) delete schema.example
  return { schemas, examples, bodies, answers, queries: converted.query.properties }
}
