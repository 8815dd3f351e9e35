import { fstatSync } from 'node:fs'
import { type Logger, type LogLevel, openLogger } from '#src/lib/log.ts'
import { openLogOutput } from './log-output.ts'

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

interface Log {
  log: Logger
  /**
   * Writes the collected lines before it returns, unless a write fails or the reader is too slow. Does not
   * wait for an earlier write that is under way.
   */
  flush(): void
  /**
   * Resolves when all lines are written, or their reader is too slow. The process must not end earlier,
   * because a pending write would be lost.
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
  const output = openLogOutput()
  let lines = ''
  const send = () => {
    output.write(lines)
    lines = ''
  }
  const log = openLogger(level, line => {
    if (isShared && lines.length + line.length > PIPE_BUF) send()
    lines += line
    if (lines.length >= CHUNK) send()
  })
  const flush = () => {
    output.flush(lines)
    lines = ''
  }
  setInterval(send, FLUSH_MS).unref()
  process.on('exit', flush)
  const close = () => {
    send()
    return output.close()
  }
  return { log, flush, close }
}
