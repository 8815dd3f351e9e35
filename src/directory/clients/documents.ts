import type { CalledFor, Core, FoundDocument, KnownDocument } from '#src/context.ts'
import { chargeDocument } from '#src/http/charge.ts'
import { printable } from '#src/http/refusal.ts'
import { retryLater } from '#src/lib/app-error.ts'
import { DAY, HOUR, MINUTE, SECOND } from '#src/lib/duration.ts'
import type { UserId } from '#src/lib/ids.ts'
import { parseDocument } from '#src/protocol/oauth/client-document.ts'
import { copyOf } from '#src/protocol/oauth/published-documents.ts'

/**
 * The largest document that a server has to read:
 * https://datatracker.ietf.org/doc/html/draft-ietf-oauth-client-id-metadata-document#section-6.6
 */
const MAX_BYTES = 5 * 1024
const MAX_DOCUMENTS = 1_000
/** Calls at a time, of the server and to one origin. */
const PARALLEL = { all: 16, origin: 4 }
/** Time in milliseconds after which a document that could not be read is asked for again. */
const FAILED_FOR = MINUTE

/**
 * Returns the metadata of a client, whose id is the URL of the document: from memory while the document is
 * fresh. A copy in the executable stands in for a document that cannot be read; undefined without one.
 *
 * @param asked the person for whom the document is read, and the organization
 * @throws AppError 429 `rate_limited`, 503 `temporarily_unavailable`
 */
export const findDocument = async (
  context: Core,
  client_id: string,
  asked: { organization: CalledFor; user_id: UserId },
): Promise<FoundDocument | undefined> => {
  const { clock, documents } = context
  // Hosts that outbound_allow names are open to one organization only.
  const key = `${asked.organization.id} ${client_id}`
  const known = documents.get(key)
  if (known && known.expires_at > clock.now()) return known.found
  const { origin } = new URL(client_id)
  try {
    admit(documents, origin)
    chargeDocument(context, { user_id: asked.user_id, origin })
  } catch (error) {
    const copy = copyOf(client_id)
    if (copy) return { registration: copy, is_copy: true }
    throw error
  }
  const entry: KnownDocument = {
    origin,
    found: Promise.resolve(undefined),
    expires_at: Number.POSITIVE_INFINITY,
    validators: {},
  }
  entry.found = read(context, client_id, asked.organization, known, entry)
  keep(documents, key, entry)
  return entry.found
}

const admit = (documents: Core['documents'], origin: string): void => {
  const running = [...documents.values()].filter(({ expires_at }) => expires_at === Number.POSITIVE_INFINITY)
  const own = running.filter(entry => entry.origin === origin)
  if (running.length >= PARALLEL.all || own.length >= PARALLEL.origin)
    throw retryLater('temporarily_unavailable', 'Too many metadata documents are being read.', SECOND)
}

/** Keeps an entry in place of the oldest one. */
const keep = (documents: Core['documents'], key: string, entry: KnownDocument): void => {
  documents.delete(key)
  documents.set(key, entry)
  if (documents.size <= MAX_DOCUMENTS) return
  for (const [oldest, { expires_at }] of documents) {
    if (expires_at === Number.POSITIVE_INFINITY) continue
    documents.delete(oldest)
    return
  }
}

/** Reads the document into its entry, or, when one is known, only a newer one. */
const read = async (
  context: Core,
  client_id: string,
  organization: CalledFor,
  known: KnownDocument | undefined,
  entry: KnownDocument,
): Promise<FoundDocument | undefined> => {
  const { clock, fetch, log } = context
  try {
    const headers = { accept: 'application/json', ...known?.validators }
    const answer = await fetch(client_id, { organization, bytes: MAX_BYTES, headers })
    const before = answer.status === 304 ? await known?.found : undefined
    const isUnchanged = before !== undefined && !before.is_copy
    const registration = isUnchanged ? before.registration : await parse(answer, client_id)
    entry.validators = isUnchanged && known ? known.validators : validatorsOf(answer.headers)
    entry.expires_at = clock.now() + freshness(answer.headers, clock.now())
    return { registration, is_copy: false }
  } catch (error) {
    log.warn({ event: 'client_document_failed', client_id: printable(client_id), err: error })
    entry.expires_at = clock.now() + FAILED_FOR
    const copy = copyOf(client_id)
    return copy && { registration: copy, is_copy: true }
  }
}

const parse = async (answer: Response, client_id: string) => {
  if (answer.status !== 200) throw new Error(`The document has the HTTP status ${answer.status}.`)
  const type = answer.headers.get('content-type')?.split(';')[0]?.trim() ?? ''
  if (!/^application\/(?:[\w.-]+\+)?json$/i.test(type))
    throw new Error('The document is not JSON by its type.')
  return parseDocument(await answer.json(), client_id)
}

const validatorsOf = (headers: Headers): Record<string, string> => {
  const [etag, modified] = [headers.get('etag'), headers.get('last-modified')]
  return { ...(etag && { 'if-none-match': etag }), ...(modified && { 'if-modified-since': modified }) }
}

/**
 * Milliseconds for which a document is used without asking:
 * https://www.rfc-editor.org/rfc/rfc9111#section-4.2.1
 */
const freshness = (headers: Headers, now: number): number => {
  const control = headers.get('cache-control') ?? ''
  const age = /\bs-maxage="?(\d+)/i.exec(control) ?? /\bmax-age="?(\d+)/i.exec(control)
  const expires = Date.parse(headers.get('expires') ?? '')
  const told = /\bno-(?:store|cache)\b/i.test(control)
    ? 0
    : age
      ? Number(age[1]) * SECOND
      : Number.isNaN(expires)
        ? HOUR
        : expires - now
  return Math.min(Math.max(told, MINUTE), DAY)
}
