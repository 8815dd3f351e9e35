/** A matched request with the decoded parameters of its path. */
export interface Matched {
  request: Request
  params: Record<string, string>
}

/** Handles a request that the router has matched. */
export type Handler = (matched: Matched) => Response | Promise<Response>

/** Handlers by method and path, such as `POST /oauth/token` or `GET /saml/:provider/metadata`. */
export type RouteTable<H> = Readonly<Record<`${'GET' | 'POST' | 'PUT' | 'DELETE' | 'OPTIONS'} /${string}`, H>>

/** A route: its handler, method and path. */
export interface Route {
  method: string
  path: string
  handle: Handler
}

/**
 * Converts a table of handlers into routes for http/sections.ts. All routes come from such tables. A table
 * has no options for the router, so no route can make the router read a body. Only handlers read bodies.
 */
export const mount = (table: RouteTable<Handler>): Route[] =>
  Object.entries(table).map(([name, handle]) => {
    const [method = '', path = ''] = name.split(' ')
    return { method, path, handle }
  })
