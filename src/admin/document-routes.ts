import type { Context } from '#src/context.ts'
import { mount } from '#src/http/routes.ts'
import { loadOnce } from '#src/lib/load-once.ts'
import { VERSION } from '#src/lib/version.ts'
import { openApiDocument } from './openapi.ts'
import { adminRoutes } from './routes.ts'

/**
 * Returns the routes of the OpenAPI document and of its page. Neither requires a login, because they describe
 * the program and contain no data of the instance except its URL.
 */
export const documentRoutes = (context: Context) => {
  let document: string | undefined
  const describeApi = () =>
    (document ??= JSON.stringify(openApiDocument(adminRoutes(context), context.config.url, VERSION)))
  const reference = loadOnce(async () => {
    const { referencePage } = await import('./reference.ts')
    return referencePage(JSON.parse(describeApi()))
  })
  return mount({
    'GET /api/v1/openapi.json': () =>
      new Response(describeApi(), { headers: { 'content-type': 'application/json; charset=utf-8' } }),
    'GET /api/v1/docs': async () => {
      const { html, policy } = await reference()
      return new Response(html, {
        headers: {
          'content-type': 'text/html; charset=utf-8',
          'content-security-policy': policy,
          'cache-control': 'no-cache',
          'referrer-policy': 'no-referrer',
          'x-frame-options': 'DENY',
        },
      })
    },
  })
}
