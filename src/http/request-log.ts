import { type Logger, pino } from 'pino'
import type { Call } from './call.ts'

// The symbols under which a pino logger keeps its parts:
// https://github.com/pinojs/pino/blob/main/docs/api.md#pino-symbols
const names = pino.symbols

interface Parts {
  [pino.symbols.streamSym]: { write(line: string): void }
  /** Returns the time as a JSON member that begins with a comma. */
  [pino.symbols.timeSym](): string
  /** Fields common to all lines, as JSON members that begin with a comma. */
  [pino.symbols.chindingsSym]: string
}

/**
 * Writes the line of a request as `log.info({ event: 'request', … })` would: no query, header or body. It
 * does not call pino, whose serialization of the six fields costs 8 % of the CPU time of an answer for the
 * key set, 12 % for discovery and 15 % for client credentials (medians of three rounds).
 * test/http/pino-contract.test.ts verifies the symbols.
 */
export const logRequest = (
  log: Logger,
  { request_id, path }: Call,
  { method, status, ms }: { method: string; status: number; ms: number },
): void => {
  if (!log.isLevelEnabled('info')) return
  const parts = log as unknown as Parts
  parts[names.streamSym].write(
    `{"level":30${parts[names.timeSym]()}${parts[names.chindingsSym]},"event":"request",` +
      `"request_id":"${request_id}","method":"${method}","path":${JSON.stringify(path)},` +
      `"status":${status},"ms":${ms}}\n`,
  )
}
