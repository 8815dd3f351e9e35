import type { JSONWebKeySet } from 'jose'
import { isLine } from '#src/lib/text.ts'
import type { AssertionAlg, ClientKeys } from './client-keys.ts'
import { OAuthError } from './error.ts'
import { checkRegistrable } from './redirect-uri.ts'
import { parseScope } from './scope.ts'

/**
 * Scopes that a dynamic client may ask for, in addition to the scopes of APIs that are open to it. Anyone may
 * register a client, so this list has no scope of the admin API.
 */
export const dynamicScopes: readonly string[] = ['openid', 'profile', 'email', 'groups', 'offline_access']

const methods = ['none', 'client_secret_basic', 'client_secret_post'] as const
const grants = ['authorization_code', 'refresh_token'] as const
const applicationTypes = ['web', 'native'] as const

/**
 * Maximum URIs of a registration. The limit is low, because anyone may register a client. Published clients
 * list only a handful of URIs.
 */
const MAX_URIS = 10
/** Maximum characters of a name, so that it takes at most two lines of the consent page. */
const MAX_NAME = 128

/**
 * Metadata of a client as registered: https://www.rfc-editor.org/rfc/rfc7591#section-2. An optional member is
 * absent when the request leaves it out. Members that this server does not use are always absent.
 */
export type Registration = {
  readonly redirect_uris: readonly string[]
  readonly token_endpoint_auth_method: (typeof methods)[number] | 'private_key_jwt'
  readonly grant_types: readonly (typeof grants)[number][]
  readonly client_name?: string
  readonly scope?: string
  readonly application_type?: (typeof applicationTypes)[number]
  /**
   * Set when a metadata document allows both `none` and `private_key_jwt`. In this case
   * `token_endpoint_auth_method` is `none`.
   */
  readonly token_endpoint_auth_methods_supported?: readonly ['none', 'private_key_jwt']
  /** Only a metadata document sets this member and the next two members. */
  readonly jwks?: JSONWebKeySet
  readonly jwks_uri?: string
  readonly token_endpoint_auth_signing_alg?: AssertionAlg
}

/**
 * Returns the keys with which the client may sign assertions. Returns undefined when the client has no keys
 * or may not use assertions.
 */
export const keysOf = ({
  token_endpoint_auth_method: method,
  token_endpoint_auth_methods_supported: methods,
  token_endpoint_auth_signing_alg: alg,
  jwks,
  jwks_uri,
}: Registration): ClientKeys | undefined => {
  const source = jwks ? { jwks } : jwks_uri !== undefined && { jwks_uri }
  if (!source || (method !== 'private_key_jwt' && !methods)) return undefined
  return { is_required: !methods, alg, source }
}

const invalid = (text: string) => new OAuthError('invalid_client_metadata', text)

/**
 * Returns a member that is a string. An empty string counts as absent, because some clients send empty
 * strings for members that they do not use.
 */
const readText = (body: object, name: string, maxLength: number): string | undefined => {
  const value: unknown = Reflect.get(body, name)
  if (value === undefined || value === '') return undefined
  if (typeof value === 'string' && value.length <= maxLength && isLine(value)) return value
  throw invalid(`${name} must be one line of at most ${maxLength} characters.`)
}

const readOneOf = <T extends string>(body: object, name: string, allowed: readonly T[]): T | undefined => {
  const value = readText(body, name, MAX_NAME)
  const found = allowed.find(each => each === value)
  if (found === undefined && value !== undefined) throw invalid(`${name} must be ${allowed.join(' or ')}.`)
  return found
}

const readTexts = (body: object, name: string): readonly string[] | undefined => {
  const value: unknown = Reflect.get(body, name)
  if (value === undefined) return undefined
  if (Array.isArray(value) && value.length <= 100 && value.every(item => typeof item === 'string'))
    return value
  throw invalid(`${name} must be a list of strings.`)
}

const readRedirectUris = (body: object): readonly string[] => {
  const uris = [...new Set(readTexts(body, 'redirect_uris'))]
  if (uris.length === 0 || uris.length > MAX_URIS)
    throw new OAuthError('invalid_redirect_uri', `redirect_uris must list 1 to ${MAX_URIS} URIs.`)
  for (const [i, uri] of uris.entries()) {
    const problem = checkRegistrable(uri, 'any_scheme')
    if (problem) throw new OAuthError('invalid_redirect_uri', `redirect_uris[${i}] ${problem}.`)
  }
  return uris
}

/**
 * Reads a registration request. Grants and response types that a dynamic client cannot have are ignored,
 * because clients list everything that they support. The answer lists the grants and response types that are
 * registered.
 *
 * @param mayAsk returns true for a scope that a dynamic client may get
 * @throws OAuthError `invalid_redirect_uri` or `invalid_client_metadata`
 * (https://www.rfc-editor.org/rfc/rfc7591#section-3.2.2), and `invalid_scope` for a malformed `scope`
 */
export const parseRegistration = (body: unknown, mayAsk: (scope: string) => boolean): Registration => {
  if (typeof body !== 'object' || body === null || Array.isArray(body))
    throw invalid('The request body must be a JSON object.')
  const redirect_uris = readRedirectUris(body)
  const wanted = readTexts(body, 'grant_types') ?? ['authorization_code']
  const grant_types = grants.filter(grant => wanted.includes(grant))
  // A dynamic client gets tokens for users only, so it must be able to exchange a code.
  if (!grant_types.includes('authorization_code'))
    throw invalid('grant_types must contain authorization_code.')
  if (readTexts(body, 'response_types')?.includes('code') === false)
    throw invalid('response_types must contain code.')
  const client_name = readText(body, 'client_name', MAX_NAME)
  const asked = readText(body, 'scope', 4096)
  const scope = asked && parseScope(asked).filter(mayAsk).join(' ')
  const application_type = readOneOf(body, 'application_type', applicationTypes)
  return {
    redirect_uris,
    token_endpoint_auth_method:
      readOneOf(body, 'token_endpoint_auth_method', methods) ?? 'client_secret_basic',
    grant_types,
    ...(client_name && { client_name }),
    ...(scope && { scope }),
    ...(application_type && { application_type }),
  }
}
