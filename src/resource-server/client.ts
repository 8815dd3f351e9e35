import { isObject } from './claims.ts'
import { ConfigurationError } from './errors.ts'
import { type Fetch, fetchJson } from './fetch-json.ts'
import { type Environment, isHttpUrl, processEnv, requireEnv } from './options.ts'

export type ServiceClientOptions = {
  /** The server's URL. */
  issuer: string
  clientId: string
  clientSecret: string
  /** What to ask for; all that the client may have when empty or left out. */
  scopes?: readonly string[]
  /** How the secret travels. Default `client_secret_post`, which the server takes from every confidential client. */
  authMethod?: 'client_secret_post' | 'client_secret_basic'
  /** Default `{issuer}/oauth/token`. */
  tokenEndpoint?: string
  /** Seconds one token request may take. Default 5. */
  timeout?: number
  /** Where tokens are kept, by issuer, client and scopes. Share one map among clients to share their tokens. */
  cache?: Map<string, CachedToken>
  /** Default: the global `fetch`. */
  fetch?: Fetch
  /** Unix milliseconds. Default `Date.now`. */
  now?: () => number
}

export type ServiceClient = {
  /** A valid access token for these scopes (default: those of the options). Throws a TokenRequestError. */
  getToken(scopes?: readonly string[]): Promise<string>
  /** `fetch` with the token in the Authorization header; a 401 drops the token and is tried once more with a new one. */
  fetch(input: string | URL | Request, init?: RequestInit & { scopes?: readonly string[] }): Promise<Response>
}

/** Times in Unix milliseconds. */
export type CachedToken = { token: string; expiresAt: number; renewAt: number }

/** The token endpoint refused (`code` is its OAuth error) or cannot be used (`token_endpoint_unavailable`). */
export class TokenRequestError extends Error {
  readonly code: string
  /** The HTTP status; undefined when there was no answer. */
  readonly status: number | undefined

  constructor(code: string, status: number | undefined, detail: string, cause?: unknown) {
    super(`No access token (${code}): ${detail}`, cause === undefined ? {} : { cause })
    this.name = new.target.name
    this.code = code
    this.status = status
  }
}

/** Tokens are renewed this long before they expire, or a tenth of their life when that is more… */
const RENEW_BEFORE = 60_000
/** …earlier by up to this share of that time, so that many instances do not ask at once. */
const JITTER = 0.1
/** After a failed renewal the token at hand is used for this long before the next attempt. */
const RETRY_AFTER = 10_000

/**
 * Tokens for a service that calls others in its own name (client credentials, RFC 6749 section 4.4): cached, renewed in
 * the background, one request at a time for each set of scopes. Make one at start and share it.
 */
export function createServiceClient(options: ServiceClientOptions): ServiceClient {
  const { clientId, now = Date.now, cache = new Map<string, CachedToken>() } = options
  const issuer = `${options.issuer ?? ''}`.replace(/\/$/, '')
  const url = options.tokenEndpoint ?? `${issuer}/oauth/token`
  const send: Fetch = options.fetch ?? ((input, init) => fetch(input, init))
  const renewals = new Map<string, Promise<CachedToken>>()
  const problems = [
    isHttpUrl(url) ? '' : `issuer has to be an http(s) URL, got ${JSON.stringify(options.issuer)}`,
    clientId ? '' : 'clientId is missing',
    options.clientSecret ? '' : 'clientSecret is missing',
  ].filter(Boolean)
  if (problems.length > 0) throw new ConfigurationError(problems)

  const scopeOf = (scopes: readonly string[] = options.scopes ?? []) => [...new Set(scopes)].sort().join(' ')
  const keyOf = (scope: string) => JSON.stringify([issuer, clientId, scope])

  async function find(scope: string): Promise<CachedToken> {
    const key = keyOf(scope)
    const cached = cache.get(key)
    if (!cached || cached.expiresAt <= now()) return renew(key, scope)
    if (cached.renewAt <= now()) {
      cached.renewAt = now() + RETRY_AFTER
      renew(key, scope).catch(() => {})
    }
    return cached
  }

  function renew(key: string, scope: string): Promise<CachedToken> {
    const running = renewals.get(key)
    if (running) return running
    const renewal = requestToken(options, { url, send, scope })
      .then(token => {
        cache.set(key, token)
        return token
      })
      .finally(() => renewals.delete(key))
    renewals.set(key, renewal)
    return renewal
  }

  return {
    getToken: async scopes => (await find(scopeOf(scopes))).token,
    async fetch(input, { scopes, ...init } = {}) {
      const original = new Request(input, init)
      const scope = scopeOf(scopes)
      const attempt = async (request: Request, { token }: CachedToken) => {
        request.headers.set('authorization', `Bearer ${token}`)
        return send(request)
      }
      const cached = await find(scope)
      const response = await attempt(original.clone(), cached)
      if (response.status !== 401) return response
      await response.body?.cancel()
      // Another call may have renewed it meanwhile.
      if (cache.get(keyOf(scope))?.token === cached.token) cache.delete(keyOf(scope))
      return attempt(original, await find(scope))
    },
  }
}

/** One token from the endpoint at `url`. */
async function requestToken(
  options: ServiceClientOptions,
  { url, send, scope }: { url: string; send: Fetch; scope: string },
): Promise<CachedToken> {
  const { now = Date.now, timeout = 5 } = options
  const askedAt = now()
  const { response, body } = await fetchJson(send, url, timeout * 1000, {
    method: 'POST',
    ...tokenRequest(options, scope),
  }).catch(cause => {
    throw new TokenRequestError('token_endpoint_unavailable', undefined, `${url} cannot be reached`, cause)
  })
  const answer = isObject(body) ? body : {}
  if (response.status !== 200) {
    const { error = 'token_endpoint_unavailable', error_description = `${url} answered ${response.status}` } =
      answer
    throw new TokenRequestError(`${error}`, response.status, `${error_description}`)
  }
  const { access_token, token_type, expires_in } = answer
  if (typeof access_token !== 'string' || `${token_type}`.toLowerCase() !== 'bearer') {
    throw new TokenRequestError('token_endpoint_unavailable', 200, `${url} answered without a bearer token`)
  }
  // Without expires_in the token is used once: nobody knows for how long it would be good.
  const life = typeof expires_in === 'number' && expires_in > 0 ? expires_in * 1000 : 0
  const lead = Math.max(RENEW_BEFORE, life / 10) * (1 + JITTER * Math.random())
  // A token that lives for less than two minutes is renewed at half of its life, not at each call.
  return {
    token: access_token,
    expiresAt: askedAt + life,
    renewAt: askedAt + life - Math.min(lead, life / 2),
  }
}

/** A client set up by `SERVICE_URL`, `SERVICE_CLIENT_ID` and `SERVICE_CLIENT_SECRET`; `options` adds to them. */
export function clientFromEnv(options: Partial<ServiceClientOptions> = {}, env: Environment = processEnv()) {
  const names = ['SERVICE_URL', 'SERVICE_CLIENT_ID', 'SERVICE_CLIENT_SECRET'] as const
  const variables = requireEnv(env, names)
  return createServiceClient({
    issuer: variables.SERVICE_URL,
    clientId: variables.SERVICE_CLIENT_ID,
    clientSecret: variables.SERVICE_CLIENT_SECRET,
    ...options,
  })
}

function tokenRequest({ authMethod, clientId, clientSecret }: ServiceClientOptions, scope: string) {
  const form = new URLSearchParams({ grant_type: 'client_credentials', ...(scope ? { scope } : {}) })
  const headers: Record<string, string> = { 'content-type': 'application/x-www-form-urlencoded' }
  if (authMethod === 'client_secret_basic') {
    headers.authorization = `Basic ${btoa(`${formEncode(clientId)}:${formEncode(clientSecret)}`)}`
  } else {
    form.set('client_id', clientId)
    form.set('client_secret', clientSecret)
  }
  return { headers, body: form.toString() }
}

/** RFC 6749 section 2.3.1 and its appendix B. */
const formEncode = (value: string) => new URLSearchParams([['', value]]).toString().slice(1)
