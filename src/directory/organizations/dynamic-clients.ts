import type { Core } from '#src/context.ts'
import type { ChangedBy } from '#src/directory/access.ts'
import { dynamicPrefixes, isDynamicId, TOKEN_DYNAMIC } from '#src/protocol/oauth/dynamic-id.ts'
import { revokeSessionsAlone } from '#src/sessions/service.ts'
import type { SessionFilter } from '#src/sessions/store.ts'
import { DELETE_BATCH } from '#src/storage/batches.ts'
import type { Settings } from './schema.ts'
import { type Organization, settingsOf } from './store.ts'

/** The beginnings of the ids that each policy lets in. */
const admitted = {
  off: [],
  initial_access_token: [TOKEN_DYNAMIC],
  open: dynamicPrefixes,
} as const satisfies Record<string, readonly string[]>

/** True when the organization lets the client in; always for one that an administrator registered. */
export const letsIn = (
  organization: Pick<Organization, 'settings'>,
  { client_id }: { readonly client_id: string },
): boolean => {
  if (!isDynamicId(client_id)) return true
  const { client_registration, blocked_clients } = settingsOf(organization)
  const prefixes: readonly string[] = admitted[client_registration]
  return prefixes.includes(client_id.slice(0, 4)) && !blocked_clients.includes(client_id)
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
  const remaining: readonly string[] = admitted[now.client_registration]
  const prefixes = admitted[old.client_registration].filter(prefix => !remaining.includes(prefix))
  const added = now.blocked_clients.filter(id => isDynamicId(id) && !old.blocked_clients.includes(id))
  const filters: SessionFilter[] = added.map(client_id => ({ client_id }))
  if (prefixes.length > 0) filters.push({ client_prefixes: prefixes })
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
