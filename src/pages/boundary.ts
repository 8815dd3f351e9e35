import type { Context } from '#src/context.ts'
import { asAppError } from '#src/http/answer.ts'
import { type Call, callOf } from '#src/http/call.ts'
import { type Matched, mount, type RouteTable } from '#src/http/routes.ts'
import type { AppErrorCode } from '#src/lib/app-error.ts'
import { OAuthError } from '#src/protocol/oauth/error.ts'
import type { ErrorPage } from './data.ts'
import { render } from './render.ts'
import { houseBrand } from './themes.ts'

type ErrorPageCode = ErrorPage['code']

interface PageErrorOptions extends ErrorOptions {
  /** Where the person can start again. */
  retry_url?: string
}

/** A refusal that a person reads: the code of its text and the HTTP status. */
export class PageError extends Error {
  override readonly name = 'PageError'
  readonly code: ErrorPageCode
  readonly status: number
  readonly retry_url: string | undefined

  constructor(code: ErrorPageCode, status: number, options: PageErrorOptions = {}) {
    super(code, options)
    this.code = code
    this.status = status
    this.retry_url = options.retry_url
  }
}

/** What the refusals of other rooms say on a page. */
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

type PageContext = Pick<Context, 'config' | 'clock' | 'log'>
export type PageHandler = (call: Call, params: Record<string, string>) => Promise<Response>

/** The error boundary of every route that a browser walks: whatever is thrown becomes a page with the request's id. */
export const pageBoundary =
  (context: PageContext, handle: PageHandler) =>
  async ({ request, params }: Matched): Promise<Response> => {
    const call = callOf(request)
    try {
      return await handle(call, params)
    } catch (error) {
      return errorPage(context, call, error)
    }
  }

/** Mounts the routes of pages, each behind the error boundary. */
export const pageRoutes = (context: PageContext, table: RouteTable<PageHandler>) =>
  mount(
    Object.fromEntries(Object.entries(table).map(([name, handle]) => [name, pageBoundary(context, handle)])),
  )

/** Whether whoever asks would rather read a page than JSON. */
export const wantsPage = (request: Request): boolean =>
  (request.headers.get('accept') ?? '').includes('text/html')

/** Any failure as a page. */
export const errorPage = (context: PageContext, call: Call, error: unknown): Response => {
  const { locale } = call
  const common = { brand: houseBrand(context), request_id: call.request_id }
  if (error instanceof PageError) {
    const { code, status, retry_url } = error
    return render('error', { ...common, code, ...(retry_url && { retry_url }) }, { locale, status })
  }
  if (error instanceof OAuthError && error.status < 500)
    return render('error', { ...common, code: 'bad_request' }, { locale, status: 400 })
  const refusal = asAppError(error)
  if (refusal.status >= 500)
    context.log.error({ request_id: call.request_id, err: refusal.cause ?? refusal }, 'page failed')
  const { status, headers } = refusal
  const code = pageCodes[refusal.code] ?? 'server_error'
  const seconds = Number(headers['retry-after'] ?? 1)
  return render('error', { ...common, code, seconds }, { locale, status, headers })
}
