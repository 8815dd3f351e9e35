// Prints the limits of form fields as JSON, for the build of the console.
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
  format?: string
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
}
interface Operation {
  operationId: string
  requestBody?: { content: { 'application/json': { schema: Schema } } }
}

/** Names from the body to a field. 0 stands for the items of a list, `en` for any key of a record. */
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
 * Returns the text and number fields of a schema. `isNeeded` is true when the API refuses a body in which the
 * field is missing or empty. With `isWhole` this includes fields that a PUT may omit, because a form shows
 * each field of its object.
 */
const leaves = (given: Schema, path: Path, isNeeded: boolean, isWhole: boolean): Found[] => {
  const schema = resolved(given)
  const variants = schema.oneOf ?? schema.anyOf
  if (variants) {
    const some = variants.filter(each => resolved(each).type !== 'null')
    return some.flatMap(each => leaves(each, path, isNeeded && some.length === variants.length, isWhole))
  }
  if (schema.type === 'array') return leaves(schema.items ?? {}, [...path, 0], true, false)
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

/** Returns the API's message for a text that exceeds the limits. */
const refusalOf = (body: z.ZodType, path: Path, { maxLength }: Schema): string | undefined => {
  const text = maxLength === undefined ? '\0' : 'x'.repeat(maxLength + 1)
  const variants = body instanceof z.ZodDiscriminatedUnion ? (body.options as z.ZodType[]) : [body]
  const issues = variants.flatMap(each => each.safeParse(bodyWith(path, text)).error?.issues ?? [])
  return issues.find(issue => issue.path.join('.') === path.join('.'))?.message
}

const limitOf = (body: z.ZodType, [path, schema, isNeeded]: Found): Limit => {
  const { minLength = 0, maxLength, pattern, minimum: min, maximum: max, format } = schema
  const isText = maxLength !== undefined || pattern !== undefined
  const isNumber = min !== undefined || max !== undefined
  const refusesEmpty = minLength > 0 || pattern !== undefined || format === 'email' || isNumber
  return {
    ...(maxLength !== undefined && { maxLength }),
    ...(pattern !== undefined && { pattern }),
    ...(isText && { message: refusalOf(body, path, schema) }),
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
    // A list of texts is one field in the console, so the limits of its items are left out.
    const found = leaves(schema, [], true, method === 'put').filter(([path]) => path.at(-1) !== 0)
    const fields = found.map(each => [nameOf(each[0]), limitOf(body, each)] as const)
    const limited = fields.filter(([, limit]) => Object.keys(limit).length > 0)
    return [[`${method.toUpperCase()} ${name}`, Object.fromEntries(limited)] as const]
  }),
)
console.log(JSON.stringify(Object.fromEntries(limits)))
