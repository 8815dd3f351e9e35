import { fstatSync } from 'node:fs'
import { SonicBoom } from 'sonic-boom'
import { type Logger, type LogLevel, openLogger } from '#src/lib/log.ts'

/**
 * Milliseconds for which lines are collected before they are written, so that a slow disk or pipe does not
 * delay requests.
 */
const FLUSH_MS = 100
/** Characters per write. A write for each line would cost more than the work for most requests. */
const CHUNK = 32_768
/**
 * Maximum bytes of an atomic write to a pipe. Longer writes may mix with the writes of other processes:
 * pipe(7).
 */
const PIPE_BUF = 4_096
/** Maximum milliseconds that an exiting process waits for the reader of the log to read all lines. */
const CLOSE_MS = 200

interface Log {
  log: Logger
  flush(): void
  /**
   * Resolves when all lines are written, or after `CLOSE_MS`. The process must not end earlier, because a
   * pending write would be lost.
   */
  close(): Promise<void>
}

/**
 * True when the output is a terminal. A file or a pipe is recognized without `process.stdout`, whose code
 * takes 0.8 ms of CPU time to load.
 */
export const isTerminal = (): boolean => fstatSync(1).isCharacterDevice() && process.stdout.isTTY

/**
 * Opens the log: one JSON line per event, formatted on a terminal. The log contains only named fields. It
 * never contains headers, bodies or queries, because these contain codes, tokens, secrets and passwords.
 *
 * @param isShared true when other processes write to the same output
 */
export const openLog = async (level: LogLevel, isShared = false): Promise<Log> => {
  if (isTerminal()) {
    const { default: pretty } = await import('pino-pretty')
    const stream = pretty({
      sync: true,
      ignore: 'pid,hostname',
      translateTime: 'SYS:HH:MM:ss',
      singleLine: true,
    })
    return { log: openLogger(level, line => void stream.write(line)), flush: () => {}, close: async () => {} }
  }
  const destination = openOutput(isShared ? PIPE_BUF : undefined)
  let lines = ''
  const send = () => {
    if (lines) destination.write(lines)
    lines = ''
  }
  const log = openLogger(level, line => {
    if (isShared && lines.length + line.length > PIPE_BUF) send()
    lines += line
    if (lines.length >= CHUNK) send()
  })
  const flush = () => {
    send()
    try {
      destination.flushSync()
    } catch {
      // The reader of the log has closed the pipe. The server continues without a log.
    }
  }
  setInterval(send, FLUSH_MS).unref()
  const close = async () => {
    send()
    const closed = new Promise(resolve => destination.once('close', resolve))
    destination.end()
    await Promise.race([closed, Bun.sleep(CLOSE_MS)])
  }
  return { log, flush, close }
}

/** Opens the standard output for writes that do not block. */
const openOutput = (maxWrite: number | undefined): SonicBoom => {
  const output = new SonicBoom({ fd: 1, sync: false, ...(maxWrite && { maxWrite }) })
  const ignore = () => {}
  output.on('error', (error: NodeJS.ErrnoException) => {
    if (error.code !== 'EPIPE') throw error
    // The reader of the log has closed the pipe. The server continues without a log.
    Object.assign(output, { write: ignore, end: ignore, flushSync: ignore, destroy: ignore })
  })
  const writeRest = () => output.flushSync()
  process.on('exit', writeRest)
  output.once('close', () => process.off('exit', writeRest))
  return output
}
