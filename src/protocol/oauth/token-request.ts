import { OAuthError } from './error.ts'
import { parseParameters, requireParameter } from './parameters.ts'
import { readResources } from './resource.ts'
import { parseScope } from './scope.ts'

/**
 * Grants of the token endpoint. The password grant is not supported, because the client would see the user's
 * password (https://www.rfc-editor.org/rfc/rfc9700#section-2.4). The device grant is not supported, because a
 * person can be led to approve the device of a stranger (https://www.rfc-editor.org/rfc/rfc8628#section-5.4).
 * Token exchange is not supported, because a service that is broken into could get tokens for other services.
 */
export const grantTypes = ['authorization_code', 'refresh_token', 'client_credentials'] as const
export type GrantType = (typeof grantTypes)[number]

/**
 * The parameters of a token request, except the client's credentials. `scopes` and `resource` are undefined
 * when the request has no such parameter.
 */
export type TokenRequest = { readonly resource: string | undefined } & (
  | {
      readonly grant_type: 'authorization_code'
      readonly code: string
      readonly redirect_uri: string
      readonly code_verifier: string
    }
  | {
      readonly grant_type: 'refresh_token'
      readonly refresh_token: string
      readonly scopes: readonly string[] | undefined
    }
  | { readonly grant_type: 'client_credentials'; readonly scopes: readonly string[] | undefined }
)
type Parsed = TokenRequest extends infer R ? (R extends unknown ? Omit<R, 'resource'> : never) : never

type Form = ReadonlyMap<string, string>

const readScopes = (form: Form) => {
  const scope = form.get('scope')
  return scope === undefined ? undefined : parseScope(scope)
}

const parsers = new Map<string, (form: Form) => Parsed>([
  [
    'authorization_code',
    form => ({
      grant_type: 'authorization_code',
      code: requireParameter(form, 'code'),
      redirect_uri: requireParameter(form, 'redirect_uri'),
      code_verifier: requireParameter(form, 'code_verifier'),
    }),
  ],
  [
    'refresh_token',
    form => ({
      grant_type: 'refresh_token',
      refresh_token: requireParameter(form, 'refresh_token'),
      scopes: readScopes(form),
    }),
  ],
  ['client_credentials', form => ({ grant_type: 'client_credentials', scopes: readScopes(form) })],
])

/**
 * Parses a token request.
 *
 * @throws OAuthError `invalid_request`, `unsupported_grant_type`, `invalid_scope` or `invalid_target`
 */
export const parseTokenRequest = (form: Form): TokenRequest => {
  const parse = parsers.get(requireParameter(form, 'grant_type'))
  if (parse === undefined) throw new OAuthError('unsupported_grant_type')
  const [resource, ...others] = readResources(form)
  if (others.length > 0)
    throw new OAuthError(
      'invalid_target',
      'A token is for one resource; the request names several resources.',
    )
  return { ...parse(form), resource } as TokenRequest
}

/** Every parameter that the token endpoint reads. */
const tokenParameters = [
  'grant_type',
  'client_id',
  'client_secret',
  'client_assertion',
  'client_assertion_type',
  'code',
  'code_verifier',
  'redirect_uri',
  'refresh_token',
  'scope',
  'resource',
]

/**
 * Checks that the query (raw, without `?`) has no parameter of a token request, because URLs end up in logs
 * (https://www.rfc-editor.org/rfc/rfc6749#section-2.3.1). Other parameters are ignored
 * (https://www.rfc-editor.org/rfc/rfc6749#section-3.2), such as the `client-request-id` of MSAL.
 *
 * @throws OAuthError `invalid_request`
 */
export const checkTokenQuery = (query: string): void => {
  const { values, irregular } = parseParameters(query)
  if (tokenParameters.some(name => values.has(name) || irregular.has(name)))
    throw new OAuthError('invalid_request', 'Send the parameters in the body, not in the URL.')
}

/**
 * Checks that the client may use the grant.
 *
 * @throws OAuthError `unauthorized_client`
 */
export const checkGrantType = (
  client: { readonly grant_types: readonly string[] },
  grantType: GrantType,
): void => {
  if (!client.grant_types.includes(grantType)) throw new OAuthError('unauthorized_client')
}
