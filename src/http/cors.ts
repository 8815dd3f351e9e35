import type { Context } from '#src/context.ts'

type Cors = Pick<Context, 'ports'>

const originOf = (request: Request): string | null => request.headers.get('origin')

/**
 * The preflight of an endpoint that pages of clients call: any origin that some client registers may ask; whether it may
 * read the answer is decided there.
 */
export const preflight =
  (context: Cors, methods: string) =>
  async ({ request }: { request: Request }): Promise<Response> => {
    const headers = new Headers({ vary: 'Origin' })
    const origin = originOf(request)
    if (origin && (await context.ports.origins.any(origin))) {
      headers.set('access-control-allow-origin', origin)
      headers.set('access-control-allow-methods', methods)
      headers.set('access-control-allow-headers', 'authorization, content-type')
      headers.set('access-control-max-age', '600')
    }
    return new Response(null, { status: 204, headers })
  }

/** Lets a page of the client that the answer concerns read it, and nobody else. */
export const allowOrigin = async (
  context: Cors,
  request: Request,
  answer: Response,
  client_id: string | undefined,
): Promise<Response> => {
  const origin = originOf(request)
  if (origin === null) return answer
  answer.headers.set('vary', 'Origin')
  if (client_id !== undefined && (await context.ports.origins.of(client_id, origin))) {
    answer.headers.set('access-control-allow-origin', origin)
    answer.headers.set('access-control-expose-headers', 'www-authenticate, retry-after, x-request-id')
  }
  return answer
}
