import { type DestinationStream, type Logger, pino } from 'pino'

/** A slow disk or pipe must not hold up requests: lines are collected and written together, at the latest after this. */
const FLUSH_MS = 100

/**
 * One JSON line per event, pretty on a terminal. Only what a call names is logged, never headers, bodies or queries: codes,
 * tokens, secrets and passwords travel there.
 */
export const openLog = async (level: string): Promise<{ log: Logger; flush(): void }> => {
  if (process.stdout.isTTY) {
    const { default: pretty } = await import('pino-pretty')
    const stream: DestinationStream = pretty({
      sync: true,
      ignore: 'pid,hostname',
      translateTime: 'SYS:HH:MM:ss',
      singleLine: true,
    })
    return { log: pino({ level, base: null }, stream), flush: () => {} }
  }
  const destination = pino.destination({ dest: 1, sync: false, minLength: 8192 })
  const log = pino({ level, base: null, timestamp: pino.stdTimeFunctions.isoTime }, destination)
  const flush = () => {
    try {
      destination.flushSync()
    } catch {
      // Nobody reads the log any more; that is no reason to stop serving.
    }
  }
  setInterval(() => destination.flush(), FLUSH_MS).unref()
  return { log, flush }
}
