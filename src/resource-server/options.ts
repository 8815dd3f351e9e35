import type { JWK } from 'jose'
import type { ClaimPolicy } from './claims.ts'
import { ConfigurationError } from './errors.ts'
import type { Fetch } from './fetch-json.ts'
import { createKeySet, type KeySet } from './key-set.ts'
import { type Keys, parseKeys } from './keys.ts'

/**
 * Options of a verifier. `issuer` is always required. In addition, either `audience` is required, or
 * `resource` together with `realm`. Durations are in seconds.
 */
export type VerifierOptions = {
  /** URL of the server, equal to `iss` of its tokens. */
  issuer: string
  /** The client_ids whose tokens this service accepts. The `aud` of a token must contain one of them. */
  audience?: string | readonly string[] | undefined
  /**
   * Identifier of the API that this service implements. It takes the place of `audience`. Only tokens that
   * were requested with this `resource` are accepted (https://www.rfc-editor.org/rfc/rfc8707). A trailing
   * slash is ignored.
   */
  resource?: string | undefined
  /**
   * Id (not slug) of the only organization whose tokens are accepted. The prefix `org_` is optional. Required
   * with `resource`. Default with `audience`: any organization.
   */
  realm?: string | undefined
  /**
   * Allowed difference between the clocks of the server and this service. Default 5, because the clocks of
   * synchronized machines differ by less than a second.
   */
  clockTolerance?: number
  /**
   * Time for which a fetched key set is used. After 80 % of this time, the next token causes a refresh in the
   * background. Default 600, because a new key signs no token in the first 15 minutes after its publication.
   */
  jwksCacheLifetime?: number
  /**
   * Additional time for which cached keys are used while the issuer is unreachable. Default 3600, so that the
   * service keeps working during an outage of an hour. A longer time has a cost: while the issuer is down, a
   * withdrawn key is still accepted until `jwksCacheLifetime` plus `maxStale` have passed since the last
   * fetch.
   */
  maxStale?: number
  /** Timeout of a key set request. Default 5. */
  jwksTimeout?: number
  /** Claims required in addition to `iss`, `aud`, `sub`, `exp` and `iat`. */
  requiredClaims?: readonly string[]
  /**
   * True when only tokens with `typ: at+jwt` are accepted (https://www.rfc-editor.org/rfc/rfc9068). Default
   * false, because an administrator can configure a client to get plain JWTs (`access_token_typ`).
   */
  strictType?: boolean
  /** URL of the key set. Default `{issuer}/.well-known/jwks.json`. */
  jwksUri?: string
  /** A fixed key set. When it is set, no keys are fetched. */
  keys?: { keys: readonly JWK[] }
  /** Default: the global `fetch`. */
  fetch?: Fetch
  /** Returns the current time in Unix milliseconds. Default `Date.now`. */
  now?: () => number
}

/** Validated options of a verifier, with defaults filled in. */
export type ResolvedOptions = ClaimPolicy & {
  issuer: string
  strictType: boolean
  now: () => number
  keySource: { static: Keys } | { remote: KeySet }
}

/**
 * Validates the options and applies defaults.
 *
 * @throws ConfigurationError naming all problems
 */
export function resolveOptions(options: VerifierOptions): ResolvedOptions {
  const problems: string[] = []
  const check = (ok: boolean, problem: string) => void (ok || problems.push(problem))
  const seconds = (
    name: 'clockTolerance' | 'jwksCacheLifetime' | 'maxStale' | 'jwksTimeout',
    preset: number,
    least = 0,
  ) => {
    const value = options[name] ?? preset
    check(Number.isFinite(value) && value >= least, `${name} must be at least ${least} seconds, got ${value}`)
    return value
  }

  const { issuer, realm, resource, now = Date.now } = options
  const base = `${issuer ?? ''}`.replace(/\/$/, '')
  const audiences = [options.audience ?? []].flat()
  const jwksUri = options.jwksUri ?? `${base}/.well-known/jwks.json`
  check(
    isHttpUrl(base),
    `issuer must be an http(s) URL without query or fragment, got ${JSON.stringify(issuer)}`,
  )
  if (resource === undefined)
    check(
      audiences.length > 0 && audiences.every(value => typeof value === 'string' && value !== ''),
      'audience must contain at least one client_id',
    )
  else {
    check(
      URL.canParse(resource) && !resource.includes('#'),
      `resource must be the identifier of an API, an absolute URI without fragment; got ${JSON.stringify(resource)}`,
    )
    check(options.audience === undefined, 'audience must not be given with resource')
    // An identifier belongs to one API of the instance, but an administrator of any organization can register
    // it first. `resource` alone therefore does not determine the organization of a token.
    check(realm !== undefined, 'realm is required with resource')
  }
  check(realm !== '' && realm !== 'org_', 'realm must be the id of an organization')
  check(
    !options.jwksUri || isHttpUrl(jwksUri),
    `jwksUri must be an http(s) URL, got ${JSON.stringify(jwksUri)}`,
  )
  const fixed = options.keys && parseKeys(options.keys)
  check(!options.keys || (fixed?.length ?? 0) > 0, 'keys must be a JWK Set with a usable public key')
  const keySetOptions = {
    url: jwksUri,
    // The global `fetch` is read at each call, because other code can replace it. It is called without
    // `this`, because Cloudflare Workers refuse a call with an unexpected `this`.
    fetch: options.fetch ?? ((input, init) => fetch(input, init)),
    now,
    lifetime: seconds('jwksCacheLifetime', 600, 1) * 1000,
    maxStale: seconds('maxStale', 3600) * 1000,
    timeout: seconds('jwksTimeout', 5) * 1000,
  } satisfies Parameters<typeof createKeySet>[0]
  const clockTolerance = seconds('clockTolerance', 5)
  if (problems.length > 0) throw new ConfigurationError(problems)

  return {
    issuer: base,
    // Gatehouse's issuer has no trailing slash, but another server's issuer can have a trailing slash. The
    // spelling in the option `issuer` is therefore accepted too.
    issuers: [...new Set([base, issuer])],
    audiences: resource === undefined ? audiences : bothSpellings(resource),
    realm,
    clockTolerance,
    requiredClaims: options.requiredClaims ?? [],
    strictType: options.strictType ?? false,
    now,
    keySource: fixed ? { static: fixed } : { remote: createKeySet(keySetOptions) },
  }
}

/**
 * Returns an identifier with and without its trailing slash, because `aud` has the spelling under which the
 * API is registered.
 */
const bothSpellings = (resource: string) => {
  const bare = resource.replace(/\/$/, '')
  return [bare, `${bare}/`]
}

/** Returns true for an http or https URL without query or fragment. */
export const isHttpUrl = (value: string) => /^https?:[^?#"\\\s]+$/i.test(value) && URL.canParse(value)

/** Environment variables by name, as in `process.env`. */
export type Environment = Readonly<Record<string, string | undefined>>

/**
 * Reads `SERVICE_URL` (issuer), `SERVICE_CLIENT_ID` (audience; commas separate several values) and optionally
 * `SERVICE_REALM` (realm). `SERVICE_RESOURCE` (resource) takes the place of `SERVICE_CLIENT_ID`. It requires
 * `SERVICE_REALM`.
 *
 * @throws ConfigurationError naming all missing variables
 */
export function optionsFromEnv(env: Environment = processEnv()): VerifierOptions {
  const resource = env.SERVICE_RESOURCE?.trim()
  if (resource) {
    const { SERVICE_URL, SERVICE_REALM } = requireEnv(env, ['SERVICE_URL', 'SERVICE_REALM'])
    return { issuer: SERVICE_URL, resource, realm: SERVICE_REALM }
  }
  const { SERVICE_URL, SERVICE_CLIENT_ID } = requireEnv(env, ['SERVICE_URL', 'SERVICE_CLIENT_ID'])
  return {
    issuer: SERVICE_URL,
    audience: SERVICE_CLIENT_ID.split(',')
      .map(id => id.trim())
      .filter(Boolean),
    realm: env.SERVICE_REALM?.trim() || undefined,
  }
}

/**
 * Returns the trimmed values of the variables. Throws a ConfigurationError that names all missing variables.
 */
export function requireEnv<Name extends string>(
  env: Environment,
  names: readonly Name[],
): Record<Name, string> {
  const values = Object.fromEntries(names.map(name => [name, env[name]?.trim() ?? ''])) as Record<
    Name,
    string
  >
  const missing = names.filter(name => !values[name])
  if (missing.length > 0) throw new ConfigurationError(missing.map(name => `${name} is not set`))
  return values
}

/**
 * Returns `process.env` of Bun, Node or Deno, otherwise an empty object. In a Cloudflare Worker, pass the
 * `env` of the handler instead.
 */
export function processEnv(): Environment {
  const { process } = globalThis as { process?: { env?: Environment } }
  return process?.env ?? {}
}
