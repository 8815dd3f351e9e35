/** Log levels with pino's numbers, which tools such as pino-pretty read. */
const levels = { trace: 10, debug: 20, info: 30, warn: 40, error: 50, silent: Number.POSITIVE_INFINITY }

export type LogLevel = keyof typeof levels

/**
 * Writes one line. The fields keep their order. `text` is written last, as the field `msg`. Without `text`,
 * `msg` is the message of `err`.
 */
type Write = (fields: Readonly<Record<string, unknown>>, text?: string) => void

/** The log of a server. Callers pass named fields. The field `err` is an error. */
export interface Logger {
  readonly info: Write
  readonly warn: Write
  readonly error: Write
  /**
   * Writes a line of the level `info`. `fields` is the JSON of the fields, with a comma before each field.
   */
  infoJson(fields: string): void
}

/**
 * Opens a log in pino's format: a line is a JSON object that begins with `level` and `time`. The log does not
 * use pino. Loading and opening pino would take a tenth of the CPU time of a start. Writing the line of a
 * request with pino would take a tenth of the CPU time of a short answer.
 *
 * @param level the lowest level that is written
 * @param write gets each line with its line break
 */
export const openLogger = (level: LogLevel, write: (line: string) => void): Logger => {
  const head = openHead()
  const at =
    (name: 'info' | 'warn' | 'error'): Write =>
    (fields, text) => {
      if (levels[name] < levels[level]) return
      const { err } = fields
      const shown = err instanceof Error ? { ...fields, err: errorFields(err) } : fields
      const msg = text ?? (err instanceof Error ? err.message : undefined)
      const json = JSON.stringify({ ...shown, msg })
      write(`${head(levels[name])}${json === '{}' ? '' : ','}${json.slice(1)}\n`)
    }
  return {
    info: at('info'),
    warn: at('warn'),
    error: at('error'),
    infoJson: fields => {
      if (levels.info >= levels[level]) write(`${head(levels.info)}${fields}}\n`)
    },
  }
}

/**
 * Returns a function that makes the beginning of a line. It formats the time at most once per millisecond.
 */
const openHead = (): ((level: number) => string) => {
  let stamped = 0
  let stamp = ''
  return level => {
    const now = Date.now()
    if (now !== stamped) stamp = new Date(now).toISOString()
    stamped = now
    return `{"level":${level},"time":"${stamp}"`
  }
}

/** Maximum number of causes that are shown, because causes may form a cycle. */
const MAX_CAUSES = 10

/**
 * Returns the type of an error, the messages and stacks of the error and its causes, and the fields of the
 * error, such as `code`. Objects in these fields are left out, because they may contain requests or cyclic
 * references. The errors of an `AggregateError` are shown as text.
 */
const errorFields = (error: Error): Record<string, unknown> => {
  const chain = [error]
  for (let { cause } = error; cause instanceof Error && chain.length <= MAX_CAUSES; { cause } = cause)
    chain.push(cause)
  const plain = Object.entries(error).filter(([, value]) => Object(value) !== value)
  return {
    type: error.constructor.name,
    message: chain.map(({ message }) => message).join(': '),
    stack: chain.map(({ stack }) => stack).join('\ncaused by: '),
    ...(error instanceof AggregateError && { errors: error.errors.map(errorText) }),
    ...Object.fromEntries(plain),
  }
}

const errorText = (error: unknown): string => String(error)

/** A log that writes nothing, for commands. */
export const silentLog: Logger = { info: () => {}, warn: () => {}, error: () => {}, infoJson: () => {} }
