import { isObject, parseObject, parseRegisteredClaims, required, requiredString } from './claims.ts'
import {
  AccessError,
  ClaimInvalidError,
  ClaimMissingError,
  type ErrorCode,
  TokenTypeError,
} from './errors.ts'
import { MAX_FORM, readText } from './fetch-json.ts'
import { verifyJws } from './jws.ts'
import { type ResolvedOptions, resolveOptions, type VerifierOptions } from './options.ts'

/** Claims of a verified logout token. They say which sessions end. */
export type LogoutClaims = {
  /** The user, as in ID tokens. Without `sid` all sessions of the user end. */
  sub: string | undefined
  /** The session, as in ID tokens. */
  sid: string | undefined
  jti: string
  iss: string
  aud: string | readonly string[]
  /** Unix seconds. */
  exp: number
  /** Unix seconds. */
  iat: number
  /** The complete payload. */
  raw: Readonly<Record<string, unknown>>
}

/** Stores received tokens until they expire. All processes of an application must use the same store. */
export type SeenTokens = {
  /** Stores a key until the given time in Unix seconds. Returns false when the key is already stored. */
  add(key: string, expiresAt: number): boolean | Promise<boolean>
}

/** Options of `createLogoutReceiver`; `issuer`, `audience` and `onLogout` are required. */
export type LogoutOptions = Pick<
  VerifierOptions,
  | 'issuer'
  | 'clockTolerance'
  | 'jwksCacheLifetime'
  | 'maxStale'
  | 'jwksTimeout'
  | 'jwksUri'
  | 'keys'
  | 'fetch'
  | 'now'
> & {
  /** The `client_id` of this application, or an array of several. */
  audience: string | readonly string[]
  /**
   * Ends the sessions. The function can be called twice for the same logout, because the server repeats a
   * logout that was not confirmed. When the function throws, the server tries again later.
   */
  onLogout: (claims: LogoutClaims) => unknown
  /** Receives the reason of each refusal, for your log. */
  onRefused?: (error: LogoutTokenError) => void
  /**
   * Default: the memory of this process, for 10,000 tokens. When it is full, a new token replaces the oldest.
   */
  seen?: SeenTokens
}

/** Receives the logout tokens of one issuer for one application. */
export type LogoutReceiver = {
  /**
   * Returns the claims of a logout token. A token that was received before is refused, because an attacker
   * could have recorded it.
   *
   * @throws LogoutTokenError
   */
  verify(token: string): Promise<LogoutClaims>
  /**
   * Verifies the token of a request, calls `onLogout` and returns the answer. The status is 200 after
   * success, 400 for a refused token, and 503 when the keys are unavailable. An error of `onLogout` is thrown
   * unchanged.
   */
  handle(request: Request): Promise<Response>
  /**
   * Does the same as `handle` for a form. Use it in frameworks that have no `Request`.
   *
   * @param form the body as text, as bytes or as an object of its fields
   */
  receive(form: unknown): Promise<LogoutAnswer>
}

/** The answer to Gatehouse's request. */
export type LogoutAnswer = {
  status: 200 | 400 | 503
  headers: Record<string, string>
  /** `''`, or JSON. */
  body: string
}

/** Stable codes of the reasons for which a logout token is refused. */
export type LogoutErrorCode = Exclude<ErrorCode, 'forbidden' | 'insufficient_scope'> | 'token_replayed'

const DESCRIPTIONS: Record<LogoutErrorCode, string> = {
  token_missing: 'The form must have exactly one field logout_token',
  token_malformed: 'The logout token is malformed',
  token_type: 'The token is not a logout token',
  algorithm_not_allowed: 'The signature algorithm of the logout token is not accepted',
  unknown_key: 'The logout token is signed with an unknown key',
  token_expired: 'The logout token has expired',
  token_not_yet_valid: 'The logout token is not valid yet',
  invalid_signature: 'The signature of the logout token is invalid',
  claim_missing: 'The logout token lacks a claim',
  claim_invalid: 'A claim of the logout token is not accepted',
  token_replayed: 'The logout token was received before',
  jwks_unavailable: 'The keys of the token issuer are unavailable',
}

/**
 * The reason why a logout token is refused. `description` is a fixed text. `message` has more details and is
 * meant for your log.
 */
export class LogoutTokenError extends Error {
  readonly code: LogoutErrorCode
  /** The missing or refused claim. */
  readonly claim: string | undefined
  readonly description: string

  constructor(code: LogoutErrorCode, cause?: AccessError & { claim?: string }) {
    const description = DESCRIPTIONS[code]
    // The description of the cause speaks of an access token. Its message is the description and the detail.
    const detail = cause?.message.slice(cause.description.length + 2)
    const reason = [cause?.claim, detail].filter(Boolean).join(': ')
    super(reason ? `${description} (${reason})` : description, { cause })
    this.name = new.target.name
    this.code = code
    this.claim = cause?.claim
    this.description = description
  }
}

const EVENT = 'http://schemas.openid.net/event/backchannel-logout'
/**
 * Maximum number of tokens in memory. Only verified tokens are stored, so that strangers cannot fill the
 * memory.
 */
const MAX_SEEN = 10_000

/**
 * Creates a receiver of logout tokens
 * (https://openid.net/specs/openid-connect-backchannel-1_0.html#Validation). Create one receiver at the start
 * of the application and use it for all requests. The receiver caches the key set and stores the tokens that
 * it has received.
 *
 * @param options issuer, audience and `onLogout`; everything else has a default
 * @returns the receiver; its creation sends no request to the issuer
 * @throws ConfigurationError naming all problems
 *
 * @example
 * const logout = createLogoutReceiver({
 *   issuer: 'https://id.example.com',
 *   audience: 'my-client-id',
 *   onLogout: ({ sid, sub }) => sessions.end({ sid, sub }),
 * })
 * // in the handler of POST /backchannel-logout:
 * return logout.handle(request)
 */
export function createLogoutReceiver(options: LogoutOptions): LogoutReceiver {
  const { onLogout, onRefused, ...rest } = options
  const settings = resolveOptions(rest)
  const seen = options.seen ?? createSeenTokens(settings.now)

  async function verify(token: string): Promise<LogoutClaims> {
    try {
      const payload = await verifyJws(token, settings, requireType)
      const claims = parseLogout(parseObject(payload), settings)
      // For each attempt the server signs a new token with the same `jti` and a new `iat`. Only `jti` and
      // `iat` together identify a token.
      if (await seen.add(`${claims.jti} ${claims.iat}`, claims.exp + settings.clockTolerance)) return claims
    } catch (error) {
      if (!(error instanceof AccessError)) throw error
      throw new LogoutTokenError(error.code as LogoutErrorCode, error)
    }
    throw new LogoutTokenError('token_replayed')
  }

  async function receive(form: unknown): Promise<LogoutAnswer> {
    try {
      await onLogout(await verify(tokenOf(form)))
      return { status: 200, headers: { 'cache-control': 'no-store' }, body: '' }
    } catch (error) {
      if (!(error instanceof LogoutTokenError)) throw error
      onRefused?.(error)
      return refusal(error)
    }
  }

  return {
    verify,
    receive,
    async handle(request) {
      const { body, ...init } = await receive(await readText(request, MAX_FORM))
      return new Response(body || null, init)
    },
  }
}

/**
 * Returns the answer to a refused token:
 * https://openid.net/specs/openid-connect-backchannel-1_0.html#BCResponse
 */
function refusal({ code, description, cause }: LogoutTokenError): LogoutAnswer {
  const isUnavailable = code === 'jwks_unavailable'
  const headers: Record<string, string> = { 'cache-control': 'no-store', 'content-type': 'application/json' }
  if (isUnavailable) headers['retry-after'] = `${(cause as { retryAfter: number }).retryAfter}`
  const error = isUnavailable ? 'temporarily_unavailable' : 'invalid_request'
  const body = JSON.stringify({ error, error_description: description, code })
  return { status: isUnavailable ? 503 : 400, headers, body }
}

/**
 * Returns the logout token of a form. The form is a text, its bytes, or an object of the fields that a
 * framework has parsed. Returns `''` when the form has no token or several tokens.
 */
function tokenOf(form: unknown): string {
  const body = form instanceof ArrayBuffer || ArrayBuffer.isView(form) ? new TextDecoder().decode(form) : form
  const values =
    typeof body === 'string'
      ? new URLSearchParams(body).getAll('logout_token')
      : [isObject(body) ? body.logout_token : undefined]
  return values.length === 1 && typeof values[0] === 'string' ? values[0] : ''
}

function requireType(typ: unknown) {
  if (typ !== 'logout+jwt')
    throw new TokenTypeError(`its header says typ ${JSON.stringify(typ)}, expected "logout+jwt"`)
}

function parseLogout(raw: Record<string, unknown>, settings: ResolvedOptions): LogoutClaims {
  if ('nonce' in raw) throw new ClaimInvalidError('nonce', 'only ID tokens have it')
  const registered = parseRegisteredClaims(raw, settings, settings.now() / 1000)
  const events = required(raw, 'events')
  if (!isObject(events) || !isObject(events[EVENT]))
    throw new ClaimInvalidError('events', `expected ${EVENT}`)
  const jti = requiredString(raw, 'jti')
  const [sub, sid] = ['sub', 'sid'].map(name => (name in raw ? requiredString(raw, name) : undefined))
  if (sub === undefined && sid === undefined) throw new ClaimMissingError('sub')
  return { sub, sid, jti, ...registered, raw }
}

/**
 * Returns a store in memory. All tokens of one issuer have the same lifetime. The oldest tokens therefore
 * expire first and are removed first.
 */
function createSeenTokens(now: () => number): SeenTokens {
  const tokens = new Map<string, number>()
  return {
    add(key, expiresAt) {
      if (tokens.has(key)) return false
      for (const [oldest, end] of tokens) {
        if (end > now() / 1000 && tokens.size < MAX_SEEN) break
        tokens.delete(oldest)
      }
      tokens.set(key, expiresAt)
      return true
    },
  }
}
