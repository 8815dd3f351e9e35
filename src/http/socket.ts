import type { Logger } from '#src/lib/log.ts'
import { asAppError, errorAnswer } from './answer.ts'

/**
 * Maximum bytes of the body of a request. It exceeds the limits of all routes, so that a route answers a
 * large body with its own 413 and an error text. The 413 of the socket is empty.
 */
const SOCKET_BODY = 2 * 1024 * 1024
/**
 * Seconds without data after which a connection is closed. The time is longer than the 10 s for a body, so
 * that a slow body is answered with 408.
 */
const IDLE_SECONDS = 30

/** Options of `Bun.serve` for all modes. */
export const socketOptions = (log: Pick<Logger, 'error'>) => ({
  maxRequestBodySize: SOCKET_BODY,
  idleTimeout: IDLE_SECONDS,
  development: false as const,
  // By default Bun lets other processes of the same OS user listen on the port too.
  reusePort: false,
  /** Answers an error that no handler caught. Bun's own error page shows source lines and directories. */
  error: (cause: Error): Response => {
    const request_id = Bun.randomUUIDv7()
    log.error({ request_id, err: cause }, 'unhandled')
    return errorAnswer({ request_id }, asAppError(cause))
  },
})
