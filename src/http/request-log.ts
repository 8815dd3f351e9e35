import type { Logger } from '#src/lib/log.ts'
import type { Call } from './call.ts'

/** Maximum number of characters of a path in the log. A stranger can send a path of 16 KiB. */
const PATH_LENGTH = 1_024

/**
 * Writes the log line of a request. The line contains no query, header or body, and only the beginning of a
 * long path. Only the path is escaped, because the other values contain no characters that JSON escapes.
 */
export const logRequest = (
  log: Logger,
  { request_id, path }: Call,
  { method, status, ms }: { method: string; status: number; ms: number },
): void =>
  log.infoJson(
    `,"event":"request","request_id":"${request_id}","method":"${method}","path":${JSON.stringify(path.slice(0, PATH_LENGTH))},` +
      `"status":${status},"ms":${ms}`,
  )
