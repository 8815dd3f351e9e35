import { Elysia } from 'elysia'
import type { Route } from './routes.ts'

/**
 * Returns a request handler that uses Elysia as router. Elysia parses no body. Handlers read the body with a
 * limit, after their own checks, so that a stranger's body costs nothing. `refuse` answers a request that has
 * no route, or whose handler threw an error.
 */
export const elysiaRouter = (
  routes: readonly Route[],
  refuse: (request: Request, cause?: unknown) => Response | Promise<Response>,
): ((request: Request) => Response | Promise<Response>) => {
  // The error handler comes first, because Elysia applies an error handler only to routes that are added
  // later.
  const elysia = new Elysia({ strictPath: true }).onError(({ code, error, request }) =>
    refuse(request, code === 'NOT_FOUND' ? undefined : error),
  )
  for (const { method, path, handle } of routes) elysia.route(method, path, handle, { parse: 'none' })
  elysia.compile()
  return elysia.fetch
}
