import { hash } from 'node:crypto'
import { z } from 'zod'
import { AppError } from '#src/lib/app-error.ts'
import type { AdminRoute, TaggedObject } from './guard.ts'

const fieldsOf = (body: z.ZodType, fits: (meta: z.GlobalMeta) => boolean): string[] =>
  body instanceof z.ZodObject
    ? Object.entries<z.ZodType>(body.shape).flatMap(([name, field]) =>
        fits(field.meta() ?? {}) ? [name] : [],
      )
    : []

/**
 * A tag of this server, also as a proxy changes it when it compresses the answer: nginx and HAProxy put `W/`
 * before it, Apache and Caddy put the coding after the hash (`-gzip`). They do not undo this in `If-Match`.
 * RFC 9110 section 13.1.1 refuses weak tags, because different objects may share one. Objects whose fields
 * differ never share a hash.
 */
const TAG = /^(?:W\/)?("[\w-]{43})(?:-[a-z]+)?"$/

/**
 * Returns the functions that compute the tag of the object at the path of a route, and compare the tag with
 * `If-Match`. Returns undefined for a POST, and for a path at which no GET reads an object or no PUT changes
 * it. A caller that sends the tag from an earlier read cannot overwrite the change that another caller made
 * after this read. The tag covers only the fields that a PUT may change. Other changes, such as the time of
 * the last login, do not change the tag. For a caller that may change or delete the object but not read it,
 * the 412 contains neither the object nor its tag.
 */
export const taggedObject = (
  routes: readonly AdminRoute[],
  { path, method }: AdminRoute,
): TaggedObject | undefined => {
  const at = (method: string) => routes.find(each => each.path === path && each.method === method)
  const [get, body] = [at('GET'), at('PUT')?.body]
  const read = get?.read
  if (!read || !body || method === 'POST') return undefined
  const fields = fieldsOf(body, ({ readOnly }) => !readOnly)
  const maintained = fieldsOf(body, meta => Boolean(meta['x-maintained']))
  const tag = (answer: unknown): string => {
    const values = fields.map(name => Reflect.get(Object(answer), name))
    return `"${hash('sha256', JSON.stringify(values), 'base64url')}"`
  }
  return {
    tag,
    dropMaintained: body => {
      for (const name of maintained) Reflect.deleteProperty(Object(body), name)
    },
    requireMatch: async (q, input, if_match) => {
      const current = await read(q, input)
      const etag = tag(current)
      if (if_match.split(',').some(each => ['*', etag].includes(each.trim().replace(TAG, '$1"')))) return
      const mayRead = input.caller.permissions.has(get.permission)
      throw new AppError(
        'precondition_failed',
        'The object has changed since it was read.',
        mayRead ? { headers: { etag }, current } : {},
      )
    },
  }
}
