import type { Context } from '#src/context.ts'
import { allowOrigin } from '#src/http/cors.ts'
import { claimedClient } from '#src/oauth/bearer.ts'
import { PUBLIC_DYNAMIC } from '#src/protocol/oauth/dynamic-id.ts'

/**
 * Adds the headers (CORS) with which web pages may read a faulty answer, if they may read the answers of the
 * endpoint itself. `client_id` is the client that the parameters of the request name.
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
