import type { CalledFor, Core, FoundDocument } from '#src/context.ts'
import { chargeDocument, chargeReread } from '#src/http/rate-limits.ts'
import { AppError } from '#src/lib/app-error.ts'
import { CLOCK_SKEW, DAY } from '#src/lib/duration.ts'
import type { UserId } from '#src/lib/ids.ts'
import { parseDocument } from '#src/protocol/oauth/client-document.ts'
import type { Registration } from '#src/protocol/oauth/dynamic-client.ts'
import { copyOf } from '#src/protocol/oauth/published-documents.ts'
import type { DynamicClient } from './dynamic-store.ts'
import { ASKED_AGAIN, findJson, type Wanted } from './remote-json.ts'

/**
 * Maximum bytes of a document. The draft recommends 5 kilobytes:
 * https://datatracker.ietf.org/doc/html/draft-ietf-oauth-client-id-metadata-document-01#section-6.6
 */
const MAX_BYTES = 5 * 1024

/**
 * Returns the metadata of a client whose id is the URL of its metadata document. The metadata comes from
 * memory while it is fresh. If the document cannot be read, returns the copy in the executable. Returns
 * undefined if the executable has no copy. These copies let well-known applications work without Internet
 * access.
 *
 * @param asked the user for whose login the document is read, the organization of the login, and the stored
 * client (undefined if none is stored)
 * @throws AppError for a client without a copy: 429 `rate_limited` when too many documents were read for the
 * user or from the origin; 503 `temporarily_unavailable` while too many documents are being read
 */
export const findDocument = async (
  context: Core,
  client_id: string,
  asked: { organization: CalledFor; user_id: UserId; stored: DynamicClient | undefined },
): Promise<FoundDocument | undefined> => {
  const copy = copyOf(client_id)
  const { organization, user_id, stored } = asked
  const registration = await findJson(context, {
    ...wantedDocument(client_id, organization),
    charge: origin => chargeDocument(context, { user_id, origin }),
    stale_for: 0,
    ...tooOld(stored, context.clock.now()),
  }).catch(error => {
    if (copy && error instanceof AppError) return undefined
    throw error
  })
  if (registration) return { registration, is_copy: false }
  return copy && { registration: copy, is_copy: true }
}

/**
 * Returns the metadata of a stored client that signs an assertion. The metadata comes from memory while it is
 * fresh, so a withdrawn key is used for a day at most. If the document cannot be read again, earlier metadata
 * is used for a day after the last read. After a restart this day begins with the first attempt. After this
 * day, returns the stored metadata if the executable has a copy of the document, and undefined otherwise.
 *
 * @param is_lacking true when the known metadata lacks the wanted key
 * @throws AppError the errors of `findJson`
 */
export const rereadDocument = async (
  context: Core,
  stored: DynamicClient,
  organization: CalledFor,
  is_lacking: boolean,
): Promise<Registration | undefined> => {
  const now = context.clock.now()
  const { client_id, registration } = stored
  const found = await findJson(context, {
    ...wantedDocument(client_id, organization),
    charge: origin => chargeReread(context, origin),
    stale_for: DAY,
    stored: registration,
    ...tooOld(stored, now),
    ...(is_lacking && { asked_after: now - ASKED_AGAIN }),
  })
  return found ?? (copyOf(client_id) && registration)
}

/**
 * Says which documents in memory are too old to be used without another read. A document in memory must not
 * replace a stored document that another process, or a login at another organization, has read later. If the
 * last change of the stored document is more than `CLOCK_SKEW` in the future, someone has set the clock back
 * since. The time of the change then does not tell which document is older. A document in memory is therefore
 * read again when it is a minute old, and `rereadDocument` uses the stored document while the read fails. A
 * smaller difference is normal, because the clocks of two machines may differ.
 */
const tooOld = (
  stored: DynamicClient | undefined,
  now: number,
): Pick<Wanted<Registration>, 'changed_at' | 'keeps_day'> => {
  const changed_at = stored?.changed_at ?? Number.NEGATIVE_INFINITY
  return changed_at <= now + CLOCK_SKEW ? { changed_at } : { changed_at: now - ASKED_AGAIN, keeps_day: true }
}

const wantedDocument = (
  client_id: string,
  organization: CalledFor,
): Pick<Wanted<Registration>, 'kind' | 'url' | 'organization' | 'bytes' | 'parse'> => ({
  kind: 'document',
  url: client_id,
  organization,
  bytes: MAX_BYTES,
  parse: json => parseDocument(json, client_id),
})
