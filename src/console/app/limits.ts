import { join } from 'node:path'
import { eventTypes } from '#src/audit/types.ts'
import { permissions } from '#src/lib/permission.ts'
import { signingAlgs } from '#src/protocol/oidc/signing-algs.ts'

/**
 * Returns the names that the console needs from the server. This is a Bun macro: it runs when the console is
 * built.
 */
export const consoleLimits = () => ({
  eventTypes: [...eventTypes],
  permissions: [...permissions],
  signingAlgs: [...signingAlgs],
})

/**
 * Returns the default of each field of a seed file as JSON, by section and name; '' without a default. This
 * is a Bun macro; a separate process reads the schemas, since they contain macros themselves.
 */
export const seedFields = (): Record<string, Record<string, string>> => {
  const { stdout } = Bun.spawnSync([process.execPath, join(import.meta.dir, '../seed-fields.ts')], {
    stderr: 'inherit',
  })
  return JSON.parse(stdout.toString())
}
