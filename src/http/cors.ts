import type { Context } from '#src/context.ts'
import { isOpenToPages } from '#src/protocol/oauth/dynamic-id.ts'

/**
 * Answers the preflight of an endpoint that clients' web pages call. The answer is the same for all origins,
 * so it does not reveal which origins are registered. `allowOrigin` controls access to the answer of the
 * request itself. https://fetch.spec.whatwg.org/#cors-preflight-fetch
 */
export const preflight = (methods: string) => (): Response =>
  new Response(null, {
    status: 204,
    headers: {
      'access-control-allow-origin': '*',
      'access-control-allow-methods': methods,
      // Clients of the Model Context Protocol send its version with each request.
      'access-control-allow-headers': 'authorization, content-type, mcp-protocol-version',
      'access-control-max-age': '86400',
    },
  })

const EXPOSED = 'www-authenticate, retry-after, x-request-id'

/**
 * Lets web pages at the client's registered origins read the answer. Any web page may read the answers to a
 * public client that registered itself without an initial access token. The requests of such a client contain
 * no cookie and no secret, so any program could get the same answers. Only OAuth endpoints call this
 * function. At the admin API, http/guard.ts refuses pages of other sites.
 */
export const allowOrigin = (
  context: Context,
  request: Request,
  answer: Response,
  client_id: string | undefined,
): Promise<Response> => {
  const origin = request.headers.get('origin')
  return origin === null ? Promise.resolve(answer) : allowed(context, origin, answer, client_id)
}

const allowed = async (
  context: Context,
  origin: string,
  answer: Response,
  client_id: string | undefined,
): Promise<Response> => {
  answer.headers.set('vary', 'Origin')
  if (client_id !== undefined && isOpenToPages(client_id)) {
    answer.headers.set('access-control-allow-origin', '*')
    answer.headers.set('access-control-expose-headers', EXPOSED)
  } else if (client_id !== undefined && (await context.allowsOrigin(client_id, origin))) {
    answer.headers.set('access-control-allow-origin', origin)
    answer.headers.set('access-control-expose-headers', EXPOSED)
  }
  return answer
}
