import { type DestinationStream, type Logger, pino } from 'pino'

/** A slow disk or pipe must not hold up requests: lines are collected and written together, at the latest after this. */
const FLUSH_MS = 100
/** Characters that are handed on at once: line by line the stream would cost more than most requests. */
const CHUNK = 8_192
/** A log that nobody reads holds up the end of the process no longer than this. */
const LAST_WORDS_MS = 200

interface Log {
  log: Logger
  flush(): void
  /** Resolves when the last line is out: one that is being written would die with the process. */
  close(): Promise<void>
}

/**
 * One JSON line per event, pretty on a terminal. Only what a call names is logged, never headers, bodies or queries: codes,
 * tokens, secrets and passwords travel there.
 */
export const openLog = async (level: string): Promise<Log> => {
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
  const destination = pino.destination({ dest: 1, sync: false })
  let lines = ''
  const send = () => {
    if (lines) destination.write(lines)
    lines = ''
  }
  const stream: DestinationStream = {
    write: line => {
      lines += line
      if (lines.length >= CHUNK) send()
    },
  }
  const log = pino({ level, base: null, timestamp }, stream)
  const flush = () => {
    send()
    try {
      destination.flushSync()
    } catch {
      // Nobody reads the log any more; that is no reason to stop serving.
    }
  }
  setInterval(send, FLUSH_MS).unref()
  const close = async () => {
    send()
    const closed = new Promise(resolve => destination.once('close', resolve))
    destination.end()
    await Promise.race([closed, Bun.sleep(LAST_WORDS_MS)])
  }
  return { log, flush, close }
}

let stamped = 0
let stamp = ''

/** Written out once a millisecond. */
const timestamp = (): string => {
  const now = Date.now()
  if (now !== stamped) stamp = `,"time":"${new Date(now).toISOString()}"`
  stamped = now
  return stamp
}
