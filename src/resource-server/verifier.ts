import {
  answerTo,
  authorize,
  type ClaimsFor,
  type CredentialSource,
  findHandler,
  type Handlers,
  type Rules,
  type TokenVerifier,
  toResponse,
} from './access.ts'
import { type Claims, parseClaims } from './claims.ts'
import { AccessError, TokenTypeError } from './errors.ts'
import { verifyJws } from './jws.ts'
import {
  type Environment,
  optionsFromEnv,
  type ResolvedOptions,
  resolveOptions,
  type VerifierOptions,
} from './options.ts'

/** Result of `guard`: claims, or the response to send. */
export type Guarded<C> =
  | { claims: C; response?: undefined; error?: undefined }
  | { claims?: undefined; response: Response; error: AccessError }

/** Rules of the route and custom answers. */
export type GuardOptions = Rules & Handlers<[request: Request], Response | Promise<Response>>

/** Verifies access tokens of one issuer for one audience. */
export type Verifier = TokenVerifier & {
  /** The issuer without trailing slash. */
  readonly issuer: string
  /** Identifier of the API that the service implements. Undefined for a verifier with `audience`. */
  readonly resource?: string | undefined
  /**
   * Returns the claims of the bearer token in the Authorization header.
   *
   * @throws AccessError, including `token_missing`
   */
  authenticate(request: CredentialSource): Promise<Claims>
  /**
   * Verifies a request and returns claims or the response to send: `const { claims, response } = await
   * guard(request, …); if (response) return response`.
   */
  guard<R extends GuardOptions = Record<never, never>>(
    request: Request,
    options?: R,
  ): Promise<Guarded<ClaimsFor<R>>>
  /**
   * Fetches the key set before the first request.
   *
   * @throws JwksUnavailableError
   */
  warmup(): Promise<void>
}

/**
 * Creates a verifier for one issuer. Create one verifier at the start of the application and use it for all
 * requests, because it caches the key set.
 *
 * @param options issuer, and either audience, or resource together with realm; options.ts explains the
 *   defaults
 * @returns the verifier; `warmup` or the first token causes the first request to the issuer
 * @throws ConfigurationError naming all problems
 *
 * @example
 * const verifier = createVerifier({ issuer: 'https://id.example.com', audience: 'my-client-id' })
 * const { claims, response } = await verifier.guard(request, { scopes: ['orders:read'] })
 * if (response) return response
 */
export function createVerifier(options: VerifierOptions): Verifier {
  const settings = resolveOptions(options)
  const verify = (token: string) => verifyToken(token, settings)
  return {
    issuer: settings.issuer,
    resource: options.resource,
    verify,
    authenticate: request => authorize({ verify }, request),
    async guard(request, rules) {
      try {
        return { claims: await authorize({ verify }, request, rules) }
      } catch (error) {
        if (!(error instanceof AccessError)) throw error
        const handler = findHandler(error, rules)
        const response = handler
          ? await handler(error, request)
          : toResponse(answerTo(error, settings.issuer))
        return { response, error }
      }
    },
    warmup: async () => void ('remote' in settings.keySource && (await settings.keySource.remote.load())),
  }
}

/**
 * Creates a verifier from environment variables. Reads `SERVICE_URL`, `SERVICE_CLIENT_ID` (commas separate
 * several values) and optionally `SERVICE_REALM`. If `SERVICE_RESOURCE` is set, reads `SERVICE_URL`,
 * `SERVICE_RESOURCE` and `SERVICE_REALM`.
 *
 * @param options options that take precedence over the variables; they do not replace a required variable
 * @param env variables to read; default: those of the process
 * @throws ConfigurationError naming all missing variables
 *
 * @example
 * const verifier = fromEnv()
 */
export const fromEnv = (options: Partial<VerifierOptions> = {}, env?: Environment): Verifier =>
  createVerifier({ ...optionsFromEnv(env), ...options })

async function verifyToken(token: string, settings: ResolvedOptions): Promise<Claims> {
  let typ: string | undefined
  const payload = await verifyJws(token, settings, header => {
    typ = parseType(header, settings.strictType)
  })
  return parseClaims(payload, typ, settings, settings.now() / 1000)
}

/**
 * Returns `typ`. Throws for the type of another kind of token. If `strict` is false, a plain JWT passes,
 * because an administrator can configure a client to get access tokens of this type (`access_token_typ`). ID
 * tokens also have this type; `requireAccessToken` in claims.ts refuses them.
 */
function parseType(name: unknown, strict: boolean): string | undefined {
  if (name === 'at+jwt' || (!strict && (name === 'jwt' || name === undefined))) return name
  throw new TokenTypeError(`its header says typ ${JSON.stringify(name)}, expected "at+jwt"`)
}
