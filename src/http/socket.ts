import type { Logger } from 'pino'
import { asAppError, errorAnswer } from './answer.ts'

/** In bytes. Above the limits of every family of routes: those answer with their own 413, the socket's answer is a bare one. */
const SOCKET_BODY = 2 * 1024 * 1024
const IDLE_SECONDS = 30

/** The options of `Bun.serve` that every mode shares. */
export const socketOptions = (log: Pick<Logger, 'error'>) => ({
  maxRequestBodySize: SOCKET_BODY,
  idleTimeout: IDLE_SECONDS,
  development: false as const,
  // Without development mode Bun shares the port with other processes of the user unless told not to.
  reusePort: false,
  /** Answers an error that escaped every boundary: the page of the runtime shows source lines and directories. */
  error: (cause: Error): Response => {
    const request_id = Bun.randomUUIDv7()
    log.error({ request_id, err: cause }, 'unhandled')
    return errorAnswer({ request_id }, asAppError(cause))
  },
})
