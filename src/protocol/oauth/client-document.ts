import { assertionAlgs, readKeySet } from './client-keys.ts'
import { parseRegistration, type Registration } from './dynamic-client.ts'
import { DOCUMENT_DYNAMIC } from './dynamic-id.ts'
import { OAuthError } from './error.ts'

/**
 * Maximum characters of a client_id that names a metadata document. Such an id is stored with each session
 * and sent in each token. Published ids have fewer than 100 characters.
 */
export const MAX_DOCUMENT_ID = 512

/**
 * True when the client_id can be the URL of a metadata document. Such a URL has the scheme https and a path.
 * It has no user name, no fragment and no dot segments. The text itself is checked, because a URL parser
 * would normalize it.
 * https://datatracker.ietf.org/doc/html/draft-ietf-oauth-client-id-metadata-document#section-3
 */
export const isDocumentId = (client_id: string): boolean => {
  if (!client_id.startsWith(DOCUMENT_DYNAMIC) || client_id.length > MAX_DOCUMENT_ID) return false
  const [, path] = /^https:\/\/[\w.:[\]-]+(\/[\w.~:/?[\]@!$&'()*+,;=%-]*)$/.exec(client_id) ?? []
  if (path === undefined || !URL.canParse(client_id)) return false
  const segments = path.replace(/\?.*/, '').split('/')
  return !segments.some(segment => /^(?:\.|%2e){1,2}$/i.test(segment))
}

const invalid = (text: string) => new OAuthError('invalid_client_metadata', text)

type Keys = Pick<Registration, 'jwks' | 'jwks_uri' | 'token_endpoint_auth_signing_alg'>

/** Reads the keys of a document, or the URL of its key set, and the algorithm of the client's assertions. */
const readKeys = (document: object): Keys => {
  const [jwks, jwks_uri]: unknown[] = [Reflect.get(document, 'jwks'), Reflect.get(document, 'jwks_uri')]
  if (jwks !== undefined && jwks_uri !== undefined)
    throw invalid('The document must not contain both jwks and jwks_uri.')
  if (jwks_uri !== undefined && !(typeof jwks_uri === 'string' && isDocumentId(jwks_uri)))
    throw invalid(`jwks_uri must be an https URL with a path and at most ${MAX_DOCUMENT_ID} characters.`)
  const alg = assertionAlgs.find(known => known === Reflect.get(document, 'token_endpoint_auth_signing_alg'))
  return {
    ...(jwks !== undefined && { jwks: readKeySet(jwks) }),
    ...(jwks_uri !== undefined && { jwks_uri }),
    ...(alg && { token_endpoint_auth_signing_alg: alg }),
  }
}

type Methods = Pick<Registration, 'token_endpoint_auth_method' | 'token_endpoint_auth_methods_supported'>

/**
 * Reads the authentication methods of the client. A document may list several methods:
 * https://openid.net/specs/openid-connect-rp-metadata-choices-1_0.html
 */
const readMethods = (document: object, keys: Keys): Methods => {
  const method: unknown = Reflect.get(document, 'token_endpoint_auth_method') ?? 'none'
  const others: unknown = Reflect.get(document, 'token_endpoint_auth_methods_supported')
  const listed = [method, ...(Array.isArray(others) ? others : [])]
  const hasKeys = (keys.jwks ?? keys.jwks_uri) !== undefined
  const isAlgKnown =
    Object.hasOwn(document, 'token_endpoint_auth_signing_alg') ===
    Object.hasOwn(keys, 'token_endpoint_auth_signing_alg')
  const provesKey = listed.includes('private_key_jwt') && hasKeys && isAlgKnown
  const isKnown = method === 'none' || method === 'private_key_jwt'
  if (isKnown && provesKey && listed.includes('none'))
    return {
      token_endpoint_auth_method: 'none',
      token_endpoint_auth_methods_supported: ['none', 'private_key_jwt'],
    }
  if (isKnown && provesKey) return { token_endpoint_auth_method: 'private_key_jwt' }
  if (isKnown && listed.includes('none')) return { token_endpoint_auth_method: 'none' }
  throw invalid(
    `The document must allow the method none, or the method private_key_jwt with keys (jwks or jwks_uri). The supported algorithms are ${assertionAlgs.join(', ')}.`,
  )
}

/**
 * Reads the metadata document of a client. The member `client_id` must be the URL of the document. Members
 * that are not used here, such as `scope`, are ignored. Grants and response types that a dynamic client
 * cannot have are ignored too.
 * https://datatracker.ietf.org/doc/html/draft-ietf-oauth-client-id-metadata-document#section-4
 *
 * @param client_id the URL of the document
 * @throws OAuthError `invalid_redirect_uri`, `invalid_client_metadata`
 */
export const parseDocument = (document: unknown, client_id: string): Registration => {
  if (typeof document !== 'object' || document === null) throw invalid('The document must be a JSON object.')
  if (Reflect.get(document, 'client_id') !== client_id)
    throw invalid('The client_id of the document must be the URL of the document.')
  // Anyone can read the document, so a secret in it would prove nothing.
  if (Object.keys(document).some(member => member.startsWith('client_secret')))
    throw invalid('The document must not contain a secret.')
  const keys = readKeys(document)
  const methods = readMethods(document, keys)
  const { redirect_uris, client_name, grant_types, response_types } = document as Record<string, unknown>
  const registration = parseRegistration(
    { redirect_uris, client_name, grant_types, response_types, token_endpoint_auth_method: 'none' },
    () => false,
  )
  return { ...registration, ...methods, ...keys }
}

/** Returns the members whose change makes an earlier consent invalid. */
const consented = ({ redirect_uris, client_name, grant_types, ...keys }: Registration) => [
  [...redirect_uris].sort(),
  keys,
]

/**
 * True when a changed document makes earlier consents invalid. After a change of the redirect URIs, the keys,
 * their algorithm or the authentication methods, the tokens may go to another program. After a change of the
 * name or the grant types, consents stay valid, because the tokens go to the same program.
 */
export const asksAgain = (before: Registration, now: Registration): boolean =>
  !Bun.deepEquals(consented(before), consented(now))
