import { AppError, type Detail } from '#src/lib/app-error.ts'
import type { Call } from './call.ts'

/** The one error body of the service. */
export interface ErrorBody {
  error: string
  error_description: string
  status: number
  request_id: string
  details?: Detail[]
}

const JSON_TYPE = 'application/json; charset=utf-8'

export const json = (body: unknown, status = 200, headers: Record<string, string> = {}): Response =>
  new Response(JSON.stringify(body), {
    status,
    headers: { 'content-type': JSON_TYPE, 'cache-control': 'no-store', ...headers },
  })

export const empty = (status: number): Response => new Response(null, { status })

export const errorBody = (call: Pick<Call, 'request_id'>, error: AppError): ErrorBody => ({
  error: error.code,
  error_description: error.message,
  status: error.status,
  request_id: call.request_id,
  ...(error.details && { details: error.details }),
})

/** Every refusal of a JSON endpoint as HTTP. */
export const errorAnswer = (call: Pick<Call, 'request_id'>, error: AppError): Response =>
  json(errorBody(call, error), error.status, error.headers)

/** Anything thrown that is no refusal is a 500 that says nothing of its cause. */
export const asAppError = (error: unknown): AppError =>
  error instanceof AppError
    ? error
    : new AppError(
        'server_error',
        'Something went wrong on our side. The log has the details under the request id.',
        {
          cause: error,
        },
      )

/** Headers of every redirect: its Location may carry a code or a handle. */
export const redirectHeaders = {
  'cache-control': 'no-store',
  pragma: 'no-cache',
  'referrer-policy': 'no-referrer',
}

/** RFC 9110 section 15.4.4: the browser goes on with GET, also after a POST that carried credentials. */
export const seeOther = (location: string): Response =>
  new Response(null, { status: 303, headers: { ...redirectHeaders, location } })
