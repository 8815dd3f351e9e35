import type { CalledFor, Core, KnownJson } from '#src/context.ts'
import { printable } from '#src/http/refusal-log.ts'
import { retryLater } from '#src/lib/app-error.ts'
import { CLOCK_SKEW, DAY, HOUR, MINUTE, SECOND } from '#src/lib/duration.ts'
import { shareOf } from '#src/lib/share.ts'

/**
 * Maximum number of documents in memory. The number is limited because anyone can publish a document. Above
 * the maximum the oldest document is dropped. It is read again when it is needed.
 */
const MAX_KNOWN = 1_000
/**
 * Maximum number of concurrent calls: `all` counts all calls, `origin` counts the calls to one origin. A slow
 * origin thus cannot use up all calls.
 */
const PARALLEL = { all: 16, origin: 4 }
/**
 * Minimum milliseconds between a failed read and the next read. Without this pause, each login would wait for
 * a server that is down.
 */
const FAILED_FOR = MINUTE
/**
 * Minimum milliseconds between two reads of content that lacks a key, or of content that may be older than
 * the stored content. The client may have added the key after the first read.
 */
export const ASKED_AGAIN = MINUTE

/** A JSON document that the owner of a client publishes. */
export interface Wanted<T> {
  readonly kind: 'document' | 'keys'
  readonly url: string
  /**
   * The organization for whose login the document is read. `outbound_allow` may allow a host for one
   * organization only.
   */
  readonly organization: CalledFor
  /** Maximum bytes of the document. */
  readonly bytes: number
  /**
   * Charges the call to the budget of `origin`, the origin of `url`. If a login needs a metadata document,
   * also charges the budget of the user. Throws above the limit.
   */
  readonly charge: (origin: string) => void
  /** Returns the content. Throws when the content cannot be used. */
  readonly parse: (json: unknown) => T
  /** Milliseconds for which known content is used while it cannot be read again. */
  readonly stale_for: number
  /**
   * Stored content. If memory has no content, the URL is read, and the stored content is used for `stale_for`
   * if this read fails.
   */
  readonly stored?: T
  /**
   * Time in milliseconds since the epoch, usually that of the last change of the stored content. Content in
   * memory that was requested at or before this time is not used: it may be older than the stored content.
   */
  readonly changed_at?: number
  /**
   * Time in milliseconds since the epoch. Content that was requested at or before this time is read again,
   * even if it is fresh.
   */
  readonly asked_after?: number
  /**
   * True if `stale_for` counts from the time of the last read that the entry in memory records, even if
   * `changed_at` is later.
   */
  readonly keeps_day?: boolean
}

/**
 * Returns the content that is published at a URL. The content comes from memory while it is fresh. If the
 * content cannot be read, returns the known content for up to `stale_for` after its last read. Returns
 * undefined when there is no usable content. `context.fetch` refuses private addresses (SSRF,
 * http/outbound.ts).
 *
 * @throws AppError when no content in memory is usable: 503 `temporarily_unavailable` while too many
 * documents are being read, and the errors that `charge` throws
 */
export const findJson = async <T>(context: Core, wanted: Wanted<T>): Promise<T | undefined> => {
  const { clock, documents } = context
  const { kind, url, organization } = wanted
  const { changed_at = Number.NEGATIVE_INFINITY, asked_after = Number.NEGATIVE_INFINITY } = wanted
  const key = `${kind} ${organization.id} ${url}`
  const now = clock.now()
  const { origin } = new URL(url)
  const remembered = documents.get(key)
  const inMemory = remembered && remembered.asked_at > changed_at ? remembered : undefined
  const known = hasContent(inMemory) ? inMemory : (storedEntry(wanted, origin, now, remembered) ?? inMemory)
  if (known && isFresh(known, now) && known.asked_at > asked_after) return usable(known, wanted, now)
  try {
    admit(context, origin)
    wanted.charge(origin)
  } catch (error) {
    const stale = known && isKept(known, wanted, now) && ((await known.found) as T | undefined)
    if (stale) return stale
    throw error
  }
  // `expires_at` is infinite during the read, so other requests for the same content wait for this read.
  const entry: KnownJson = {
    origin,
    found: Promise.resolve(undefined),
    has_failed: false,
    expires_at: Number.POSITIVE_INFINITY,
    asked_at: now,
    read_at: Math.min(known?.read_at ?? Number.NEGATIVE_INFINITY, now),
    validators: {},
  }
  entry.found = read(context, wanted, known, entry)
  keep(documents, key, entry)
  return usable(entry, wanted, now)
}

/**
 * True for an entry that is being read, and for an entry that has not expired. An entry with a future time is
 * not fresh: it was read before someone set the clock back.
 */
const isFresh = ({ asked_at, expires_at }: KnownJson, now: number): boolean =>
  expires_at === Number.POSITIVE_INFINITY || (expires_at > now && asked_at <= now + CLOCK_SKEW)

/** True for an entry that is being read, or that was read at least once. */
const hasContent = (entry: KnownJson | undefined): entry is KnownJson =>
  entry !== undefined &&
  (entry.read_at > Number.NEGATIVE_INFINITY || entry.expires_at === Number.POSITIVE_INFINITY)

/** Returns an entry with the stored content. The entry has expired, so its content is read at once. */
const storedEntry = <T>(
  { stored, keeps_day }: Wanted<T>,
  origin: string,
  now: number,
  remembered: KnownJson | undefined,
): KnownJson | undefined =>
  stored === undefined
    ? undefined
    : {
        origin,
        found: Promise.resolve(stored),
        has_failed: true,
        expires_at: now,
        asked_at: Number.NEGATIVE_INFINITY,
        read_at: keeps_day && hasContent(remembered) ? Math.min(now, remembered.read_at) : now,
        validators: {},
      }

const admit = ({ documents, config }: Pick<Core, 'documents' | 'config'>, origin: string): void => {
  const isFull = (calls: unknown[], limit: number) => calls.length >= shareOf(limit, config.workers)
  const running = [...documents.values()].filter(({ expires_at }) => expires_at === Number.POSITIVE_INFINITY)
  const own = running.filter(entry => entry.origin === origin)
  if (isFull(running, PARALLEL.all) || isFull(own, PARALLEL.origin))
    throw retryLater('temporarily_unavailable', 'Too many documents of applications are being read.', SECOND)
}

/** Stores an entry. Above the maximum, drops the oldest entry that is not being read. */
const keep = (documents: Core['documents'], key: string, entry: KnownJson): void => {
  documents.delete(key)
  documents.set(key, entry)
  if (documents.size <= MAX_KNOWN) return
  for (const [oldest, { expires_at }] of documents) {
    if (expires_at === Number.POSITIVE_INFINITY) continue
    documents.delete(oldest)
    return
  }
}

/** True while earlier content may be used. */
const isKept = <T>({ read_at }: KnownJson, { stale_for }: Wanted<T>, now: number): boolean =>
  read_at + stale_for > now

/**
 * Waits for the read of an entry, and returns its content. Returns undefined if the read failed and the
 * earlier content is too old. If the read failed and the entry has no earlier content, returns the stored
 * content of this call: a login may have begun the read, and a login passes no stored content.
 */
const usable = async <T>(entry: KnownJson, wanted: Wanted<T>, now: number): Promise<T | undefined> => {
  const found = (await entry.found) as T | undefined
  if (entry.has_failed && found === undefined) return wanted.stored
  return entry.has_failed && !isKept(entry, wanted, now) ? undefined : found
}

/**
 * Reads the content into its entry. The request sends the validators of the known content (`ETag` and the
 * like), so the server can answer that nothing has changed. Returns the known content when the read fails.
 */
const read = async <T>(
  context: Core,
  wanted: Wanted<T>,
  known: KnownJson | undefined,
  entry: KnownJson,
): Promise<T | undefined> => {
  const { clock, fetch, log } = context
  const { url, organization, bytes, kind } = wanted
  try {
    const headers = { accept: 'application/json', ...known?.validators }
    const answer = await fetch(url, { organization, bytes, headers })
    const before = answer.status === 304 ? ((await known?.found) as T | undefined) : undefined
    const content = before ?? wanted.parse(await jsonOf(answer))
    entry.validators = before && known ? known.validators : validatorsOf(answer.headers)
    entry.read_at = clock.now()
    entry.expires_at = clock.now() + freshness(answer.headers, clock.now())
    return content
  } catch (error) {
    log.warn({ event: 'client_document_failed', kind, url: printable(url), err: error })
    entry.expires_at = clock.now() + FAILED_FOR
    entry.has_failed = true
    return known?.found as Promise<T | undefined> | undefined
  }
}

const jsonOf = (answer: Response): Promise<unknown> => {
  if (answer.status !== 200) throw new Error(`The server answered with HTTP status ${answer.status}.`)
  const type = answer.headers.get('content-type')?.split(';')[0]?.trim() ?? ''
  if (!/^application\/(?:[\w.-]+\+)?json$/i.test(type))
    throw new Error('The content type of the document is not JSON.')
  return answer.json()
}

const validatorsOf = (headers: Headers): Record<string, string> => {
  const [etag, modified] = [headers.get('etag'), headers.get('last-modified')]
  return { ...(etag && { 'if-none-match': etag }), ...(modified && { 'if-modified-since': modified }) }
}

/**
 * Returns the milliseconds for which content is used without another request:
 * https://www.rfc-editor.org/rfc/rfc9111#section-4.2.1
 *
 * The minimum is a minute, so that a login seldom waits for a call. The maximum is a day, because a withdrawn
 * key must not be used for longer than a day. If the headers give no lifetime, the content is used for an
 * hour.
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
