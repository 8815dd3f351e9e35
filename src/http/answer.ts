import type { Core } from '#src/context.ts'
import { AppError, type Detail } from '#src/lib/app-error.ts'
import type { Call } from './call.ts'

/** Error body of the JSON endpoints. The body of an `OAuthError` has only the first four members. */
export interface ErrorBody {
  error: string
  error_description: string
  status: number
  request_id: string
  details?: Detail[]
  current?: unknown
  confirm?: string
}

const JSON_TYPE = 'application/json; charset=utf-8'

/**
 * Returns the headers of JSON answers. The answers must not be cached, because they may contain tokens,
 * secrets or personal data. Creating a response takes half as long with a `Headers` object as with an object
 * literal.
 */
export const jsonHeaders = (more: Record<string, string> = {}): Headers =>
  new Headers({ 'content-type': JSON_TYPE, 'cache-control': 'no-store', ...more })

const JSON_HEADERS = jsonHeaders()

/** Returns a JSON answer. Its headers are a copy of `prepared`, to which `headers` are added. */
export const json = (
  body: unknown,
  status = 200,
  headers: Record<string, string> = {},
  prepared = JSON_HEADERS,
): Response => {
  const response = new Response(JSON.stringify(body), { status, headers: prepared })
  for (const name in headers) response.headers.set(name, headers[name] ?? '')
  return response
}

/** Returns a response without a body. */
export const empty = (status: number): Response => new Response(null, { status })

/** Returns the JSON body of a refusal in the admin API. */
export const errorBody = (call: Pick<Call, 'request_id'>, error: AppError): ErrorBody => ({
  error: error.code,
  error_description: error.message,
  status: error.status,
  request_id: call.request_id,
  ...(error.details && { details: error.details }),
  ...(error.current !== undefined && { current: error.current }),
  ...(error.confirm !== undefined && { confirm: error.confirm }),
})

/** Turns a refusal into an HTTP answer of a JSON endpoint. */
export const errorAnswer = (call: Pick<Call, 'request_id'>, error: AppError): Response =>
  json(errorBody(call, error), error.status, error.headers)

/** True when the client accepts HTML. */
export const wantsPage = (request: Request): boolean =>
  (request.headers.get('accept') ?? '').includes('text/html')

/** Returns a refusal unchanged. For any other error, returns a 500 that does not reveal the cause. */
export const asAppError = (error: unknown): AppError =>
  error instanceof AppError
    ? error
    : new AppError(
        'server_error',
        'An internal error occurred. The log has the details under the request id.',
        {
          cause: error,
        },
      )

/**
 * Does the same as {@link asAppError}, and logs an error with status 500 or higher under the text `what`. The
 * log gets the cause, which no answer reveals.
 */
export const refusalFor = (
  { log }: Pick<Core, 'log'>,
  { request_id }: Call,
  error: unknown,
  what: string,
): AppError => {
  const refusal = asAppError(error)
  if (refusal.status >= 500) log.error({ request_id, err: refusal.cause ?? refusal }, what)
  return refusal
}

/** Headers that forbid a browser to cache the redirect and to send a Referer. */
const REDIRECT_HEADERS = new Headers({
  'cache-control': 'no-store',
  pragma: 'no-cache',
  'referrer-policy': 'no-referrer',
})

/** Redirects to `location`, which may contain a code or a handle. */
export const redirect = (status: 302 | 303, location: string): Response => {
  const response = new Response(null, { status, headers: REDIRECT_HEADERS })
  response.headers.set('location', location)
  return response
}

/**
 * Redirects with 303, after which browsers use GET and drop the body of a POST:
 * https://www.rfc-editor.org/rfc/rfc9110#section-15.4.4
 */
export const seeOther = (location: string): Response => redirect(303, location)
