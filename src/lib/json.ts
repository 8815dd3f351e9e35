/**
 * Maximum nesting of arrays and objects in JSON from callers and other servers. The deepest valid part, the
 * attributes of a user, has at most 16 levels.
 */
const DEPTH = 64
const [QUOTE, BACKSLASH, ARRAY, ARRAY_END, OBJECT, OBJECT_END] = [...'"\\[]{}'].map(character =>
  character.charCodeAt(0),
)

/**
 * True when a JSON text has more than 64 levels. Such a text must not be parsed, because parsing 1 MiB of `[`
 * would block the event loop for 100 ms.
 */
export const isNestedDeeply = (text: string): boolean => {
  let depth = 0
  let isString = false
  for (let i = 0; i < text.length; i++) {
    const code = text.charCodeAt(i)
    if (code === QUOTE) isString = !isString
    else if (isString) {
      if (code === BACKSLASH) i++
    } else if (code === ARRAY || code === OBJECT) {
      if (++depth > DEPTH) return true
    } else if (code === ARRAY_END || code === OBJECT_END) depth--
  }
  return false
}

/** True for an object that is not an array. */
export const isRecord = (value: unknown): value is Record<string, unknown> =>
  typeof value === 'object' && value !== null && !Array.isArray(value)
