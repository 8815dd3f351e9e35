import type { ClientKeys } from './client-keys.ts'
import { OAuthError } from './error.ts'
import { decodeForm, requireParameter } from './parameters.ts'

export const clientAuthMethods = ['client_secret_basic', 'client_secret_post', 'none'] as const
export type ClientAuthMethod = (typeof clientAuthMethods)[number]

/** The client identification that a request presents, before it is verified. */
export type PresentedClient =
  | {
      readonly method: 'private_key_jwt'
      readonly client_id: string
      readonly client_secret: undefined
      readonly client_assertion: string
    }
  | { readonly method: 'none'; readonly client_id: string; readonly client_secret: undefined }
  | {
      readonly method: 'client_secret_basic' | 'client_secret_post'
      readonly client_id: string
      readonly client_secret: string
    }

/**
 * Reads client credentials from the Authorization header and the form. Returns undefined when the request
 * identifies no client.
 *
 * @throws OAuthError `invalid_client` when the header is unreadable, the assertion type is missing or
 * unknown, or the assertion is unreadable or contradicts `client_id`
 * @throws OAuthError `invalid_request` when a request uses two methods, the header contradicts `client_id`,
 * or a `client_secret` comes without `client_id`
 */
export const parseClientAuth = (
  authorization: string | null | undefined,
  form: ReadonlyMap<string, string>,
): PresentedClient | undefined => {
  const client_id = form.get('client_id')
  const client_secret = form.get('client_secret')
  const isAsserted = form.has('client_assertion') || form.has('client_assertion_type')
  const methods = [authorization != null, client_secret !== undefined, isAsserted].filter(Boolean)
  if (methods.length > 1) throw severalMethods()
  if (isAsserted) return parseAssertion(form)
  if (authorization != null) {
    const presented = parseBasic(authorization)
    if (client_id !== undefined && client_id !== presented.client_id) throw severalMethods()
    return presented
  }
  if (client_secret !== undefined)
    return { method: 'client_secret_post', client_id: requireParameter(form, 'client_id'), client_secret }
  return client_id === undefined ? undefined : { method: 'none', client_id, client_secret: undefined }
}

const severalMethods = () =>
  new OAuthError('invalid_request', 'The client must use one authentication method only.')

const ASSERTION_TYPE = 'urn:ietf:params:oauth:client-assertion-type:jwt-bearer'
/** Maximum characters of an assertion. An assertion has six short claims and a signature. */
const MAX_ASSERTION = 8192

/**
 * Reads a client assertion, whose `sub` is the client_id: https://www.rfc-editor.org/rfc/rfc7523#section-3
 *
 * @throws OAuthError `invalid_client`
 */
const parseAssertion = (form: ReadonlyMap<string, string>): PresentedClient => {
  const client_assertion = form.get('client_assertion') ?? ''
  if (form.get('client_assertion_type') !== ASSERTION_TYPE)
    throw new OAuthError('invalid_client', `client_assertion_type must be ${ASSERTION_TYPE}.`)
  const client_id = subjectOf(client_assertion)
  if (client_id === undefined || (form.get('client_id') ?? client_id) !== client_id)
    throw new OAuthError('invalid_client', 'The sub of client_assertion must be the client_id.')
  return { method: 'private_key_jwt', client_id, client_secret: undefined, client_assertion }
}

const subjectOf = (jwt: string): string | undefined => {
  if (jwt.length > MAX_ASSERTION) return undefined
  try {
    const claims: unknown = JSON.parse(Buffer.from(jwt.split('.')[1] ?? '', 'base64url').toString())
    const sub: unknown = Reflect.get(Object(claims), 'sub')
    // NUL is refused, because PostgreSQL cannot store it. U+FFFD is refused, because decoders put it in place
    // of invalid UTF-8. A lone surrogate is refused, because UTF-8 cannot encode it. JSON can contain a lone
    // surrogate as an escape.
    return typeof sub === 'string' && sub.isWellFormed() && !/[\0\ufffd]/.test(sub) ? sub : undefined
  } catch {
    return undefined
  }
}

/**
 * Parses a Basic header. The client form-urlencodes its id and its secret before it joins the two:
 * https://www.rfc-editor.org/rfc/rfc6749#section-2.3.1
 */
const parseBasic = (authorization: string): PresentedClient => {
  const encoded = /^basic +([A-Za-z0-9+/]+={0,2})$/i.exec(authorization)?.[1]
  if (encoded === undefined || encoded.length % 4 !== 0) throw new OAuthError('invalid_client')
  const pair = Buffer.from(encoded, 'base64').toString()
  const colon = pair.indexOf(':')
  const client_id = decodeForm(pair.slice(0, Math.max(colon, 0)))
  const client_secret = decodeForm(pair.slice(colon + 1))
  if (!client_id || client_secret === undefined || /[\0\ufffd]/.test(client_id + client_secret))
    throw new OAuthError('invalid_client')
  return { method: 'client_secret_basic', client_id, client_secret }
}

/**
 * Checks that the client may use the presented method. A public client sends no secret. A confidential client
 * sends its secret in the form. A client that is registered for `client_secret_basic` may also send its
 * secret in the header. A client with keys may send an assertion. The caller verifies the secret or the
 * assertion.
 *
 * @throws OAuthError `invalid_client`
 */
export const checkMethod = (
  client: {
    readonly type: 'confidential' | 'public'
    readonly token_endpoint_auth_method: ClientAuthMethod
    readonly keys?: ClientKeys
  },
  presented: PresentedClient,
): void => {
  const isAllowed =
    presented.method === 'private_key_jwt'
      ? client.keys !== undefined
      : client.type === 'public'
        ? presented.method === 'none'
        : presented.method === 'client_secret_post' ||
          (presented.method === 'client_secret_basic' &&
            client.token_endpoint_auth_method === presented.method)
  if (!isAllowed) throw new OAuthError('invalid_client')
}
