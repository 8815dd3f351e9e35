import type { CalledFor, Core, FoundDocument } from '#src/context.ts'
import { chargeDocument } from '#src/http/rate-limits.ts'
import { AppError } from '#src/lib/app-error.ts'
import type { UserId } from '#src/lib/ids.ts'
import { parseDocument } from '#src/protocol/oauth/client-document.ts'
import { copyOf } from '#src/protocol/oauth/published-documents.ts'
import { findJson } from './remote-json.ts'

/**
 * Maximum bytes of a document. The draft recommends 5 kilobytes:
 * https://datatracker.ietf.org/doc/html/draft-ietf-oauth-client-id-metadata-document-01#section-6.6
 */
const MAX_BYTES = 5 * 1024

/**
 * Returns the metadata of a client whose id is the URL of its metadata document, from memory while the
 * document is fresh. When the document cannot be read, returns the copy of it in the executable, or undefined
 * if there is no copy. With these copies, well-known applications work without Internet access.
 *
 * @param asked the user for whose login the document is read, and the organization of the login
 * @throws AppError for a client without a copy: 429 `rate_limited` when too many documents were read for the
 * user or from the origin; 503 `temporarily_unavailable` while too many are being read
 */
export const findDocument = async (
  context: Core,
  client_id: string,
  { organization, user_id }: { organization: CalledFor; user_id: UserId },
): Promise<FoundDocument | undefined> => {
  const copy = copyOf(client_id)
  const registration = await findJson(context, {
    kind: 'document',
    url: client_id,
    organization,
    bytes: MAX_BYTES,
    charge: origin => chargeDocument(context, { user_id, origin }),
    parse: json => parseDocument(json, client_id),
    stale_for: 0,
  }).catch(error => {
    if (copy && error instanceof AppError) return undefined
    throw error
  })
  if (registration) return { registration, is_copy: false }
  return copy && { registration: copy, is_copy: true }
}
