import type { Logger } from '#src/lib/log.ts'
import type { Call } from './call.ts'

/**
 * Writes the log line of a request. The line contains no query, header or body. Only the path can contain
 * characters that JSON escapes.
 */
export const logRequest = (
  log: Logger,
  { request_id, path }: Call,
  { method, status, ms }: { method: string; status: number; ms: number },
): void =>
  log.infoJson(
    `,"event":"request","request_id":"${request_id}","method":"${method}","path":${JSON.stringify(path)},` +
      `"status":${status},"ms":${ms}`,
  )
