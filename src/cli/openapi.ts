import { openApiDocument } from '#src/admin/openapi.ts'
import { adminRoutes } from '#src/admin/routes.ts'
import { loadConfig } from '#src/config.ts'
import type { Context } from '#src/context.ts'
import { VERSION } from '#src/lib/version.ts'

/** The document needs the routes alone: no store is opened, so it works anywhere. */
export const openapi = (options: { config?: string }): void => {
  const { config } = loadConfig(process.env, options.config)
  const routes = adminRoutes({ config } as Context)
  console.log(JSON.stringify(openApiDocument(routes, config.url, VERSION), null, 2))
}
