/** Levels of arrays and objects that a JSON text from outside may have. */
const DEPTH = 64
const [QUOTE, BACKSLASH, ARRAY, ARRAY_END, OBJECT, OBJECT_END] = [...'"\\[]{}'].map(character =>
  character.charCodeAt(0),
)

/** Whether a JSON text has more than 64 levels: a parser would hold the event loop for 100 ms with a mebibyte of `[`. */
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
