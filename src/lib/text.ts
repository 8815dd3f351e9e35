/** The form in which user names and e-mail addresses are compared, looked up and sorted: NFKC, without case. */
export const fold = (text: string): string => text.normalize('NFKC').toLowerCase()

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
