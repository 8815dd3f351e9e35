import { z } from 'zod'
import type { Detail } from '#src/lib/app-error.ts'
import { isPlain } from '#src/lib/text.ts'

type Attributes = Record<string, unknown>

/**
 * Maximum bytes of attributes as JSON. Each read of a user includes the attributes, so a page of 100 users
 * has at most 6.25 MiB of attributes.
 */
const ATTRIBUTES_BYTES = 64 * 1024
/**
 * Maximum levels of nesting in attributes. A request body may have 64 levels. The limit here is lower, so a
 * client can send back each user that it has read.
 */
const ATTRIBUTES_DEPTH = 16
/**
 * Maximum number of values in attributes. A value and its comma take at least two bytes, so attributes with
 * more values exceed `ATTRIBUTES_BYTES`.
 */
const ATTRIBUTES_VALUES = ATTRIBUTES_BYTES / 2
const ATTRIBUTES_TOO_LARGE = 'At most 64 KiB as JSON.'

/**
 * Returns why a JSON value is refused as attributes. The function does not recurse, because an attacker
 * chooses the depth.
 */
export const freeAttributesProblem = (root: unknown): string | undefined => {
  if (typeof root !== 'object' || root === null || Array.isArray(root)) return 'A JSON object.'
  let level: object[] = [root]
  let values = 0
  for (let depth = 1; level.length > 0; depth++) {
    if (depth > ATTRIBUTES_DEPTH) return `At most ${ATTRIBUTES_DEPTH} levels of nesting.`
    const next: object[] = []
    // The keys of an array come from an iterator, because a list of all keys would cost more than the check.
    for (const node of level)
      for (const key of Array.isArray(node) ? node.keys() : Object.keys(node)) {
        const value: unknown = node[key as keyof typeof node]
        if (++values > ATTRIBUTES_VALUES) return ATTRIBUTES_TOO_LARGE
        if (key === '__proto__') return 'The name __proto__ is not allowed.'
        if ((typeof key === 'string' && !isPlain(key)) || (typeof value === 'string' && !isPlain(value)))
          return 'Control characters are not allowed, except tabs and line feeds.'
        if (typeof value === 'object' && value !== null) next.push(value)
      }
    level = next
  }
  return Buffer.byteLength(JSON.stringify(root)) > ATTRIBUTES_BYTES ? ATTRIBUTES_TOO_LARGE : undefined
}

/**
 * True when the value has no new number beyond 9007199254740991 in either direction, because such a number
 * may lose digits. For example, `JSON.parse` reads `12345678901234567890` as 12345678901234567000, and
 * `1e999` as Infinity. A number that is stored at the same place is accepted, so that a caller can send back
 * a value that it has read.
 */
const keepsDigits = (value: unknown, stored: unknown): boolean => {
  if (typeof value === 'number') return Math.abs(value) <= Number.MAX_SAFE_INTEGER || value === stored
  if (typeof value !== 'object' || value === null) return true
  return Object.entries(value).every(([key, part]) =>
    keepsDigits(part, (stored as Attributes | null | undefined)?.[key]),
  )
}

/** Returns a problem when the new attributes have a number that `keepsDigits` does not accept. */
export const numberProblems = (given: Attributes = {}, stored: Attributes = {}): Detail[] =>
  keepsDigits(given, stored)
    ? []
    : [
        {
          field: 'attributes',
          code: 'number_too_large',
          message: 'A number beyond 9007199254740991 may lose digits. Send it as a text.',
        },
      ]

/**
 * Key-value pairs of any shape. `z.record` is unsuitable: it copies each key, and drops `__proto__` without
 * an error.
 */
export const FreeAttributes = z
  .custom<Attributes>()
  .superRefine((value, issues) => {
    const message = freeAttributesProblem(value)
    if (message) issues.addIssue({ code: 'custom', message })
  })
  .meta({
    type: 'object',
    additionalProperties: true,
    description:
      'A JSON object of at most 64 KiB and 16 levels. A PUT replaces the whole object. A new number beyond 9007199254740991 is refused, because it may lose digits.',
  })
