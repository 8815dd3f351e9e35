import { z } from 'zod'
import type { Caller, Context, Core } from '#src/context.ts'
import { AppError, type Detail, throwProblems } from '#src/lib/app-error.ts'
import type { ClientInfo } from '#src/lib/client-info.ts'
import type { Permission } from '#src/lib/permission.ts'
import { FRESH } from '#src/protocol/oauth/next-step.ts'
import type { Queries, Transaction } from '#src/storage/store.ts'
import { empty, errorAnswer, json, refusalFor } from './answer.ts'
import { readJson } from './body.ts'
import { callOf } from './call.ts'
import { parseQuery } from './query.ts'
import type { Matched } from './routes.ts'

type Params<Path extends string> = Path extends `${string}:${infer Name}/${infer Rest}`
  ? { [K in Name | keyof Params<`/${Rest}`>]: string }
  : Path extends `${string}:${infer Name}`
    ? { [K in Name]: string }
    : Record<never, string>

/**
 * A route of the admin API: permission, schemas and handler. The guard, the OpenAPI document and the
 * permission tests all read this object, so each of them covers every route.
 */
export interface AdminRoute {
  /** Operation id in the OpenAPI document. Generated clients use it as the name of the function. */
  id: string
  method: 'GET' | 'POST' | 'PUT' | 'DELETE'
  path: string
  permission: Permission
  /** A further permission that the caller needs. */
  also?: Permission
  summary: string
  /**
   * Requires `is_fresh` of the caller (`isFreshCaller`). It is set on routes whose effect is hard to undo,
   * such as most deletions, and on routes that create a secret or change a webhook. A thief who finds an open
   * console thus cannot use these routes.
   */
  fresh?: boolean
  /** The answer is a stream of server-sent events with data of `answer`. `handle` returns a `Response`. */
  stream?: boolean
  /**
   * Only callers of the default organization may use the route, because it concerns the whole instance. Other
   * callers get 403.
   */
  instance_only?: boolean
  query?: z.ZodType
  body?: z.ZodType
  status: 200 | 201 | 202 | 204
  answer?: z.ZodType
  /** Error statuses beyond those that `statusesOf` adds (admin/openapi.ts). */
  errors?: (404 | 409 | 429)[]
  /** Meaning of the 409 in the OpenAPI document, when it is not a conflict with stored data. */
  conflict?: string
  /**
   * Checks a refused body against stored data, so that one answer names every wrong field. `good` has the
   * accepted fields, with defaults, and the accepted part of a partly wrong object. `bad` has the names of
   * the fields in which something is wrong.
   */
  review?(
    q: Queries,
    input: ReviewInput,
    good: Record<string, unknown>,
    bad: ReadonlySet<string>,
  ): Promise<Reviewed>
  /** Reads the object that GET returns. `taggedObject` says which routes compare `If-Match` with its tag. */
  read?(q: Queries, input: RouteInput): Promise<unknown>
  /** Absent when the route has `read`. */
  handle?(input: RouteInput): Promise<unknown>
}

/** The validated input of a route's handler. */
export interface RouteInput<P = Record<string, string>, Q = unknown, B = unknown> {
  caller: Caller
  params: P
  query: Q
  body: B
  client_info: ClientInfo
}

/** An object of the admin API, at a path that GET reads and PUT changes. */
export interface TaggedObject {
  /**
   * Returns the strong entity tag of the fields that the PUT may change:
   * https://www.rfc-editor.org/rfc/rfc9110#section-8.8.3
   */
  tag(answer: unknown): string
  /** Removes the read-only values that the server changes by itself (`maintained` in directory/fields.ts). */
  dropMaintained(body: unknown): void
  /**
   * Compares `If-Match` with the stored object: https://www.rfc-editor.org/rfc/rfc9110#section-13.1.1
   *
   * @throws AppError 404 for an unknown object; 412 if the tag differs, with the object if it may be read
   */
  requireMatch(q: Queries, input: RouteInput, if_match: string): Promise<void>
}

interface Reviewed {
  problems: Detail[]
}
type ReviewInput<P = Record<string, string>> = Pick<RouteInput<P>, 'caller' | 'params' | 'client_info'>

/** Defines a route whose `handle` and `review` are typed by its path and schemas. */
export const route = <
  const Path extends string,
  Q extends z.ZodType = z.ZodUndefined,
  B extends z.ZodType = z.ZodUndefined,
>(
  definition: Omit<AdminRoute, 'path' | 'query' | 'body' | 'review' | 'read' | 'handle'> & {
    path: Path
    query?: Q
    body?: B
    review?(
      q: Queries,
      input: ReviewInput<Params<Path>>,
      good: Partial<z.output<B>>,
      bad: ReadonlySet<string>,
    ): Promise<Reviewed>
  } & (
      | { read(q: Queries, input: RouteInput<Params<Path>>): Promise<unknown>; handle?: never }
      | {
          read?: never
          handle(input: RouteInput<Params<Path>, z.output<Q>, z.output<B>>): Promise<unknown>
        }
    ),
): AdminRoute => definition as unknown as AdminRoute

/**
 * Runs a route after these checks: site of the page (403), token (401), `permit` (403, 401), body (408, 413,
 * 415, 400), fields (422). The body of a caller without permission is thus never read.
 */
export const serveRoute =
  (context: Context, route: AdminRoute, object?: TaggedObject) =>
  async ({ request, params }: Matched): Promise<Response> => {
    const call = callOf(request)
    try {
      // If an administrator opens a page of another site, the page could send a leaked token from the
      // administrator's network. A page of a sibling subdomain (`same-site`) passes this check. The browser
      // refuses the call of such a page anyway, because admin answers have no CORS headers.
      if (request.headers.get('sec-fetch-site') === 'cross-site')
        throw new AppError('forbidden', 'Pages of other sites cannot call the admin API.')
      const caller = await context.authenticate(request)
      permit(caller, route)
      const { confirm } = caller
      const if_match = request.headers.get('if-match')
      caller.confirm = async q => {
        await confirm(q)
        permit(caller, route)
        if (if_match !== null) await object?.requireMatch(q, input as RouteInput, if_match)
      }
      const body = route.body ? await readJson(request) : undefined
      if (if_match !== null) object?.dropMaintained(body)
      const problems: Detail[] = []
      const input = {
        caller,
        params,
        query: parse(route.query ?? nothing, parseQuery(request), problems),
        body: route.body && parse(route.body, body, problems),
        client_info: call,
      }
      if (problems.length > 0) problems.push(...(await review(context, route, input, body, problems)))
      throwProblems(problems)
      const { read } = route
      const answer = read ? await context.store.read(q => read(q, input)) : await route.handle?.(input)
      if (route.status === 204) return empty(204)
      if (answer instanceof Response) return answer
      return json(answer, route.status, object && { etag: object.tag(answer) })
    } catch (error) {
      return errorAnswer(call, refusalFor(context, call, error, 'admin route failed'))
    }
  }

/**
 * Writes on behalf of a caller. The write checks the caller's permissions again, because they may have
 * changed while the request waited for its body, for another server or in the queue of writes. Without a
 * caller, the server writes on its own behalf.
 *
 * @throws AppError 401 or 403 when the token or permission is no longer valid, 404 or 412 for `If-Match`
 */
export const writeAs = <T>(
  { store }: Core,
  caller: Caller | undefined,
  body: (tx: Transaction) => Promise<T>,
): Promise<T> =>
  store.write(async tx => {
    await caller?.confirm(tx)
    return body(tx)
  })

/**
 * Returns further problems of a body that the schema refused. The route's `review` finds them by checking the
 * accepted fields against stored data.
 */
const review = async (
  { store }: Core,
  { body: schema, review: judge }: AdminRoute,
  input: ReviewInput,
  body: unknown,
  problems: Detail[],
): Promise<Detail[]> => {
  const bad = new Set(problems.map(({ field }) => field.split('.', 1)[0] ?? ''))
  const good = goodFields(schema, body)
  // Without a valid organization, the settings that the body must satisfy are unknown.
  if (!judge || !good || bad.has('organization_id')) return []
  const more = await store.read(q => judge(q, input, good, bad)).catch(reviewedBy)
  return more.problems.filter(({ field }) => !problems.some(known => isWithin(known.field, field)))
}

/** True when both fields are the same, or when one field contains the other. */
const isWithin = (one: string, other: string): boolean =>
  `${one}.`.startsWith(`${other}.`) || `${other}.`.startsWith(`${one}.`)

/** Returns the fields of `value` that the schema accepts; undefined when the schema has no fields. */
const goodFields = (schema: unknown, value: unknown): Record<string, unknown> | undefined => {
  const shape = shapeFor(schema, value)
  return (
    shape &&
    Object.fromEntries(
      Object.entries(shape).flatMap(([name, field]) => {
        const given: unknown = Reflect.get(Object(value), name)
        const { success, data } = field.safeParse(given)
        const good = success ? data : goodFields(field, given)
        return good === undefined ? [] : [[name, good]]
      }),
    )
  )
}

/** Returns the fields of an object schema. For a union, uses the option that fits the value. */
const shapeFor = (schema: unknown, value: unknown): Record<string, z.ZodType> | undefined => {
  if (schema instanceof z.ZodObject) return schema.shape
  if (schema instanceof z.ZodOptional || schema instanceof z.ZodNullable || schema instanceof z.ZodDefault)
    return shapeFor(schema.unwrap(), value)
  if (!(schema instanceof z.ZodDiscriminatedUnion)) return undefined
  const { discriminator, options } = schema.def
  const type: unknown = Reflect.get(Object(value), discriminator)
  return options
    .map(option => shapeFor(option, value))
    .find(shape => shape?.[discriminator]?.safeParse(type).success)
}

/** Returns the details of an error that a review threw. The 422 that refuses the body contains them too. */
const reviewedBy = (error: unknown): Reviewed => {
  if (error instanceof AppError) return { problems: error.details ?? [] }
  throw error
}

/**
 * Checks permission, organization and the time of the authentication:
 * https://www.rfc-editor.org/rfc/rfc9470#section-3
 */
const permit = (caller: Caller, route: AdminRoute): void => {
  for (const permission of [route.permission, ...(route.also ? [route.also] : [])]) {
    if (caller.permissions.has(permission)) continue
    throw caller.withheld.has(permission)
      ? new AppError('insufficient_scope', `The access token lacks the scope ${permission}.`, {
          headers: { 'www-authenticate': `Bearer error="insufficient_scope", scope="${permission}"` },
        })
      : new AppError('forbidden', `The permission ${permission} is required.`)
  }
  if (route.instance_only && !caller.instance)
    throw new AppError('forbidden', 'Only administrators of the default organization may do this.')
  if (route.fresh && !caller.is_fresh)
    throw new AppError('insufficient_user_authentication', 'A more recent authentication is required.', {
      headers: {
        'www-authenticate': `Bearer error="insufficient_user_authentication", error_description="A more recent authentication is required", max_age="${FRESH}"`,
      },
    })
}

const nothing = z.strictObject({})

const parse = (schema: z.ZodType, value: unknown, problems: Detail[]): unknown => {
  const result = schema.safeParse(value)
  if (result.success) return result.data
  for (const issue of result.error.issues) problems.push(...details(issue))
  return undefined
}

/**
 * Converts an issue of zod to details without values. An unknown field is named only when its name is
 * printable. The keys of an object with free keys, such as the names of claims, are named as they were sent.
 */
const details = (issue: z.core.$ZodIssue): Detail[] => {
  if (issue.code === 'unrecognized_keys')
    return issue.keys.slice(0, 20).map(key => ({
      field: [...issue.path, /^[\w.:-]{1,64}$/.test(key) ? key : '(unprintable)'].join('.'),
      code: 'unknown_field',
      message: 'This field is unknown.',
    }))
  return [{ field: issue.path.join('.'), code: issue.code, message: issue.message }]
}
