/**
 * Maximum length, in 16-bit code units, of a text that is normalized. The longest text that is normalized
 * before it is stored or hashed is a password. Its normalized form has at most 1,024 bytes, and every two
 * bytes of that form come from at most three code units.
 */
const MAX_NORMALIZED_LENGTH = 1_536

/**
 * Applies Unicode normalization (https://www.unicode.org/reports/tr15/). Text above the maximum is returned
 * unchanged, because sorting combining marks takes quadratic time (seconds for 30,000 marks). No normalized
 * value that is stored or hashed is that long.
 */
export const normalize = (text: string, form: 'NFC' | 'NFKC'): string =>
  text.length > MAX_NORMALIZED_LENGTH ? text : text.normalize(form)

/**
 * Returns a user name or e-mail address in the form in which it is compared, looked up and sorted: NFKC in
 * lower case.
 */
export const fold = (text: string): string => normalize(text, 'NFKC').toLowerCase()

/**
 * Returns a typed code with ASCII digits, and without spaces, hyphens and invisible characters. Keyboards for
 * Arabic and Persian enter digits of their own. Japanese input methods enter full-width characters, and a
 * long vowel mark for a hyphen. Word processors replace hyphens by dashes.
 */
export const typedCode = (typed: string): string =>
  normalize(typed, 'NFKC')
    .replace(/[\s\p{Pd}\p{Cf}\u2212\u30fc]/gu, '')
    .replace(/[\u0660-\u0669\u06f0-\u06f9]/g, digit => String(digit.charCodeAt(0) & 0xf))

/**
 * True for text that can be stored and shown: no lone surrogate, and no control character of ASCII except tab
 * and line feed.
 */
export const isPlain = (text: string): boolean => text.isWellFormed() && !hasControl(text)

/**
 * Characters that `isPlain` accepts but a line must not contain: line breaks, tabs, control characters of ISO
 * 8859, byte order marks, and bidirectional embeddings, overrides and isolates. Terminals interpret U+009B
 * and the characters after it as a command, and the command line prints names that strangers choose.
 */
const unfit = /[\t\n\u0080-\u009f\u2028\u2029\ufeff\u202a-\u202e\u2066-\u2069]/

/** True for one line of text without characters that change its display. */
export const isLine = (text: string): boolean => isPlain(text) && !unfit.test(text)

const hasControl = (text: string): boolean => {
  for (let i = 0; i < text.length; i++) {
    const code = text.charCodeAt(i)
    if ((code < 0x20 && code !== 0x09 && code !== 0x0a) || code === 0x7f) return true
  }
  return false
}

/**
 * Compares the names of two objects in the order of 16-bit code units. Names in requests get the same order
 * from `sort`, but a database sorts some characters in another order.
 */
export const byName = (a: { name: string }, b: { name: string }): number => (a.name < b.name ? -1 : 1)

/** Formats milliseconds since the epoch as an ISO 8601 time in UTC. */
export const iso = (ms: number): string => new Date(ms).toISOString()

/** Formats a time that may be missing. */
export const isoOrNull = (ms: number | null): string | null => (ms === null ? null : iso(ms))
