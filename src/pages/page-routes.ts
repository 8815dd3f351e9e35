import type { Core } from '#src/context.ts'
import { type Call, callOf } from '#src/http/call.ts'
import { type Matched, mount, type RouteTable } from '#src/http/routes.ts'
import { errorPage } from './error-page.ts'

export type PageHandler = (call: Call, params: Record<string, string>) => Promise<Response>

/** Wraps the handler of a page. An error that the handler throws is answered with an error page. */
export const withErrorPage =
  (context: Core, handle: PageHandler) =>
  async ({ request, params }: Matched): Promise<Response> => {
    const call = callOf(request)
    try {
      return await handle(call, params)
    } catch (error) {
      return errorPage(context, call, error)
    }
  }

/** Mounts the routes of pages. Each route answers an error with an error page. */
export const pageRoutes = (context: Core, table: RouteTable<PageHandler>) =>
  mount(
    Object.fromEntries(Object.entries(table).map(([name, handle]) => [name, withErrorPage(context, handle)])),
  )
