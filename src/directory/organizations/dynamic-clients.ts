import type { Core } from '#src/context.ts'
import type { ChangedBy } from '#src/directory/access.ts'
import {
  DOCUMENT_DYNAMIC,
  dynamicPrefixes,
  isDynamic,
  mayBeDynamic,
  type Origin,
  TOKEN_DYNAMIC,
} from '#src/protocol/oauth/dynamic-id.ts'
import type { SessionFilter } from '#src/sessions/filter-store.ts'
import { revokeSessionsAlone } from '#src/sessions/service.ts'
import { DELETE_BATCH } from '#src/storage/batches.ts'
import type { Settings } from './schema.ts'
import { settingsOf } from './settings.ts'
import type { Organization } from './store.ts'

/** Id prefixes of the clients that each policy allows. */
const admitted = {
  off: [],
  initial_access_token: [TOKEN_DYNAMIC],
  open: dynamicPrefixes,
} as const satisfies Record<string, readonly string[]>

type Policies = ReturnType<typeof settingsOf>

/** Returns the metadata documents that the settings allow. */
const admittedDocuments = (settings: Policies): readonly string[] | 'any' => {
  const { client_metadata_documents: policy, allowed_metadata_documents } = settings
  return policy === 'allowlist' ? allowed_metadata_documents : policy === 'off' ? [] : policy
}

/**
 * True when the organization allows the client. Always true for a client that an administrator registered.
 */
export const letsIn = (organization: Pick<Organization, 'settings'>, client: Origin): boolean => {
  if (!isDynamic(client)) return true
  const { client_id } = client
  const settings = settingsOf(organization)
  if (settings.blocked_clients.includes(client_id)) return false
  const documents = admittedDocuments(settings)
  if (client.from_document) return documents === 'any' || documents.includes(client_id)
  const prefixes: readonly string[] = admitted[settings.client_registration]
  return prefixes.includes(client_id.slice(0, 4))
}

/** Returns filters for the sessions that the change of the settings ends. */
const keptOut = (old: Policies, now: Policies): SessionFilter[] => {
  const remaining: readonly string[] = admitted[now.client_registration]
  const prefixes = admitted[old.client_registration].filter(prefix => !remaining.includes(prefix))
  const added = now.blocked_clients.filter(id => mayBeDynamic(id) && !old.blocked_clients.includes(id))
  const filters: SessionFilter[] = added.map(client_id => ({
    client_id,
    from_document: client_id.startsWith(DOCUMENT_DYNAMIC),
  }))
  if (prefixes.length > 0) filters.push({ client_prefixes: prefixes })
  const documents = admittedDocuments(now)
  if (documents !== 'any' && !Bun.deepEquals(documents, admittedDocuments(old)))
    filters.push({ from_document: true, except_client_ids: documents })
  return filters
}

/**
 * Ends the sessions of clients that the changed settings no longer allow, in writes of bounded size. Requests
 * of these clients are refused as soon as the change is stored. The sessions must end too, because they would
 * work again if a later change allowed the clients.
 */
export const endKeptOut = async (
  context: Core,
  before: Pick<Organization, 'id' | 'settings'>,
  after: Settings,
  { caller, client_info }: ChangedBy,
): Promise<void> => {
  const by = { actor: { id: caller.id || null, email: caller.email }, client_info, reason: 'client_kept_out' }
  for (const filter of keptOut(settingsOf(before), settingsOf({ settings: after }))) {
    const endSome = () =>
      context.store.write(tx =>
        revokeSessionsAlone(context, tx, { organization_id: before.id, ...filter }, by, DELETE_BATCH),
      )
    do await context.store.drained()
    while ((await endSome()).length === DELETE_BATCH)
  }
}
