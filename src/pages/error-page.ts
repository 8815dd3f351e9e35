import type { Core } from '#src/context.ts'
import { refusalFor } from '#src/http/answer.ts'
import type { Call } from '#src/http/call.ts'
import { mayReport } from '#src/http/refusal-log.ts'
import { AppError, type AppErrorCode } from '#src/lib/app-error.ts'
import { OAuthError } from '#src/protocol/oauth/error.ts'
import type { ErrorPage } from './data.ts'
import { render } from './render.ts'
import { defaultBrand } from './themes.ts'
import { wayBack } from './way-back.ts'

type ErrorPageCode = ErrorPage['code']

interface PageErrorOptions extends ErrorOptions {
  /** URL at which the user can start again. */
  retry_url?: string
  /** Details of a refused authorization request, shown in development mode only. */
  request?: ErrorPage['request']
}

/** An error shown as a page: the code of its text and the HTTP status. */
export class PageError extends Error {
  override readonly name = 'PageError'
  readonly code: ErrorPageCode
  readonly status: number
  readonly retry_url: string | undefined
  readonly request: ErrorPage['request']

  constructor(code: ErrorPageCode, status: number, options: PageErrorOptions = {}) {
    super(code, options)
    this.code = code
    this.status = status
    this.retry_url = options.retry_url
    this.request = options.request
  }
}

/** The error page of each listed error code of the API. All other codes show the page `server_error`. */
const pageCodes: Partial<Record<AppErrorCode, ErrorPageCode>> = {
  invalid_request: 'bad_request',
  request_timeout: 'bad_request',
  unsupported_media_type: 'bad_request',
  payload_too_large: 'too_large',
  not_found: 'not_found',
  method_not_allowed: 'method',
  rate_limited: 'throttled',
  temporarily_unavailable: 'unavailable',
}

/**
 * Errors whose page asks the user to pass the request id to an administrator. The pages of other errors say
 * how to continue.
 */
const forAdministrator = new Set<ErrorPageCode>([
  'bad_request',
  'unknown_client',
  'bad_redirect',
  'provider',
  'unavailable',
  'server_error',
])

/** Errors after which there is no login to return to. The pages of these errors link to the account. */
const hasNoStart = new Set<ErrorPageCode>(['not_found', 'expired', 'forbidden', 'link'])

/** Errors in the request of an application, which the user cannot correct. */
const isOfApplication = new Set<ErrorPageCode>(['bad_request', 'unknown_client', 'bad_redirect'])

/** Errors after which the same request may succeed later. */
const isPassing = new Set<ErrorPageCode>(['throttled', 'unavailable', 'server_error'])

/**
 * Returns the link of an error page. The first rule that applies decides:
 *
 * - When there is no login to return to, the link leads to the account.
 * - An error in an application's request has no link, because only the application can correct it. A request
 *   from a page of this server does not count as an application's request.
 * - After a refused POST the link leads to the page of the form. The Referer names this page. A Referer
 *   without a query may be the URL of an earlier refused POST, so `page` of the call names the page instead.
 * - After a temporary error the link leads to the same URL.
 * - Other error pages have no link.
 */
const wayOn = (
  { config }: Core,
  code: ErrorPageCode,
  { request, page }: Call,
): Pick<ErrorPage, 'retry_url' | 'is_fallback'> => {
  if (hasNoStart.has(code)) return { retry_url: '/account', is_fallback: true }
  const referer = request.headers.get('referer') ?? ''
  const isOurs = referer.startsWith(`${config.url}/`)
  if (isOfApplication.has(code) && !isOurs) return {}
  if (request.method !== 'GET')
    return { retry_url: wayBack(config, request, referer.includes('?') ? undefined : page) }
  return isPassing.has(code) ? { retry_url: '' } : {}
}

/**
 * Renders any error as a page. Logs the cause of an error with status 500 or higher. For a lower status, logs
 * the public reason if the page asks the user to pass the request id on. A `PageError` is never logged.
 */
export const errorPage = (context: Core, call: Call, error: unknown): Response => {
  const { locale } = call
  const common = (code: ErrorPageCode) => ({
    brand: defaultBrand(context),
    code,
    ...(forAdministrator.has(code) && { request_id: call.request_id }),
  })
  if (error instanceof PageError) {
    const { code, status, retry_url, request } = error
    const way = retry_url ? { retry_url } : wayOn(context, code, call)
    return render('error', { ...common(code), ...way, ...(request && { request }) }, { locale, status })
  }
  const isRefused = error instanceof OAuthError && error.status < 500
  const public_error = isRefused ? new AppError('invalid_request', error.description) : error
  const refusal = refusalFor(context, call, public_error, 'page failed')
  const { status, headers, message } = refusal
  const code = pageCodes[refusal.code] ?? 'server_error'
  if (status < 500 && forAdministrator.has(code) && mayReport(context, call, undefined))
    context.log.warn({ event: 'page_refused', request_id: call.request_id, reason: message })
  const seconds = Number(headers['retry-after'] ?? 1)
  return render(
    'error',
    { ...common(code), ...wayOn(context, code, call), seconds },
    { locale, status, headers },
  )
}
