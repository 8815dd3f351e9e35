import type { Core } from '#src/context.ts'
import type { ChangedBy } from '#src/directory/access.ts'
import { isDynamicId } from '#src/protocol/oauth/dynamic-id.ts'
import { revokeSessionsAlone } from '#src/sessions/service.ts'
import { DELETE_BATCH } from '#src/storage/batches.ts'
import type { Settings } from './schema.ts'
import { type Organization, settingsOf } from './store.ts'

/** True when the organization lets the client in; always for one that an administrator registered. */
export const letsIn = (
  organization: Pick<Organization, 'settings'>,
  { client_id }: { readonly client_id: string },
): boolean => {
  if (!isDynamicId(client_id)) return true
  const { client_registration, blocked_clients } = settingsOf(organization)
  return client_registration === 'open' && !blocked_clients.includes(client_id)
}

/**
 * Ends the sessions of clients that the changed settings no longer let in, in writes of bounded size. Requests
 * of these clients are refused from the change on.
 */
export const endKeptOut = async (
  context: Core,
  before: Pick<Organization, 'id' | 'settings'>,
  after: Settings,
  { caller, client_info }: ChangedBy,
): Promise<void> => {
  const old = settingsOf(before)
  const now = settingsOf({ settings: after })
  const isOff = old.client_registration === 'open' && now.client_registration === 'off'
  const added = now.blocked_clients.filter(id => isDynamicId(id) && !old.blocked_clients.includes(id))
  const filters = isOff ? [{ is_dynamic: true }] : added.map(client_id => ({ client_id }))
  const by = { actor: { id: caller.id || null, email: caller.email }, client_info, reason: 'client_kept_out' }
  for (const filter of filters) {
    const endSome = () =>
      context.store.write(tx =>
        revokeSessionsAlone(context, tx, { organization_id: before.id, ...filter }, by, DELETE_BATCH),
      )
    do await context.store.drained()
    while ((await endSome()).length === DELETE_BATCH)
  }
}
