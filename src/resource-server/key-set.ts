import { JwksUnavailableError } from './errors.ts'
import { cancelsAtEnd, type Fetch, fetchJson } from './fetch-json.ts'
import { findKey, hasKid, type KeyName, type Keys, parseKeys } from './keys.ts'

/** Options of a remote key set. All times are in milliseconds. */
export type KeySetOptions = {
  url: string
  fetch: Fetch
  now: () => number
  /**
   * Time for which a fetched set is used. A refresh begins when the fraction `REFRESH_FROM` of it has passed.
   */
  lifetime: number
  /** Additional time for which cached keys are used while the issuer is unreachable. */
  maxStale: number
  timeout: number
}

/** A remote key set, cached in memory. */
export type KeySet = {
  /**
   * Returns the key for a header. A key that was used before is returned without a promise, because most
   * calls need no fetch and must be fast.
   *
   * @throws UnknownKeyError, AlgorithmNotAllowedError, JwksUnavailableError
   */
  find(name: KeyName): CryptoKey | Promise<CryptoKey>
  /**
   * Starts a refresh when the cached set is not fresh. After a failed attempt, starts no refresh until the
   * pause is over. Waits for the refresh only when no usable set is cached, or when the runtime would cancel
   * the refresh at the end of the request.
   *
   * @throws JwksUnavailableError
   */
  load(): Promise<void>
}

/** Share of the lifetime after which the set is refreshed in the background, so that no request waits. */
const REFRESH_FROM = 0.8
/**
 * Milliseconds between attempts to reach an issuer that does not answer. The pause starts at `first` and
 * doubles up to `max`. A short first pause suits a restart, and long pauses suit an outage.
 */
const BACKOFF = { first: 1_000, max: 60_000 }
/**
 * Limit of refreshes for unknown kids: `burst` refreshes at once, and later one refresh every `each`
 * milliseconds. Many tokens with unknown kids can therefore delay the fetch of a new key by at most `each`.
 */
const UNKNOWN_REFRESH = { burst: 2, each: 1_000 }
/**
 * A kid that a refresh has not found causes no further refresh for 10 s (`for`). A forged token that is sent
 * often therefore causes few refreshes. At most `count` kids of at most `length` characters are stored.
 */
const UNKNOWN_KIDS = { for: 10_000, count: 1_000, length: 256 }

/**
 * A failed refresh. After a `transient` failure the cached keys stay in use, so that services keep working
 * during a short outage of the issuer.
 */
type Failure = { reason: string; cause: unknown; transient: boolean; retryAt: number; wait: number }

/**
 * Returns the milliseconds until the next attempt. A pause that is longer than the maximum is over: the clock
 * was set back after the pause began.
 */
function pauseAfter(failure: Failure | undefined, now: number): number {
  const wait = (failure?.retryAt ?? 0) - now
  return wait > BACKOFF.max ? 0 : Math.max(0, wait)
}

/**
 * Returns a cache that holds the fetched set, the age of the set and the last failure. The function
 * `createRemoteJWKSet` of jose is not used. It keeps no stale keys during an outage, and does not limit the
 * refreshes of parallel requests.
 */
function createCache(options: KeySetOptions) {
  const { url, now, lifetime, maxStale, timeout } = options
  let keys: Keys = []
  let loadedAt = Number.NEGATIVE_INFINITY
  let failure: Failure | undefined
  let pending: { done: Promise<void>; startedAt: number } | undefined
  const cancels = cancelsAtEnd()

  /** Returns the age of the set. If the clock was set back, returns the age at which a refresh is due. */
  function age(): number {
    const elapsed = now() - loadedAt
    if (elapsed >= 0) return elapsed
    loadedAt = now() - lifetime * REFRESH_FROM
    return lifetime * REFRESH_FROM
  }

  const isFresh = () => age() < lifetime * REFRESH_FROM
  const isUsable = () => age() < lifetime + (failure?.transient ? maxStale : 0)
  const waiting = () => pauseAfter(failure, now())

  function unavailable() {
    const { reason, cause } = failure ?? { reason: 'not fetched yet' }
    return new JwksUnavailableError(Math.max(1, Math.ceil(waiting() / 1000)), `${url}: ${reason}`, cause)
  }

  /** True while a request younger than `timeout` is in flight. An older one was suspended with its worker. */
  const isRefreshing = () => pending !== undefined && Math.abs(now() - pending.startedAt) <= timeout
  const running = () => (isRefreshing() && !cancels ? pending?.done : undefined)

  function refresh(): Promise<void> {
    const joined = running()
    if (joined) return joined
    const done: Promise<void> = fetchKeys().finally(() => {
      if (pending?.done === done) pending = undefined
    })
    pending = { done, startedAt: now() }
    return done
  }

  /** Fetches the set. The promise never rejects. A failed attempt is stored in `failure`. */
  async function fetchKeys(): Promise<void> {
    try {
      const { response, body } = await fetchJson(options.fetch, url, timeout)
      if (response.status !== 200) return fail(`it answered ${response.status}`, true)
      const parsed = parseKeys(body)
      if (!parsed) return fail('the answer is not a JWK Set of at most 1 MiB', false)
      keys = parsed
      loadedAt = now()
      failure = undefined
    } catch (cause) {
      fail('it cannot be reached', true, cause)
    }
  }

  /** Stores a failure. Cached keys stay usable after network errors and error statuses (`transient`). */
  function fail(reason: string, transient: boolean, cause?: unknown) {
    // Parallel attempts that fail count as one.
    if (waiting() > 0) return
    const wait = failure ? Math.min(failure.wait * 2, BACKOFF.max) : BACKOFF.first
    failure = { reason, cause, transient, wait, retryAt: now() + wait }
  }

  async function load(): Promise<void> {
    if (isFresh() || (isUsable() && isRefreshing())) return
    const refreshed = waiting() > 0 ? undefined : refresh()
    if (cancels || !isUsable()) await refreshed
    if (!isUsable()) throw unavailable()
  }

  return {
    load,
    refresh,
    running,
    waiting,
    unavailable,
    keys: () => keys,
    isFresh,
    hasFailed: () => failure !== undefined,
  }
}

/** Returns the state that limits refreshes for unknown kids. */
function createLimit(now: () => number) {
  const forced = { tokens: UNKNOWN_REFRESH.burst, at: now() }
  const unknownKids = new Map<string, number>()

  function isKnownMissing(kid: string): boolean {
    const elapsed = now() - (unknownKids.get(kid) ?? Number.NEGATIVE_INFINITY)
    return elapsed >= 0 && elapsed < UNKNOWN_KIDS.for
  }

  function rememberMissing(kid: string) {
    unknownKids.delete(kid)
    unknownKids.set(kid, now())
    const [oldest] = unknownKids.keys()
    if (unknownKids.size > UNKNOWN_KIDS.count && oldest !== undefined) unknownKids.delete(oldest)
  }

  function takeForced(): boolean {
    const elapsed = now() - forced.at
    // If the clock was set back, the elapsed time is unknown and counts as `UNKNOWN_REFRESH.each`.
    forced.tokens = Math.min(
      UNKNOWN_REFRESH.burst,
      forced.tokens + (elapsed < 0 ? 1 : elapsed / UNKNOWN_REFRESH.each),
    )
    forced.at = now()
    if (forced.tokens < 1) return false
    forced.tokens--
    return true
  }

  return { isKnownMissing, rememberMissing, takeForced }
}

/** Returns a cache of a remote key set. */
export function createKeySet(options: KeySetOptions): KeySet {
  const cache = createCache(options)
  const { isKnownMissing, rememberMissing, takeForced } = createLimit(options.now)
  const knows = (kid: string) => hasKid(cache.keys(), kid)

  async function findUnknown(kid: string): Promise<void> {
    if (kid.length > UNKNOWN_KIDS.length || isKnownMissing(kid)) return
    // A refresh in flight may have begun before the key was published. Only a later refresh proves that the
    // kid is unknown.
    await cache.running()
    if (knows(kid)) return
    if (cache.waiting() > 0) throw cache.unavailable()
    if (!cache.running() && !takeForced()) return
    await cache.refresh()
    if (cache.hasFailed()) throw cache.unavailable()
    if (!knows(kid)) rememberMissing(kid)
  }

  async function findSlowly(name: KeyName): Promise<CryptoKey> {
    await cache.load()
    if (name.kid !== undefined && !knows(name.kid)) await findUnknown(name.kid)
    return findKey(cache.keys(), name)
  }

  return {
    load: cache.load,
    find(name) {
      const atOnce = cache.isFresh() && (name.kid === undefined || knows(name.kid))
      return atOnce ? findKey(cache.keys(), name) : findSlowly(name)
    },
  }
}
