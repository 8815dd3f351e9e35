import type { FastifyPluginAsync, FastifyReply, FastifyRequest } from 'fastify'
import { answerTo, authorize, findHandler, type Handlers, type Rules } from './access.ts'
import type { Claims } from './claims.ts'
import { AccessError } from './errors.ts'
import { credentialsOf } from './node-request.ts'
import { securityOf } from './openapi.ts'
import type { Verifier } from './verifier.ts'

export { SECURITY_SCHEME, securityScheme } from './openapi.ts'

declare module 'fastify' {
  interface FastifyContextConfig {
    /** What the route asks for; `true` for any good token. Without it the route is open. */
    auth?: Rules | true
  }
  interface FastifyRequest {
    /** Null on open routes, and behind optional rules without a token. */
    claims: Claims | null
  }
}

export type FastifyOptions = { verifier: Verifier } & Handlers<
  [request: FastifyRequest, reply: FastifyReply],
  unknown
>

/**
 * Plugin that guards each route whose `config.auth` is set, before its body is read, and sets `request.claims`.
 * Register it before the routes: `await app.register(gatehouse, { verifier })`, then
 * `app.get('/orders', { config: { auth: { scopes: ['orders:read'] } } }, request => getClaims(request).sub)`.
 * The route's `schema.security` is filled in for OpenAPI.
 */
export const gatehouse: FastifyPluginAsync<FastifyOptions> = async (app, { verifier, ...handlers }) => {
  app.decorateRequest('claims', null)
  app.addHook('onRoute', route => {
    const auth = route.config?.auth
    if (auth) route.schema = Object.assign({ security: securityOf(auth) }, route.schema)
  })
  app.addHook('onRequest', async (request, reply) => {
    const auth = request.routeOptions.config?.auth
    if (!auth) return
    try {
      const rules = auth === true ? {} : auth
      request.claims = (await authorize(verifier, credentialsOf(request.raw), rules)) ?? null
    } catch (error) {
      if (!(error instanceof AccessError)) throw error
      const handler = findHandler(error, handlers)
      if (handler) {
        const answer = await handler(error, request, reply)
        return reply.sent ? reply : reply.send(answer)
      }
      const { status, headers, body } = answerTo(error, verifier.issuer)
      return reply.code(status).headers(headers).send(body)
    }
  })
}
// The hooks are for the routes beside the plugin, not for its own: what the package fastify-plugin does.
Object.assign(gatehouse, {
  [Symbol.for('skip-override')]: true,
  [Symbol.for('fastify.display-name')]: 'gatehouse',
})

/** The claims of a request that passed the guard. Throws when there are none: an open route, or optional rules. */
export function getClaims(request: FastifyRequest): Claims {
  if (!request.claims) throw new Error('This request has no claims: set config.auth on its route')
  return request.claims
}
