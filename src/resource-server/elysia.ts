import { Elysia, status } from 'elysia'
import { answerTo, authorize, findHandler, type Handlers, type Rules, toResponse } from './access.ts'
import type { Claims } from './claims.ts'
import { AccessError } from './errors.ts'
import type { LogoutReceiver } from './logout.ts'
import { pathOf, protection, type ResourceOptions } from './mcp.ts'
import { securityOf } from './openapi.ts'
import type { Verifier } from './verifier.ts'

export { SECURITY_SCHEME, securityScheme } from './openapi.ts'

/** Replacements for the answers to refused requests. */
export type ElysiaOptions = Handlers<[request: Request], Response | Promise<Response>>

/** Rules of a route, or `true` for any valid token. */
export type AuthRules = Omit<Rules, 'optional' | 'onInvalid'> | true
/** Rules for tokens on a route that also serves requests without a token. `true` accepts any valid token. */
export type OptionalAuthRules = Omit<Rules, 'optional'> | true

/**
 * Returns a plugin with the route options `auth` and `optionalAuth`. Both options check the token before
 * validation, and add `security` to the operation in the OpenAPI document. With `auth` the handler always has
 * `claims`. With `optionalAuth` the value of `claims` may be undefined.
 *
 * @param options replacements for the answers to refused requests
 *
 * @example
 * app
 *   .use(gatehouse(verifier))
 *   .get('/orders', ({ claims }) => claims.sub, { auth: { scopes: ['orders:read'] } })
 */
export function gatehouse(verifier: Verifier, options?: ElysiaOptions) {
  const admitted = new WeakMap<Request, { claims: Claims | undefined }>()

  async function refuse(request: Request, rules: Rules): Promise<Response | undefined> {
    try {
      admitted.set(request, { claims: await authorize<Rules>(verifier, request, rules) })
      return undefined
    } catch (error) {
      if (!(error instanceof AccessError)) throw error
      const handler = findHandler(error, options)
      return handler ? handler(error, request) : toResponse(answerTo(error, verifier.issuer))
    }
  }

  /**
   * `transform` is the last hook before validation. A status that `transform` returns ends the request. A
   * body that cannot be parsed fails before `transform` runs. In this case the `error` hook checks the token,
   * so that an unauthorized caller gets the same answer as for any other body.
   *
   * Elysia reads the source code of a hook, and parses the body of every request when the hook passes on its
   * whole context. These hooks therefore destructure their argument.
   */
  const guard = (rules: Rules) => ({
    async transform({ request }: { request: Request }) {
      const response = await refuse(request, rules)
      return (response && status(response.status, response)) as undefined
    },
    async error({ request }: { request: Request }) {
      return admitted.has(request) ? undefined : refuse(request, rules)
    },
    detail: { security: securityOf(rules) },
  })

  return new Elysia().macro({
    auth: (rules: AuthRules) => ({
      ...guard(rules === true ? {} : rules),
      resolve: ({ request }: { request: Request }) => ({ claims: admitted.get(request)?.claims as Claims }),
    }),
    optionalAuth: (rules: OptionalAuthRules) => ({
      ...guard({ ...(rules === true ? {} : rules), optional: true }),
      resolve: ({ request }: { request: Request }) => ({ claims: admitted.get(request)?.claims }),
    }),
  })
}

/**
 * Returns a plugin that makes the application a protected resource, such as an MCP server. The plugin serves
 * the metadata document, and guards all paths except the open paths. Handlers have `claims`. An `AccessError`
 * that a handler throws is answered as a refusal.
 *
 * @throws ConfigurationError when the verifier has no http(s) `resource`
 *
 * @example
 * app.use(protect(verifier, { scopes: ['tools.read'] }))
 */
export function protect(verifier: Verifier, options?: ResourceOptions) {
  const { check, refuse } = protection(verifier, options)
  const admitted = new WeakMap<Request, Claims>()
  return (
    new Elysia()
      // Elysia searches the URL from its twelfth character on for the slash that starts the path. When the
      // host has up to three characters, Elysia may find a later slash, for example in the query, and then
      // runs the route of a different path. Such a request is guarded even if the path that `pathOf` returns
      // is open.
      .onRequest(async ({ request, path: routed }: { request: Request; path?: string }) => {
        const { method, headers } = request
        const path = pathOf(request)
        const checked = await check({ method, headers, path: path === routed ? path : '' })
        if (checked?.answer) return toResponse(checked.answer)
        if (checked) admitted.set(request, checked.claims)
        return undefined
      })
      .derive({ as: 'global' }, ({ request }) => ({ claims: admitted.get(request) }))
      .onError({ as: 'global' }, ({ error }) =>
        error instanceof AccessError ? toResponse(refuse(error)) : undefined,
      )
  )
}

/**
 * Returns a plugin that serves the application's logout URI.
 *
 * @example
 * app.use(logout(receiver, '/backchannel-logout'))
 */
export const logout = <Path extends string>({ handle }: LogoutReceiver, path: Path) =>
  new Elysia().post(path, ({ request }) => handle(request), { parse: 'none' })
