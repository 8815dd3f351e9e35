/** Guards MCP servers and other protected resources: https://www.rfc-editor.org/rfc/rfc9728 */
import {
  type Answer,
  answerTo,
  authorize,
  type CredentialSource,
  type ResourceChallenge,
  type TokenVerifier,
  toResponse,
} from './access.ts'
import { type Claims, hasAllScopes } from './claims.ts'
import { AccessError, ConfigurationError, InsufficientScopeError } from './errors.ts'
import { isHttpUrl } from './options.ts'

/** Metadata of a protected resource, such as an MCP server, and the scopes that each request needs. */
export type ResourceOptions = {
  /** All of these scopes are required of each request. Default: none. */
  scopes?: readonly string[]
  /** The scopes that clients can request. Leave out `offline_access`. Default: `scopes`. */
  scopesSupported?: readonly string[]
  /** Name of the resource. Clients can show it to users. */
  name?: string
  /** Paths that need no token, such as `/healthz`. They are compared exactly. Default: none. */
  open?: readonly string[]
}

/** A verifier with the option `resource`. */
export type ResourceVerifier = TokenVerifier & {
  readonly issuer: string
  readonly resource?: string | undefined
}

/** Parts of a request that the guard reads. `path` has no query. */
export type ResourceRequest = CredentialSource & { method: string; path: string }

/** Result of the guard: an answer to send, the claims of the request, or undefined for an open path. */
export type Checked =
  | { answer: Answer; claims?: undefined }
  | { claims: Claims; answer?: undefined }
  | undefined

/** The guard of a protected resource. All adapters use it. */
export type Protection = {
  /**
   * Path of the metadata document. Each `WWW-Authenticate` challenge contains its URL:
   * https://www.rfc-editor.org/rfc/rfc9728#section-3.1
   */
  readonly metadataPath: string
  /**
   * All paths of the document. A resource whose path ends with a slash has two: `metadataPath`, and this path
   * with a slash. A resource with the path `/` has only `metadataPath`.
   */
  readonly metadataPaths: readonly string[]
  /**
   * Checks a request. Every path is guarded, except `metadataPaths` and the open paths. Paths are compared
   * exactly, because frameworks accept different spellings of a path.
   */
  check(request: ResourceRequest): Promise<Checked>
  /** Returns the answer to a refusal, with a challenge that names the metadata document. */
  refuse(error: AccessError): Answer
}

const WELL_KNOWN = '/.well-known/oauth-protected-resource'

/**
 * Returns the guard of the verifier's resource.
 *
 * @throws ConfigurationError when the verifier has no http(s) `resource`
 */
export function protection(verifier: ResourceVerifier, options: ResourceOptions = {}): Protection {
  const { issuer, resource = '' } = verifier
  if (!isHttpUrl(resource))
    throw new ConfigurationError(['resource must be the http(s) URL at which clients find the service'])
  const { scopes = [], scopesSupported = scopes, name, open = [] } = options
  const { origin, pathname } = new URL(resource)
  const metadataPath = WELL_KNOWN + pathname.replace(/\/$/, '')
  const isSlashed = pathname.endsWith('/') && pathname !== '/'
  const metadataPaths = isSlashed ? [metadataPath, `${metadataPath}/`] : [metadataPath]
  const challenge: ResourceChallenge = { metadata: origin + metadataPath, scopes }
  const document = {
    resource,
    authorization_servers: [issuer],
    bearer_methods_supported: ['header'],
    ...(scopesSupported.length > 0 && { scopes_supported: scopesSupported }),
    ...(name !== undefined && { resource_name: name }),
  }
  const refuse = (error: AccessError) => answerTo(error, issuer, challenge)
  return {
    metadataPath,
    metadataPaths,
    refuse,
    async check({ method, path, headers }) {
      if (metadataPaths.includes(path)) return { answer: metadata(method, document) }
      if (open.includes(path)) return undefined
      try {
        return { claims: await authorize(verifier, { headers }, { scopes }) }
      } catch (error) {
        if (error instanceof AccessError) return { answer: refuse(error) }
        throw error
      }
    },
  }
}

/** Answers with the metadata document. It is public, so CORS lets pages of every origin read it. */
const metadata = (method: string, document: Answer['body']): Answer => {
  const headers = {
    'access-control-allow-origin': '*',
    'access-control-allow-headers': 'authorization, content-type, mcp-protocol-version',
    'content-type': 'application/json',
  }
  if (method === 'GET' || method === 'HEAD') return { status: 200, headers, body: document }
  if (method === 'OPTIONS') return { status: 200, headers, body: {} }
  return {
    status: 405,
    headers: { ...headers, allow: 'GET, HEAD, OPTIONS' },
    body: { error: 'method_not_allowed' },
  }
}

/**
 * Requires scopes for one operation, such as a tool. After a refusal, an MCP client asks the user to grant
 * the missing scopes.
 *
 * @throws InsufficientScopeError
 */
export function requireScopes(claims: Claims, scopes: readonly string[]): void {
  if (!hasAllScopes(claims, scopes)) throw new InsufficientScopeError(scopes)
}

/**
 * Returns the path of a request. Returns `''`, which is always guarded, in two cases. In the first case, the
 * Host header makes the URL invalid. In the second case, Bun's router has matched another path than the URL
 * shows. The router matches the path as the client sent it, but the URL has the normalized path. For example,
 * `/tools/../healthz` matches `/tools/:name/:more`, although the URL has the path `/healthz`. A route
 * parameter whose value (here `..`) is not a segment of the URL reveals the second case.
 */
export function pathOf(request: Request): string {
  const path = URL.canParse(request.url) ? new URL(request.url).pathname : ''
  const segments = path.split('/')
  const { params = {} } = request as { params?: Record<string, string> }
  return Object.values(params).every(value => segments.includes(value)) ? path : ''
}

/**
 * Guards a fetch handler that is a protected resource, such as an MCP server. Serves the metadata document. A
 * request without a valid token gets a challenge that names this document. An `AccessError` that the handler
 * throws is answered like a refused request. If the handler serves a wildcard route of Bun's router, leave
 * out `open`: the wildcard also matches dot segments, and the URL of the request does not show these.
 *
 * @param handle gets the claims, or undefined for open paths
 * @throws ConfigurationError when the verifier has no http(s) `resource`
 *
 * @example
 * export default { fetch: protect(verifier, mcp, { scopes: ['tools.read'] }) }
 */
export function protect(
  verifier: ResourceVerifier,
  handle: (request: Request, claims: Claims | undefined) => Response | Promise<Response>,
  options?: ResourceOptions,
): (request: Request) => Promise<Response> {
  const { check, refuse } = protection(verifier, options)
  return async request => {
    const { method, headers } = request
    const checked = await check({ method, headers, path: pathOf(request) })
    if (checked?.answer) return toResponse(checked.answer)
    try {
      return await handle(request, checked?.claims)
    } catch (error) {
      if (error instanceof AccessError) return toResponse(refuse(error))
      throw error
    }
  }
}
