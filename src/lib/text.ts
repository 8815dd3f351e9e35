/** Code units of 16 bits: what composes to the 1,024 bytes of the longest password has at most three for two bytes. */
const LONGEST_NORMALIZED = 1_536

/**
 * Unicode normalization (https://www.unicode.org/reports/tr15/). It sorts combining marks in a row in quadratic time: 30,000
 * of them take seconds. A longer text than anything that is stored normalized stays as it is.
 */
export const normalize = (text: string, form: 'NFC' | 'NFKC'): string =>
  text.length > LONGEST_NORMALIZED ? text : text.normalize(form)

/** The form in which user names and e-mail addresses are compared, looked up and sorted: NFKC, without case. */
export const fold = (text: string): string => normalize(text, 'NFKC').toLowerCase()

/** Whether a text can be stored and shown as it is: no lone surrogate, no NUL, no C0 control but tab and line feed. */
export const isPlain = (text: string): boolean => text.isWellFormed() && !hasControl(text)

const hasControl = (text: string): boolean => {
  for (let i = 0; i < text.length; i++) {
    const code = text.charCodeAt(i)
    if ((code < 0x20 && code !== 0x09 && code !== 0x0a) || code === 0x7f) return true
  }
  return false
}

export const iso = (ms: number): string => new Date(ms).toISOString()
