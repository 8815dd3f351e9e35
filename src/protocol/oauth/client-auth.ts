import { OAuthError } from './error.ts'
import { decodeForm, requireParameter } from './parameters.ts'

export const clientAuthMethods = ['client_secret_basic', 'client_secret_post', 'none'] as const
export type ClientAuthMethod = (typeof clientAuthMethods)[number]

/** Client identification presented by a request, not verified. */
export type PresentedClient =
  | { readonly method: 'none'; readonly client_id: string; readonly client_secret: undefined }
  | {
      readonly method: Exclude<ClientAuthMethod, 'none'>
      readonly client_id: string
      readonly client_secret: string
    }

/**
 * Reads client credentials from the Authorization header and the form. Returns undefined when the request
 * identifies no client.
 *
 * @throws OAuthError `invalid_client` for an unreadable header, `invalid_request` for two methods at once
 */
export const parseClientAuth = (
  authorization: string | null | undefined,
  form: ReadonlyMap<string, string>,
): PresentedClient | undefined => {
  const client_id = form.get('client_id')
  const client_secret = form.get('client_secret')
  if (authorization != null) {
    const presented = parseBasic(authorization)
    if (client_secret !== undefined || (client_id !== undefined && client_id !== presented.client_id))
      throw new OAuthError('invalid_request', 'The client must use one authentication method only.')
    return presented
  }
  if (client_secret !== undefined)
    return { method: 'client_secret_post', client_id: requireParameter(form, 'client_id'), client_secret }
  return client_id === undefined ? undefined : { method: 'none', client_id, client_secret: undefined }
}

/**
 * Parses a Basic header. Both parts are form-urlencoded before they are joined:
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
 * Checks the method: a public client has no secret; a confidential one sends it in the form, or in the header
 * when registered for that. The caller compares the secret.
 *
 * @throws OAuthError `invalid_client`
 */
export const checkMethod = (
  client: { readonly type: 'confidential' | 'public'; readonly token_endpoint_auth_method: ClientAuthMethod },
  presented: PresentedClient,
): void => {
  const isAllowed =
    client.type === 'public'
      ? presented.method === 'none'
      : presented.method === 'client_secret_post' ||
        (presented.method === 'client_secret_basic' && client.token_endpoint_auth_method === presented.method)
  if (!isAllowed) throw new OAuthError('invalid_client')
}
