/** One refused field of a body or query. It never contains the refused value, which may be a secret. */
export interface Detail {
  field: string
  code: string
  message: string
}

const statuses = {
  invalid_request: 400,
  invalid_token: 401,
  insufficient_user_authentication: 401,
  forbidden: 403,
  insufficient_scope: 403,
  not_found: 404,
  method_not_allowed: 405,
  request_timeout: 408,
  conflict: 409,
  last_administrator: 409,
  precondition_failed: 412,
  payload_too_large: 413,
  unsupported_media_type: 415,
  misdirected_request: 421,
  validation_failed: 422,
  rate_limited: 429,
  server_error: 500,
  temporarily_unavailable: 503,
} as const

/** Error codes of the refusals that are not an `OAuthError`. Each code has one HTTP status. */
export type AppErrorCode = keyof typeof statuses

interface AppErrorOptions {
  details?: Detail[]
  headers?: Record<string, string>
  /** The stored object, for the answer 412 `precondition_failed`. */
  current?: unknown
  /** The name that the caller repeats to confirm the change, for the answer 409 `last_administrator`. */
  confirm?: string
  /** For the log only, never for the answer. */
  cause?: unknown
}

/**
 * A refusal that is not an `OAuthError`, at any endpoint. The answer is JSON, or a page that
 * pages/error-page.ts renders.
 */
export class AppError extends Error {
  readonly code: AppErrorCode
  readonly status: number
  readonly details: Detail[] | undefined
  readonly headers: Record<string, string>
  readonly current: unknown
  readonly confirm: string | undefined

  constructor(code: AppErrorCode, description: string, options: AppErrorOptions = {}) {
    super(description, { cause: options.cause })
    this.name = 'AppError'
    this.code = code
    this.status = statuses[code]
    this.details = options.details
    this.headers = options.headers ?? {}
    this.current = options.current
    this.confirm = options.confirm
  }
}

/**
 * Returns a 404 that is the same for an unknown id and for an id of another organization. A caller thus
 * cannot find out which ids exist in other organizations.
 */
export const notFound = (what = 'The resource'): AppError =>
  new AppError('not_found', `${what} does not exist.`)

/** Returns a 409. */
export const conflict = (description: string): AppError => new AppError('conflict', description)

/** Returns a 409 for a field whose value another object already has. */
export const valueTaken = (field: string, message: string): AppError =>
  new AppError('conflict', message, { details: [{ field, code: 'taken', message }] })

/** Returns a 403. */
export const forbidden = (description: string): AppError => new AppError('forbidden', description)

/** Returns a 422 `validation_failed` with one detail per refused field. */
export const invalid = (...details: [Detail, ...Detail[]]): AppError =>
  new AppError(
    'validation_failed',
    `${details.length === 1 ? 'A field is' : `${details.length} fields are`} not valid.`,
    { details },
  )

/** Throws 422 with the details. Does nothing when there are no details. */
export const throwProblems = ([first, ...others]: Detail[]): void => {
  if (first) throw invalid(first, ...others)
}

/**
 * Returns a 429 or 503 with `Retry-After`: `ms` rounded up to whole seconds, at least 1. With 0 a client
 * would repeat its request at once.
 */
export const retryLater = (
  code: 'rate_limited' | 'temporarily_unavailable',
  description: string,
  ms: number,
): AppError =>
  new AppError(code, description, { headers: { 'retry-after': String(Math.max(1, Math.ceil(ms / 1000))) } })
