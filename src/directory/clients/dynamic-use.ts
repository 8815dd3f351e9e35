import { type NewEvent, record } from '#src/audit/record.ts'
import type { Core } from '#src/context.ts'
import { isDynamicId } from '#src/protocol/oauth/dynamic-id.ts'
import type { Transaction } from '#src/storage/store.ts'
import { noteUse } from './dynamic-store.ts'

/**
 * Notes that a person lets a client in, and records the first time. It does nothing for a client that an
 * administrator registered.
 */
export const recordUse = async (
  context: Core,
  tx: Transaction,
  client_id: string,
  by: Pick<NewEvent, 'actor' | 'organization_id' | 'client_info' | 'subject_id'>,
): Promise<void> => {
  const first = isDynamicId(client_id) ? await noteUse(tx, client_id, context.clock.now()) : undefined
  if (!first) return
  const { name, registration } = first
  await record(context, tx, {
    ...by,
    type: 'client.first_used',
    target_id: client_id,
    target_type: 'client',
    metadata: { name, redirect_uris: registration.redirect_uris },
  })
}
