import type { Context } from '#src/context.ts'
import { allowOrigin } from '#src/http/cors.ts'
import { claimedClient } from '#src/oauth/bearer.ts'
import { PUBLIC_DYNAMIC } from '#src/protocol/oauth/dynamic-id.ts'

/**
 * Adds CORS headers to a faulty answer if web pages may read the regular answers of the endpoint. The headers
 * let the pages read the faulty answer too. `client_id` is the client in the parameters of the request.
 */
export const letPagesRead = async (
  context: Context,
  request: Request,
  answer: Response,
  client_id: string | undefined,
): Promise<void> => {
  const { pathname: path } = new URL(request.url)
  if (path.startsWith('/.well-known/')) answer.headers.set('access-control-allow-origin', '*')
  const callers: Record<string, string | undefined> = {
    '/oauth/token': client_id,
    '/oauth/revoke': client_id,
    '/oauth/register': PUBLIC_DYNAMIC,
    '/oauth/userinfo': claimedClient(request),
  }
  if (Object.hasOwn(callers, path)) await allowOrigin(context, request, answer, callers[path])
}
