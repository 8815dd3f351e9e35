import type { JWK } from 'jose'
import type { ClaimPolicy } from './claims.ts'
import { ConfigurationError } from './errors.ts'
import type { Fetch } from './fetch-json.ts'
import { createKeySet, type KeySet } from './key-set.ts'
import { type Keys, parseKeys } from './keys.ts'

/** All durations in seconds. Only `issuer` and `audience` are required. */
export type VerifierOptions = {
  /** The server's URL, as in the tokens' `iss`. */
  issuer: string
  /** Accepted values of `aud`, one of which has to be there: the client_ids whose tokens this service takes. */
  audience: string | readonly string[]
  /** Accept tokens of one organization only: its id, with or without `org_`, never its slug. */
  realm?: string | undefined
  /** How far the clocks may be apart. Default 5. */
  clockTolerance?: number
  /** How long a fetched key set is used before it is fetched again. Default 600. */
  jwksCacheLifetime?: number
  /** How much longer known keys are used while the issuer is unreachable. Default 3600. */
  maxStale?: number
  /** The time limit of one key set request. Default 5. */
  jwksTimeout?: number
  /** Claims that must be there beside `iss`, `aud`, `sub`, `exp` and `iat`. */
  requiredClaims?: readonly string[]
  /** Accept only tokens whose header says `typ: at+jwt` (RFC 9068). Default false. */
  strictType?: boolean
  /** Where the keys are. Default `{issuer}/.well-known/jwks.json`. */
  jwksUri?: string
  /** A fixed key set instead: nothing is ever fetched. */
  keys?: { keys: readonly JWK[] }
  /** Default: the global `fetch`. */
  fetch?: Fetch
  /** Unix milliseconds. Default `Date.now`. */
  now?: () => number
}

export type ResolvedOptions = ClaimPolicy & {
  issuer: string
  strictType: boolean
  now: () => number
  keySource: { static: Keys } | { remote: KeySet }
}

/** Checks the options and fills in the defaults. Throws a ConfigurationError that names every problem. */
export function resolveOptions(options: VerifierOptions): ResolvedOptions {
  const problems: string[] = []
  const check = (ok: boolean, problem: string) => void (ok || problems.push(problem))
  const seconds = (
    name: 'clockTolerance' | 'jwksCacheLifetime' | 'maxStale' | 'jwksTimeout',
    preset: number,
    least = 0,
  ) => {
    const value = options[name] ?? preset
    check(
      Number.isFinite(value) && value >= least,
      `${name} has to be at least ${least} seconds, got ${value}`,
    )
    return value
  }

  const { issuer, realm, now = Date.now } = options
  const base = `${issuer ?? ''}`.replace(/\/$/, '')
  const audiences = [options.audience ?? []].flat()
  const jwksUri = options.jwksUri ?? `${base}/.well-known/jwks.json`
  check(
    isHttpUrl(base),
    `issuer has to be an http(s) URL without query and fragment, got ${JSON.stringify(issuer)}`,
  )
  check(
    audiences.length > 0 && audiences.every(value => typeof value === 'string' && value !== ''),
    'audience has to name at least one client_id',
  )
  check(realm !== '' && realm !== 'org_', 'realm has to be the id of an organization when it is given')
  check(
    !options.jwksUri || isHttpUrl(jwksUri),
    `jwksUri has to be an http(s) URL, got ${JSON.stringify(jwksUri)}`,
  )
  const fixed = options.keys && parseKeys(options.keys)
  check(!options.keys || (fixed?.length ?? 0) > 0, 'keys has to be a JWK Set with a usable public key')
  const keySetOptions = {
    url: jwksUri,
    // Looked up at each call: the global may be replaced, and has to be called without `this`.
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
    // Gatehouse's issuer has no trailing slash; one in the settings is forgiven, and right for issuers that have it.
    issuers: [...new Set([base, issuer])],
    audiences,
    realm,
    clockTolerance,
    requiredClaims: options.requiredClaims ?? [],
    strictType: options.strictType ?? false,
    now,
    keySource: fixed ? { static: fixed } : { remote: createKeySet(keySetOptions) },
  }
}

export const isHttpUrl = (value: string) => /^https?:[^?#"\\\s]+$/i.test(value) && URL.canParse(value)

export type Environment = Readonly<Record<string, string | undefined>>

/**
 * Reads `SERVICE_URL` (issuer), `SERVICE_CLIENT_ID` (audience; several separated by commas) and, optional,
 * `SERVICE_REALM` (realm). Throws a ConfigurationError that names every variable that is missing.
 */
export function optionsFromEnv(env: Environment = processEnv()): VerifierOptions {
  const { SERVICE_URL, SERVICE_CLIENT_ID } = requireEnv(env, ['SERVICE_URL', 'SERVICE_CLIENT_ID'])
  return {
    issuer: SERVICE_URL,
    audience: SERVICE_CLIENT_ID.split(',')
      .map(id => id.trim())
      .filter(Boolean),
    realm: env.SERVICE_REALM?.trim() || undefined,
  }
}

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

/** Bun, Node and Deno have `process.env`; in a worker pass the `env` of its handler. */
export function processEnv(): Environment {
  const { process } = globalThis as { process?: { env?: Environment } }
  return process?.env ?? {}
}
