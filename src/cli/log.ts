import { type DestinationStream, type Logger, pino } from 'pino'

/**
 * Milliseconds for which lines are collected before they are written, so that a slow disk or pipe does not
 * delay requests.
 */
const FLUSH_MS = 100
/** Characters per write. A write for each line costs more than most requests do. */
const CHUNK = 32_768
/**
 * Maximum bytes that a pipe accepts in one piece. Longer writes may mix with the writes of other processes:
 * pipe(7).
 */
const PIPE_BUF = 4_096
/** Maximum milliseconds that an ending process waits until the reader of the log has taken all lines. */
const CLOSE_MS = 200

interface Log {
  log: Logger
  flush(): void
  /**
   * Resolves once all lines are written, or after `CLOSE_MS`. The process must not end earlier, because a
   * pending write would be lost.
   */
  close(): Promise<void>
}

/**
 * Opens the log: one JSON line per event, formatted on a terminal. The log gets named fields only. It never
 * gets headers, bodies or queries, because they contain codes, tokens, secrets and passwords.
 *
 * @param isShared true when other processes write to the same output
 */
export const openLog = async (level: string, isShared = false): Promise<Log> => {
  if (process.stdout.isTTY) {
    const { default: pretty } = await import('pino-pretty')
    const stream: DestinationStream = pretty({
      sync: true,
      ignore: 'pid,hostname',
      translateTime: 'SYS:HH:MM:ss',
      singleLine: true,
    })
    return { log: pino({ level, base: null }, stream), flush: () => {}, close: async () => {} }
  }
  const destination = pino.destination({ dest: 1, sync: false, ...(isShared && { maxWrite: PIPE_BUF }) })
  let lines = ''
  const send = () => {
    if (lines) destination.write(lines)
    lines = ''
  }
  const stream: DestinationStream = {
    write: line => {
      if (isShared && lines.length + line.length > PIPE_BUF) send()
      lines += line
      if (lines.length >= CHUNK) send()
    },
  }
  const log = pino({ level, base: null, timestamp: openTimestamp() }, stream)
  const flush = () => {
    send()
    try {
      destination.flushSync()
    } catch {
      // The reader of the log has gone. The server continues without it.
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

/** Returns a function that formats the current time, at most once per millisecond. */
const openTimestamp = (): (() => string) => {
  let stamped = 0
  let stamp = ''
  return () => {
    const now = Date.now()
    if (now !== stamped) stamp = `,"time":"${new Date(now).toISOString()}"`
    stamped = now
    return stamp
  }
}
