import { eventTypes } from '#src/audit/types.ts'
import { permissions } from '#src/lib/permission.ts'
import { signingAlgs } from '#src/protocol/oidc/signing-algs.ts'

/** Returns what the console needs of the server's rules. This is a Bun macro: it runs when the console is built. */
export const consoleLimits = () => ({
  eventTypes: [...eventTypes],
  permissions: [...permissions],
  signingAlgs: [...signingAlgs],
})
