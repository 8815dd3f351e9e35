import { type Actor, record } from '#src/audit/record.ts'
import type { EventType } from '#src/audit/types.ts'
import type { Core } from '#src/context.ts'
import type { ClientInfo } from '#src/lib/client-info.ts'
import type { Transaction } from '#src/storage/store.ts'
import type { UserRow } from './store.ts'

/** Records an event about a user, in the transaction of the change. */
export const recordUser = (
  context: Core,
  tx: Transaction,
  { actor, client_info }: { actor: Actor; client_info: ClientInfo },
  type: EventType,
  user: Pick<UserRow, 'id' | 'organization_id'>,
  metadata: Record<string, unknown> = {},
): Promise<void> =>
  record(context, tx, {
    type,
    actor,
    target_id: user.id,
    target_type: 'user',
    organization_id: user.organization_id,
    client_info,
    metadata,
    subject_id: user.id,
  })
