import { hostActor, type NewEvent, record } from '#src/audit/record.ts'
import type { CalledFor, Core, FoundDocument } from '#src/context.ts'
import { DEFAULT_ORGANIZATION } from '#src/lib/ids.ts'
import { asksAgain } from '#src/protocol/oauth/client-document.ts'
import { removeRemains } from '#src/storage/remains.ts'
import type { Transaction } from '#src/storage/store.ts'
import { rereadDocument } from './documents.ts'
import { asClientRow, asDocumentClient } from './dynamic.ts'
import {
  type DynamicClient,
  listUnusedClients,
  readDynamicClient,
  removeDynamicClients,
  saveRegistration,
} from './dynamic-store.ts'

type By = Pick<NewEvent, 'actor' | 'organization_id' | 'client_info' | 'subject_id'>

/** Records an event of a dynamic client. */
export const recordDynamic = (
  context: Core,
  tx: Transaction,
  client: { readonly client_id: string; readonly name: string; readonly redirect_uris: readonly string[] },
  type: 'client.first_used' | 'client.metadata_changed' | 'client.forgotten',
  by: By,
): Promise<void> => {
  const { client_id, name, redirect_uris } = client
  const metadata = { name, redirect_uris }
  return record(context, tx, { ...by, type, target_id: client_id, target_type: 'client', metadata })
}

/**
 * Returns the client that a metadata document describes. Updates the stored client when the document differs.
 * When the document cannot be read, the caller passes the copy in the executable. This copy never updates the
 * stored client, for two reasons: the copy may be older than the stored document, and an update with other
 * redirect URIs or keys makes users consent again.
 */
export const noteDocument = async (
  context: Core,
  client_id: string,
  { registration, is_copy }: FoundDocument,
  by: By,
): Promise<DynamicClient> => {
  const now = context.clock.now()
  const fresh = asDocumentClient(client_id, registration, now)
  const isKnown = (stored: DynamicClient) => is_copy || Bun.deepEquals(stored.registration, registration)
  const stored = await context.store.read(q => readDynamicClient(q, client_id))
  if (!stored) return fresh
  if (isKnown(stored)) return stored
  return context.store.write(async tx => {
    const before = await readDynamicClient(tx, client_id)
    if (!before) return fresh
    if (isKnown(before)) return before
    const { name } = fresh
    // A consent from before `changed_at` is not valid. The time therefore increases with each such change,
    // even if the clock was set back.
    const later = Math.max(now, 1 + (before.changed_at ?? before.created_at))
    const changed_at = asksAgain(before.registration, registration) ? later : before.changed_at
    const client = { ...before, name, registration, changed_at }
    await saveRegistration(tx, client)
    await recordDynamic(context, tx, asClientRow(client), 'client.metadata_changed', by)
    return client
  })
}

/**
 * Returns the stored client with the current redirect URIs, keys and authentication methods of its metadata
 * document. If only other members have changed, the next login stores the change. Returns undefined when the
 * document cannot be used any more.
 *
 * @param organization the organization of the client's code or refresh token
 * @throws AppError 429 when too many documents were read from the origin, 503 when too many documents are
 * being read; see `findJson`
 */
export const rereadClient = async (
  context: Core,
  client_id: string,
  { organization, by, is_lacking }: { organization: CalledFor; by: By; is_lacking: boolean },
): Promise<DynamicClient | undefined> => {
  const stored = await context.store.read(q => readDynamicClient(q, client_id))
  const registration = stored && (await rereadDocument(context, stored, organization, is_lacking))
  if (!registration || !asksAgain(stored.registration, registration)) return registration && stored
  return noteDocument(context, client_id, { registration, is_copy: false }, by)
}

/**
 * Removes unused clients. If a user had allowed a client, its consents and pending requests are removed
 * first. Removes about `limit` rows, and returns the number of removed rows. Records `client.forgotten` for
 * each removed client that had a consent. Other clients get no event, because strangers could fill the log
 * with registrations. The consents are removed here, and not by a later purge. A public client that registers
 * again gets the same id, so a later purge would remove its new consents.
 */
export const forgetUnused = async (context: Core, tx: Transaction, limit: number): Promise<number> => {
  const unused = await listUnusedClients(tx, context.clock.now(), limit)
  const used = unused.filter(client => client.used_at !== null)
  const removed = await removeRemains(tx, 'client', used.map(idOf), limit)
  if (removed >= limit) return removed
  await removeDynamicClients(tx, unused.map(idOf))
  for (const client of used)
    await recordDynamic(context, tx, asClientRow(client), 'client.forgotten', {
      ...hostActor,
      organization_id: client.organization_id ?? DEFAULT_ORGANIZATION,
    })
  return removed + unused.length
}

const idOf = ({ client_id }: DynamicClient): string => client_id
