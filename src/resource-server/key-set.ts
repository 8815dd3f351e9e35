import { JwksUnavailableError } from './errors.ts'
import { type Fetch, fetchJson } from './fetch-json.ts'
import { findKey, hasKid, type KeyName, type Keys, parseKeys } from './keys.ts'

/** Times in milliseconds. */
export type KeySetOptions = {
  url: string
  fetch: Fetch
  now: () => number
  /** How long a fetched set is fresh. */
  lifetime: number
  /** How much longer known keys are used while the issuer cannot be reached. */
  maxStale: number
  timeout: number
}

export type KeySet = {
  /** Throws unknown_key, algorithm_not_allowed or jwks_unavailable. At once, without a promise, on the hot path. */
  find(name: KeyName): CryptoKey | Promise<CryptoKey>
  /** Fetches the set unless it is fresh. Throws jwks_unavailable. */
  load(): Promise<void>
}

/** From this share of its lifetime on the set is refreshed in the background. */
const REFRESH_FROM = 0.8
const BACKOFF = { first: 1_000, max: 60_000 }
/** Refreshes that unknown kids may cause: two at once, one more each second, so a storm of them delays a new key by no more. */
const FORCED = { burst: 2, each: 1_000 }
/** A kid that was looked for in vain costs no refresh for this long; so many are remembered, none longer than that. */
const BOGUS = { for: 10_000, count: 1_000, length: 256 }

type Failure = { reason: string; cause: unknown; transient: boolean; retryAt: number; wait: number }

/** The last set that was fetched, and how fetching goes. */
function createCache(options: KeySetOptions) {
  const { url, now, lifetime, maxStale, timeout } = options
  let keys: Keys = []
  let loadedAt = Number.NEGATIVE_INFINITY
  let failure: Failure | undefined
  let flight: { done: Promise<void>; startedAt: number } | undefined

  /** A clock that was set back makes the set due for a refresh, not younger. */
  function age(): number {
    const elapsed = now() - loadedAt
    if (elapsed >= 0) return elapsed
    loadedAt = now() - lifetime * REFRESH_FROM
    return lifetime * REFRESH_FROM
  }

  const isFresh = () => age() < lifetime * REFRESH_FROM
  const isUsable = () => age() < lifetime + (failure?.transient ? maxStale : 0)

  function waiting(): number {
    const wait = (failure?.retryAt ?? 0) - now()
    return wait > BACKOFF.max ? 0 : Math.max(0, wait)
  }

  function unavailable() {
    const { reason, cause } = failure ?? { reason: 'not fetched yet' }
    return new JwksUnavailableError(Math.max(1, Math.ceil(waiting() / 1000)), `${url}: ${reason}`, cause)
  }

  /** The request under way; one that outlived its time limit (its worker was frozen) is given up. */
  const running = () => (flight && Math.abs(now() - flight.startedAt) <= timeout ? flight.done : undefined)

  function refresh(): Promise<void> {
    const joined = running()
    if (joined) return joined
    const done: Promise<void> = fetchKeys().finally(() => {
      if (flight?.done === done) flight = undefined
    })
    flight = { done, startedAt: now() }
    return done
  }

  /** Never rejects: how it went is in `failure`. */
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

  /** Only silence and error statuses let known keys live on: an issuer that answers nonsense is not merely down. */
  function fail(reason: string, transient: boolean, cause?: unknown) {
    const wait = failure ? Math.min(failure.wait * 2, BACKOFF.max) : BACKOFF.first
    failure = { reason, cause, transient, wait, retryAt: now() + wait }
  }

  async function load(): Promise<void> {
    if (isFresh()) return
    const refreshed = waiting() > 0 ? undefined : refresh()
    if (!isUsable()) await refreshed
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

/** Bounds the refreshes that unknown kids cause. */
function createLimit(now: () => number) {
  const forced = { tokens: FORCED.burst, at: now() }
  const bogus = new Map<string, number>()

  function wasBogus(kid: string): boolean {
    const elapsed = now() - (bogus.get(kid) ?? Number.NEGATIVE_INFINITY)
    return elapsed >= 0 && elapsed < BOGUS.for
  }

  function rememberBogus(kid: string) {
    bogus.delete(kid)
    bogus.set(kid, now())
    const [oldest] = bogus.keys()
    if (bogus.size > BOGUS.count && oldest !== undefined) bogus.delete(oldest)
  }

  function takeForced(): boolean {
    const elapsed = now() - forced.at
    // A clock that was set back tells nothing about the time that passed: it counts as one wait.
    forced.tokens = Math.min(FORCED.burst, forced.tokens + (elapsed < 0 ? 1 : elapsed / FORCED.each))
    forced.at = now()
    if (forced.tokens < 1) return false
    forced.tokens--
    return true
  }

  return { wasBogus, rememberBogus, takeForced }
}

export function createKeySet(options: KeySetOptions): KeySet {
  const cache = createCache(options)
  const { wasBogus, rememberBogus, takeForced } = createLimit(options.now)
  const knows = (kid: string) => hasKid(cache.keys(), kid)

  async function findUnknown(kid: string): Promise<void> {
    if (kid.length > BOGUS.length || wasBogus(kid)) return
    // Began before this token came, so it may have missed the key: only a later one proves the kid bogus.
    await cache.running()
    if (knows(kid)) return
    if (cache.waiting() > 0) throw cache.unavailable()
    if (!cache.running() && !takeForced()) return
    await cache.refresh()
    if (cache.hasFailed()) throw cache.unavailable()
    if (!knows(kid)) rememberBogus(kid)
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
