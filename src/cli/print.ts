import { writeSync } from 'node:fs'

/**
 * Prints a line. Bun's `console.log` ignores a write that fails, so a secret that is shown once could be lost
 * on a full disk and the command would still exit with 0. Servers use `console.log`, because a server must
 * not stop when its output cannot be written.
 *
 * @throws Error when the line cannot be written. A closed pipe, as after `head`, is not an error.
 */
export const print = (text: string): void => {
  write(`${text}\n`)
}

/**
 * Writes a text as {@link print} does, without adding a line break. Returns false when the reader has closed
 * the pipe.
 */
export const write = (text: string): boolean => {
  const bytes = Buffer.from(text)
  for (let at = 0; at < bytes.length; )
    try {
      at += writeSync(1, bytes, at)
    } catch (error) {
      const { code } = error as NodeJS.ErrnoException
      if (code === 'EPIPE') return false
      // Standard output may be a non-blocking pipe.
      if (code !== 'EAGAIN') throw new Error(`standard output cannot be written (${code}).`)
      Bun.sleepSync(5)
    }
  return true
}
