import { hash } from 'node:crypto'
import { parseRegistration, type Registration } from './dynamic-client.ts'
import { DOCUMENT_DYNAMIC } from './dynamic-id.ts'
import { OAuthError } from './error.ts'

/** Longest client_id that may name a metadata document. */
export const MAX_DOCUMENT_ID = 512

/**
 * True when the client_id may be the URL of a metadata document: https, with a path, without user name,
 * fragment and dot segments. The text is compared as it is, so that nothing is normalized.
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

const privateMembers = ['d', 'p', 'q', 'dp', 'dq', 'qi', 'oth', 'k']

/** Returns a hash of the keys that a document names, or undefined; secret ones are refused. */
const readKeys = (document: object): string | undefined => {
  const [jwks, jwks_uri]: unknown[] = [Reflect.get(document, 'jwks'), Reflect.get(document, 'jwks_uri')]
  if (jwks === undefined && jwks_uri === undefined) return undefined
  const keys: unknown = jwks && Reflect.get(Object(jwks), 'keys')
  const isSecret = (key: unknown) => privateMembers.some(member => Object.hasOwn(Object(key), member))
  if (Array.isArray(keys) && keys.some(isSecret)) throw invalid('jwks must hold public keys only.')
  return hash('sha256', JSON.stringify([jwks, jwks_uri]), 'base64url')
}

/** True for a client that has no secret and need not prove a key. */
const isPublic = (document: object): boolean => {
  const method: unknown = Reflect.get(document, 'token_endpoint_auth_method')
  const others: unknown = Reflect.get(document, 'token_endpoint_auth_methods_supported')
  return (
    method === undefined ||
    method === 'none' ||
    (method === 'private_key_jwt' && Array.isArray(others) && others.includes('none'))
  )
}

/**
 * Reads the metadata document of a public client, which names itself. Unknown members, and grants that such a
 * client cannot have, are left out, not refused.
 * https://datatracker.ietf.org/doc/html/draft-ietf-oauth-client-id-metadata-document#section-4
 *
 * @param client_id the URL of the document
 * @throws OAuthError `invalid_redirect_uri`, `invalid_client_metadata`
 */
export const parseDocument = (document: unknown, client_id: string): Registration => {
  if (typeof document !== 'object' || document === null) throw invalid('The document must be a JSON object.')
  if (Reflect.get(document, 'client_id') !== client_id)
    throw invalid('The client_id of the document must be its URL.')
  if (Object.keys(document).some(member => member.startsWith('client_secret')))
    throw invalid('The document must not hold a secret.')
  if (!isPublic(document)) throw invalid('The client must be able to use the method none.')
  const keys = readKeys(document)
  const { redirect_uris, client_name, grant_types, response_types } = document as Record<string, unknown>
  const registration = parseRegistration(
    { redirect_uris, client_name, grant_types, response_types, token_endpoint_auth_method: 'none' },
    () => false,
  )
  return { ...registration, ...(keys && { keys }) }
}

/** True when a changed document needs a new consent: its keys or redirect URIs differ. */
export const asksAgain = (before: Registration, now: Registration): boolean =>
  before.keys !== now.keys || !Bun.deepEquals([...before.redirect_uris].sort(), [...now.redirect_uris].sort())
