import { Elysia } from 'elysia'

/** A matched request with the decoded parameters of its path. */
export interface Matched {
  request: Request
  params: Record<string, string>
}

/** Handles a request; the router has matched its path. */
export type Handler = (matched: Matched) => Response | Promise<Response>

/** Handlers by method and path, such as `POST /oauth/token` or `GET /saml/:provider/metadata`. */
export type RouteTable<H> = Readonly<Record<`${'GET' | 'POST' | 'PUT' | 'DELETE' | 'OPTIONS'} /${string}`, H>>

/**
 * Mounts a table of handlers. Elysia parses no body: handlers read it with a limit, after their own checks.
 */
export const mount = (table: RouteTable<Handler>) => {
  const app = new Elysia({ strictPath: true })
  for (const [name, handle] of Object.entries(table)) {
    const [method = '', path = ''] = name.split(' ')
    app.route(method, path, handle, { parse: 'none' })
  }
  return app
}
