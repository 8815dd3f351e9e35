import { writeSync } from 'node:fs'

/**
 * Prints a line. Commands do not use Bun's `console.log`, because it ignores a failed write: on a full disk,
 * a secret that is shown only once would be lost, and the command would still exit with 0. Servers use
 * `console.log`, because a server must not stop when its output cannot be written.
 *
 * @throws Error when the line cannot be written. A pipe that its reader (such as `head`) has closed is not an
 * error.
 */
export const print = (text: string): void => {
  write(`${text}\n`)
}

/**
 * Writes a text to standard output. Adds no line break. Returns false when the reader has closed the pipe.
 *
 * @throws Error when the text cannot be written for another reason
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
