import { z } from 'zod'
import { isLine, iso, isPlain } from '#src/lib/text.ts'

/** A single line of text in any script, without leading or trailing spaces. The text is stored unchanged. */
export const line = (max: number, min = 0) => {
  const allowed = `A line of ${min === 0 ? 'at most' : `${min} to`} ${max} characters.`
  return z
    .string(allowed)
    .min(min, allowed)
    .max(max, allowed)
    .refine(
      text => isLine(text) && text.trim() === text,
      'No line breaks, control characters, or leading or trailing spaces.',
    )
}

/** Text that may have line breaks. */
export const lines = (max: number) =>
  z
    .string(`A text of at most ${max} characters.`)
    .max(max, `A text of at most ${max} characters.`)
    .refine(
      text => isPlain(text) && !text.includes('\ufeff'),
      'No byte order marks, and no control characters except tabs and line feeds.',
    )

export const flag = z.boolean('true or false.')
/** A boolean in a query. The OpenAPI document would otherwise allow any string. */
export const switched = z
  .stringbool({ truthy: ['true'], falsy: ['false'], case: 'sensitive', error: 'true or false.' })
  .meta({ type: 'boolean' })

/** A whole number from `min` to `max`. */
export const integer = (min: number, max: number) => {
  const allowed = `A whole number from ${min} to ${max}.`
  return z.int(allowed).min(min, allowed).max(max, allowed)
}

/** One of the given names. */
export const oneOf = <const T extends readonly string[]>(names: T) =>
  z.enum(names, `One of: ${names.join(', ')}.`)

/** A list whose duplicates are removed. */
export const set = <T extends z.ZodType<string>>(item: T, max: number) => {
  const allowed = `A list of at most ${max} texts.`
  return z
    .array(item, allowed)
    .max(max, allowed)
    .overwrite(items => [...new Set(items)])
}

export const time = z.string().meta({ format: 'date-time' })

export const count = z.int().nonnegative()

/** Organization of a new resource. The service, not the schema, checks that the organization exists. */
export const owner = line(64)
  .optional()
  .describe("Id of the organization; default: the caller's organization.")

export const times = {
  created_at: time.describe('Time of the creation (ISO 8601, UTC).'),
  updated_at: time.describe('Time of the last change (ISO 8601, UTC).'),
}
export const stored = {
  id: z.string().describe('A prefix that names the type, and a UUID version 7 (RFC 9562).'),
  organization_id: z.string().describe('Organization that the object belongs to.'),
  ...times,
}

/**
 * A read-only field in a PUT. The schema accepts every value of the field's type. The service refuses a value
 * that differs from the stored value.
 */
export const readOnly = <T extends z.ZodType>(schema: T) =>
  schema.optional().meta({
    readOnly: true,
    description: 'May be sent back unchanged; any other value is refused.',
  })

/**
 * A read-only field in a PUT whose value the server changes by itself, such as a count or `updated_at`. If
 * the caller proves with `If-Match` that it read the object, the guard removes the field from the body.
 */
export const maintained = <T extends z.ZodType>(schema: T) =>
  readOnly(schema).meta({
    'x-maintained': true,
    description: 'May be sent back. With `If-Match` it is ignored; else a value that differs is refused.',
  })

/**
 * A time in a PUT, in the form of the answers. Libraries write the same time with another offset or number of
 * digits, such as `2026-01-31T09:00:00+01:00`.
 */
export const sameTime = z
  .string()
  .transform(text => (Number.isNaN(Date.parse(text)) ? text : iso(Date.parse(text))))
  .meta({ format: 'date-time' })

export const readOnlyTimes = { created_at: readOnly(sameTime), updated_at: maintained(sameTime) }
export const readOnlyStored = {
  id: readOnly(z.string()),
  organization_id: readOnly(z.string()),
  ...readOnlyTimes,
}

/**
 * True for an absolute http or https URL without fragment, credentials, white space or control characters.
 */
export const isWebUrl = (text: string): boolean => {
  const url = URL.parse(text)
  return url !== null && /^https?:\/\/[^#\s\p{C}]+$/u.test(text) && !url.username && !url.password
}
