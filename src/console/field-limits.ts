// Prints the limits of form fields as JSON, for the build of the console. The limits are read from the
// OpenAPI document, so a form has the same limits as the API.
import { z } from 'zod'
import { openApiDocument } from '#src/admin/openapi.ts'
import { ADMIN_PREFIX, adminRoutes } from '#src/admin/routes.ts'
import { loadConfig } from '#src/config.ts'
import type { Context } from '#src/context.ts'
import { VERSION } from '#src/lib/version.ts'
import type { Limit } from './app/api-form.tsx'

interface Schema {
  $ref?: string
  type?: string
  properties?: Record<string, Schema>
  additionalProperties?: Schema | false
  items?: Schema
  anyOf?: Schema[]
  oneOf?: Schema[]
  required?: string[]
  readOnly?: boolean
  minLength?: number
  maxLength?: number
  pattern?: string
  minimum?: number
  maximum?: number
  maxItems?: number
}
interface Operation {
  operationId: string
  requestBody?: { content: { 'application/json': { schema: Schema } } }
}

/**
 * Property names on the way from the body to a field. 0 is any item of a list, and `en` is any key of a
 * record.
 */
type Path = (string | number)[]
type Found = [path: Path, schema: Schema, isNeeded: boolean]

const { config } = loadConfig({})
const routes = adminRoutes({ config } as Context)
const { paths, components } = openApiDocument(routes, config.url, VERSION) as {
  paths: Record<string, Record<string, Operation>>
  components: { schemas: Record<string, Schema> }
}

const resolved = (schema: Schema): Schema =>
  schema.$ref ? resolved(components.schemas[schema.$ref.split('/').at(-1) ?? ''] ?? {}) : schema

/**
 * Returns the fields of a schema that are neither objects nor lists of objects. `isNeeded` is true when a
 * body must contain the field with a value other than null. With `isWhole`, which is for the form of a PUT,
 * it is also true for optional fields that cannot be null. Such a form shows all fields of its object, and
 * does not leave out a field that the person clears, but sends it as an empty value.
 */
const leaves = (given: Schema, path: Path, isNeeded: boolean, isWhole: boolean): Found[] => {
  const schema = resolved(given)
  const variants = schema.oneOf ?? schema.anyOf
  if (variants) {
    const some = variants.filter(each => resolved(each).type !== 'null')
    return some.flatMap(each => leaves(each, path, isNeeded && some.length === variants.length, isWhole))
  }
  if (schema.type === 'array' && resolved(schema.items ?? {}).type !== 'string')
    return leaves(schema.items ?? {}, [...path, 0], true, false)
  if (schema.type !== 'object') return [[path, schema, isNeeded]]
  const fields = Object.entries(schema.properties ?? {}).filter(([, field]) => !resolved(field).readOnly)
  const named = fields.flatMap(([name, field]) =>
    leaves(field, [...path, name], isNeeded && (isWhole || (schema.required ?? []).includes(name)), false),
  )
  const rest = schema.additionalProperties
  return rest ? [...named, ...leaves(rest, [...path, 'en'], true, false)] : named
}

/** Returns a body that has the value at the path. */
const bodyWith = ([first, ...rest]: Path, value: unknown): unknown => {
  if (first === undefined) return value
  const inner = bodyWith(rest, value)
  return first === 0 ? [inner] : { [first]: inner }
}

/**
 * Returns a value that exceeds the maximum number of items or the maximum length. If the schema has no such
 * maximum, returns a text that no pattern matches.
 */
const excluded = ({ maxLength, maxItems }: Schema): unknown => {
  if (maxItems !== undefined) return Array.from({ length: maxItems + 1 }, (_, index) => `x${index}`)
  return maxLength === undefined ? '\0' : 'x'.repeat(maxLength + 1)
}

/** Returns the API's message for a value that the schema refuses. */
const refusalOf = (body: z.ZodType, path: Path, schema: Schema): string | undefined => {
  const variants = body instanceof z.ZodDiscriminatedUnion ? (body.options as z.ZodType[]) : [body]
  const given = bodyWith(path, excluded(schema))
  const issues = variants.flatMap(each => each.safeParse(given).error?.issues ?? [])
  return issues.find(issue => issue.path.join('.') === path.join('.'))?.message
}

const limitOf = (body: z.ZodType, [path, schema, isNeeded]: Found): Limit => {
  const { minLength = 0, maxLength, minimum: min, maximum: max, maxItems } = schema
  if (schema.type === 'array') {
    const item = limitOf(body, [[...path, 0], resolved(schema.items ?? {}), false])
    return {
      ...(maxItems !== undefined && { maxItems, message: refusalOf(body, path, schema) }),
      ...(Object.keys(item).length > 0 && { item }),
    }
  }
  const message = refusalOf(body, path, schema)
  // A form shows the same message for a wrong length and a mismatched pattern. If the API has a different
  // message for the pattern, only the API checks the pattern.
  const pattern = refusalOf(body, path, {}) === message ? schema.pattern : undefined
  const isText = maxLength !== undefined || pattern !== undefined
  const isNumber = min !== undefined || max !== undefined
  const refusesEmpty = minLength > 0 || schema.pattern !== undefined || isNumber
  return {
    ...(maxLength !== undefined && { maxLength }),
    ...(pattern !== undefined && { pattern }),
    ...(isText && { message }),
    ...(min !== undefined && { min }),
    ...(max !== undefined && { max }),
    ...(isNeeded && refusesEmpty && { required: true }),
  }
}

const nameOf = (path: Path): string => path.map(part => (part === 0 || part === 'en' ? '*' : part)).join('.')

const limits = Object.entries(paths).flatMap(([path, operations]) =>
  Object.entries(operations).flatMap(([method, { operationId, requestBody }]) => {
    const name = path.slice(ADMIN_PREFIX.length).replaceAll(/\{\w+\}/g, '*')
    const body = routes.find(({ id }) => id === operationId)?.body
    if (!body || !requestBody || !/^\/[a-z-]+(?:\/\*)?$/.test(name)) return []
    const { schema } = requestBody.content['application/json']
    const found = leaves(schema, [], true, method === 'put')
    const fields = found.map(each => [nameOf(each[0]), limitOf(body, each)] as const)
    const limited = fields.filter(([, limit]) => Object.keys(limit).length > 0)
    return [[`${method.toUpperCase()} ${name}`, Object.fromEntries(limited)] as const]
  }),
)
console.log(JSON.stringify(Object.fromEntries(limits)))
