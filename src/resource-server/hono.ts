import type { Context, Handler, MiddlewareHandler } from 'hono'
import {
  answerTo,
  authorize,
  type ClaimsFor,
  findHandler,
  type Handlers,
  type Rules,
  toResponse,
} from './access.ts'
import type { Claims } from './claims.ts'
import { AccessError } from './errors.ts'
import type { LogoutReceiver } from './logout.ts'
import { protection, type ResourceOptions } from './mcp.ts'
import type { Verifier } from './verifier.ts'

/** Rules of the routes behind the middleware, and replacements for the answers to refused requests. */
export type HonoOptions = Rules & Handlers<[c: Context], Response | Promise<Response>>

/**
 * Returns middleware that verifies the token and sets the variable `claims`. The rules determine the type of
 * `claims`.
 *
 * @param options rules of the routes behind the middleware; default: any valid token
 *
 * @example
 * app.get('/orders', auth(verifier, { scopes: ['orders:read'] }), c => c.json(c.var.claims.sub))
 */
export function auth<R extends HonoOptions = Record<never, never>>(
  verifier: Verifier,
  options?: R,
): MiddlewareHandler<{ Variables: { claims: ClaimsFor<R> } }> {
  return async (c, next) => {
    try {
      c.set('claims', await authorize(verifier, c.req.raw, options))
    } catch (error) {
      if (!(error instanceof AccessError)) throw error
      const handler = findHandler(error, options)
      return handler ? handler(error, c) : toResponse(answerTo(error, verifier.issuer))
    }
    return next()
  }
}

/**
 * Returns middleware that makes the application a protected resource, such as an MCP server. The middleware
 * serves the metadata document, guards all paths except the open ones, and sets the variable `claims` on
 * guarded paths. An `AccessError` that a handler throws is answered like a refused request.
 *
 * @throws ConfigurationError when the verifier has no http(s) `resource`
 *
 * @example
 * app.use(protect(verifier, { scopes: ['tools.read'] }))
 */
export function protect(
  verifier: Verifier,
  options?: ResourceOptions,
): MiddlewareHandler<{ Variables: { claims: Claims } }> {
  const { check, refuse } = protection(verifier, options)
  return async (c, next) => {
    const { method, path, raw } = c.req
    const checked = await check({ method, path, headers: raw.headers })
    if (checked?.answer) return toResponse(checked.answer)
    if (checked) c.set('claims', checked.claims)
    await next()
    if (c.error instanceof AccessError) c.res = toResponse(refuse(c.error))
    return undefined
  }
}

/**
 * Returns the handler of the application's logout URI.
 *
 * @example
 * app.post('/backchannel-logout', logout(receiver))
 */
export const logout =
  ({ handle, receive }: LogoutReceiver): Handler =>
  async c => {
    if (!c.req.raw.bodyUsed) return handle(c.req.raw)
    const { status, headers, body } = await receive(await c.req.parseBody({ all: true }))
    return c.body(body, status, headers)
  }
