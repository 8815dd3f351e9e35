import { isObject } from './claims.ts'
import { ConfigurationError } from './errors.ts'
import { cancelsAtEnd, type Fetch, fetchJson } from './fetch-json.ts'
import { type Environment, isHttpUrl, processEnv, requireEnv } from './options.ts'

/** Options of `createServiceClient`: the issuer and the credentials of a confidential client. */
export type ServiceClientOptions = {
  /** The server's URL. */
  issuer: string
  clientId: string
  clientSecret: string
  /** Scopes to request. When empty or undefined, the request is for all scopes of the client. */
  scopes?: readonly string[]
  /**
   * Identifier of the API for which the tokens are (https://www.rfc-editor.org/rfc/rfc8707). Without it, the
   * audience of a token is the client.
   */
  resource?: string
  /**
   * Method of client authentication. Default `client_secret_post`, which the server accepts from every
   * confidential client.
   */
  authMethod?: 'client_secret_post' | 'client_secret_basic'
  /** Default `{issuer}/oauth/token`. */
  tokenEndpoint?: string
  /** Timeout of a token request in seconds. Default 5. */
  timeout?: number
  /** Cache of tokens by issuer, client, resource and scopes. Clients with the same map share their tokens. */
  cache?: Map<string, CachedToken>
  /** Default: the global `fetch`. */
  fetch?: Fetch
  /** Returns the current time in Unix milliseconds. Default `Date.now`. */
  now?: () => number
}

/** Gets access tokens by client credentials, caches them, and renews them shortly before they expire. */
export type ServiceClient = {
  /**
   * Returns a valid access token for these scopes. The default is the scopes of the options.
   *
   * @throws TokenRequestError
   */
  getToken(scopes?: readonly string[]): Promise<string>
  /**
   * Calls `fetch` with the token in the Authorization header. After a 401 it repeats the request once with a
   * new token, because the server may have revoked the cached token or withdrawn its key.
   *
   * @throws TokenRequestError
   */
  fetch(input: string | URL | Request, init?: RequestInit & { scopes?: readonly string[] }): Promise<Response>
}

/** A token and its times in Unix milliseconds. */
export type CachedToken = { token: string; expiresAt: number; renewAt: number }

/**
 * The token endpoint issued no token. `code` is the OAuth error that the endpoint returned. It is
 * `token_endpoint_unavailable` when the endpoint could not be reached, or when its answer has neither a token
 * nor an OAuth error.
 */
export class TokenRequestError extends Error {
  readonly code: string
  /** The HTTP status. Undefined when there was no answer. */
  readonly status: number | undefined

  constructor(code: string, status: number | undefined, detail: string, cause?: unknown) {
    super(`No access token (${code}): ${detail}`, cause === undefined ? {} : { cause })
    this.name = new.target.name
    this.code = code
    this.status = status
  }
}

/**
 * Minimum time in milliseconds between the renewal of a token and its expiry, so that a token does not expire
 * during the request in which it is sent. A token that is valid for less than two minutes is renewed closer
 * to its expiry.
 */
const RENEW_BEFORE = 60_000
/**
 * Maximum fraction by which the time between renewal and expiry is lengthened. The fraction is random, so
 * that many instances do not renew their tokens at the same time.
 */
const JITTER = 0.1
/**
 * Milliseconds between two attempts to renew a token, so that a failing endpoint does not get a request for
 * each call. The current token remains in use.
 */
const RETRY_AFTER = 10_000

/**
 * Creates a client for a service that calls other services on its own behalf (client credentials,
 * https://www.rfc-editor.org/rfc/rfc6749#section-4.4). Tokens are cached and renewed in the background. At
 * most one token request runs at a time for each set of scopes. Runtimes that cancel pending calls at the end
 * of a request, such as Cloudflare Workers, are an exception: each call of this client awaits only its own
 * token request, so parallel calls may each send one. Create one client at start and share it.
 *
 * @param options issuer, client id and secret; all other options have a default
 * @returns the client; no request is sent to the issuer yet
 * @throws ConfigurationError that names all problems
 *
 * @example
 * const client = createServiceClient({ issuer: 'https://id.example.com', clientId: 'billing', clientSecret })
 * const response = await client.fetch('https://orders.example.com/orders', { scopes: ['orders:read'] })
 */
export function createServiceClient(options: ServiceClientOptions): ServiceClient {
  const { clientId, resource, now = Date.now, cache = new Map<string, CachedToken>() } = options
  const issuer = `${options.issuer ?? ''}`.replace(/\/$/, '')
  const url = options.tokenEndpoint ?? `${issuer}/oauth/token`
  const source = options.tokenEndpoint === undefined ? 'issuer' : 'tokenEndpoint'
  const send: Fetch = options.fetch ?? ((input, init) => fetch(input, init))
  const renewals = new Map<string, Promise<CachedToken>>()
  const cancels = cancelsAtEnd()
  const problems = [
    isHttpUrl(url) ? '' : `${source} must be an http(s) URL, got ${JSON.stringify(options[source])}`,
    clientId ? '' : 'clientId is missing',
    options.clientSecret ? '' : 'clientSecret is missing',
  ].filter(Boolean)
  if (problems.length > 0) throw new ConfigurationError(problems)

  const scopeOf = (scopes: readonly string[] = options.scopes ?? []) => [...new Set(scopes)].sort().join(' ')
  const keyOf = (scope: string) => JSON.stringify([issuer, clientId, resource, scope])

  async function find(scope: string): Promise<CachedToken> {
    const key = keyOf(scope)
    const cached = cache.get(key)
    if (!cached || cached.expiresAt <= now()) return renew(key, scope)
    if (cached.renewAt <= now()) {
      cached.renewAt = now() + RETRY_AFTER
      const renewed = renew(key, scope).catch(() => cached)
      if (cancels) return renewed
    }
    return cached
  }

  function renew(key: string, scope: string): Promise<CachedToken> {
    const running = renewals.get(key)
    if (running && !cancels) return running
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
      // When a concurrent call has already replaced the token, the new token stays cached.
      if (cache.get(keyOf(scope))?.token === cached.token) cache.delete(keyOf(scope))
      return attempt(original, await find(scope))
    },
  }
}

/** Requests one token from `url`. */
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
  // Without expires_in the lifetime is unknown, so the token counts as expired for all later calls.
  const life = typeof expires_in === 'number' && expires_in > 0 ? expires_in * 1000 : 0
  const lead = Math.max(RENEW_BEFORE, life / 10) * (1 + JITTER * Math.random())
  // A token that is valid for less than two minutes is renewed after half of its lifetime, not at each call.
  return {
    token: access_token,
    expiresAt: askedAt + life,
    renewAt: askedAt + life - Math.min(lead, life / 2),
  }
}

/**
 * Creates a service client configured by `SERVICE_URL`, `SERVICE_CLIENT_ID` and `SERVICE_CLIENT_SECRET`.
 *
 * @param options options that take precedence over the variables; the three variables must be set even then
 * @param env variables to read; default: the variables of the process
 * @throws ConfigurationError that names all missing variables
 */
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

function tokenRequest({ authMethod, clientId, clientSecret, resource }: ServiceClientOptions, scope: string) {
  const form = new URLSearchParams({
    grant_type: 'client_credentials',
    ...(scope && { scope }),
    ...(resource !== undefined && { resource }),
  })
  const headers: Record<string, string> = { 'content-type': 'application/x-www-form-urlencoded' }
  if (authMethod === 'client_secret_basic') {
    headers.authorization = `Basic ${btoa(`${formEncode(clientId)}:${formEncode(clientSecret)}`)}`
  } else {
    form.set('client_id', clientId)
    form.set('client_secret', clientSecret)
  }
  return { headers, body: form.toString() }
}

/**
 * Encodes a part of Basic credentials: https://www.rfc-editor.org/rfc/rfc6749#section-2.3.1 and appendix B.
 */
const formEncode = (value: string) => new URLSearchParams([['', value]]).toString().slice(1)
