import type { Core } from '#src/context.ts'
import { openHashes } from '#src/directory/users/password.ts'
import { openCharges } from '#src/http/charge.ts'

/** The core of one server, from what its start opened: with limits and queues of its own. */
export const openCore = (parts: Omit<Core, 'charges' | 'hashes' | 'attempts' | 'trace'>): Core => ({
  ...parts,
  charges: openCharges(),
  attempts: new Map(),
  hashes: openHashes(parts.store.metrics),
  trace: (_name, work) => work(),
})
