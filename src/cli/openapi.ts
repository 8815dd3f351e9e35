import { openApiDocument } from '#src/admin/openapi.ts'
import { adminRoutes } from '#src/admin/routes.ts'
import { loadConfig } from '#src/config.ts'
import type { Context } from '#src/context.ts'
import { VERSION } from '#src/lib/version.ts'
import { seedJsonSchema } from '#src/seed/schema.ts'
import { print } from './print.ts'

/**
 * Prints the OpenAPI document or the seed schema. Opens no store, so the command works before an instance
 * exists.
 */
export const openapi = (options: { config?: string; seedSchema?: boolean }): void => {
  const document = options.seedSchema ? seedJsonSchema() : adminDocument(options)
  print(JSON.stringify(document, null, 2))
}

const adminDocument = (options: { config?: string }) => {
  const { config } = loadConfig(process.env, options.config)
  return openApiDocument(adminRoutes({ config } as Context), config.url, VERSION)
}
