import { write, writeSync } from 'node:fs'

/**
 * Maximum bytes that wait for a disk that is full or a reader that is slow. Further lines are lost, so that
 * they do not fill the memory.
 */
const MOST_WAITING = 1 << 20
/** Maximum milliseconds for which `close`, and `flush` of a non-blocking output, wait for a slow reader. */
const LONGEST_WAIT = 200

/** The standard output of a server. A write that fails never stops the server: see `print.ts`. */
interface LogOutput {
  /** Adds the text to the queue, behind texts that still wait, and starts to write the queue. */
  write(text: string): void
  /**
   * Adds the text to the queue, and writes the queue before it returns. Texts stay in the queue if a write
   * fails, or if the reader is slower than `LONGEST_WAIT`. A text whose asynchronous write is under way may
   * follow later, and is lost if the process ends first.
   */
  flush(text: string): void
  /**
   * Resolves when everything is written, or after `LONGEST_WAIT`. Texts that are not written by then are
   * lost.
   */
  close(): Promise<void>
}

/**
 * Opens the standard output. Each text is a write of its own. `write` is asynchronous, because pipes, sockets
 * and disks usually block: during a synchronous write to a slow one, the server would answer no request.
 */
export const openLogOutput = (): LogOutput => {
  const waiting: Uint8Array[] = []
  let size = 0
  let isWriting = false

  /** Removes the bytes that were written, and puts the bytes that were not written back into the queue. */
  const keepRest = (text: Uint8Array, written: number): void => {
    size -= written
    if (written < text.length) waiting.unshift(text.subarray(written))
  }
  const writeNext = (): void => {
    const text = isWriting ? undefined : waiting.shift()
    if (!text) return
    isWriting = true
    write(1, text, (error, written) => {
      isWriting = false
      keepRest(text, error ? 0 : written)
      if (!error) writeNext()
    })
  }
  const add = (text: string): void => {
    const bytes = Buffer.from(text)
    if (bytes.length === 0 || size + bytes.length > MOST_WAITING) return
    waiting.push(bytes)
    size += bytes.length
  }
  return {
    write: text => {
      add(text)
      writeNext()
    },
    flush: added => {
      add(added)
      const end = performance.now() + LONGEST_WAIT
      for (let text = waiting.shift(); text; text = waiting.shift())
        try {
          keepRest(text, writeSync(1, text))
        } catch (error) {
          keepRest(text, 0)
          const isSlow = (error as NodeJS.ErrnoException).code === 'EAGAIN'
          if (!isSlow || performance.now() > end) return
          Bun.sleepSync(5)
        }
    },
    close: async () => {
      for (const end = performance.now() + LONGEST_WAIT; size > 0 && performance.now() < end; ) {
        writeNext()
        await Bun.sleep(1)
      }
      waiting.length = 0
    },
  }
}
