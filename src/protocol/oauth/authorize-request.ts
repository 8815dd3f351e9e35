import { isLine } from '#src/lib/text.ts'
import { isDynamic, isUnowned, type Origin } from './dynamic-id.ts'
import { OAuthError, type OAuthErrorCode } from './error.ts'
import {
  checkRegular,
  invalidParameter,
  type ParameterMap,
  requireParameter,
  requireRegular,
} from './parameters.ts'
import { readChallenge } from './pkce.ts'
import { isRedirectOf, usesPrivateScheme } from './redirect-uri.ts'
import { scopesAt, type TargetApi } from './resource.ts'
import { defaultScopes, grantKnownScopes, grantScopes, parseScope } from './scope.ts'

export const promptValues = ['none', 'login', 'consent', 'select_account'] as const
export type Prompt = (typeof promptValues)[number]

/**
 * Response modes in which a code can be sent. `fragment` is missing, because that mode is for response types
 * that return tokens: https://openid.net/specs/oauth-v2-multiple-response-types-1_0.html#ResponseModes
 */
export const responseModes = ['query', 'form_post'] as const

/** Properties of the registered client that the validation uses. */
export type AuthorizeClient = Origin & {
  readonly redirect_uris: readonly string[]
  readonly grant_types: readonly string[]
  readonly scopes: readonly string[]
  readonly capabilities: readonly string[]
  readonly organization_id: string
}

/**
 * Destination of the answer, which is a code or an error. The answer is in the query when `response_mode` is
 * undefined.
 */
export type AuthorizeTarget = {
  readonly redirect_uri: string
  readonly state: string | undefined
  readonly response_mode: 'form_post' | undefined
}

/**
 * A validated authorization request as plain JSON. `scopes` are the requested scopes that the client may
 * have, or `openid` for a request without `scope`. `max_age` is in seconds. `organization_id` is never empty.
 * `id_token_hint` is not verified yet. `any_organization` is true when the client has the capability
 * `cross_organization`, and the request has no parameter `organization_id`, `resource` or `id_token_hint`. In
 * this case the field `organization_id` is only a default.
 */
export type AuthorizeRequest = AuthorizeTarget & {
  readonly response_type: 'code'
  readonly client_id: string
  readonly scopes: readonly string[]
  /** Registered identifiers of the APIs that the request names. Absent when the request names no API. */
  readonly resources?: readonly string[]
  readonly code_challenge: string
  readonly organization_id: string
  readonly any_organization: boolean
  readonly prompts: readonly Prompt[]
  readonly ui_locales: readonly string[]
  readonly acr_values: readonly string[]
  readonly nonce: string | undefined
  readonly login_hint: string | undefined
  readonly max_age: number | undefined
  readonly id_token_hint: string | undefined
}

/**
 * First step of validation: reads the client_id.
 *
 * @throws OAuthError `invalid_request`, to be shown as a page
 */
export const parseClientId = (parameters: ParameterMap): string => requireRegular(parameters, 'client_id')

/**
 * Second step of validation: reads the redirect URI, the state and the response mode. The third step refuses
 * a response mode that cannot be used, and sends the error in the query.
 *
 * @throws OAuthError `invalid_request`, to be shown as a page and never redirected
 * (https://www.rfc-editor.org/rfc/rfc6749#section-4.1.2.1)
 */
export const parseTarget = (
  parameters: ParameterMap,
  client: Pick<AuthorizeClient, 'client_id' | 'from_document' | 'redirect_uris'>,
): AuthorizeTarget => {
  const redirect_uri = requireRegular(parameters, 'redirect_uri')
  if (!isRedirectOf(client, redirect_uri))
    throw new OAuthError('invalid_request', 'The redirect_uri is not registered for this client.')
  const state = parameters.values.get('state')
  const isForm = parameters.values.get('response_mode') === 'form_post' && fitsForm(redirect_uri, state)
  return { redirect_uri, state, response_mode: isForm ? 'form_post' : undefined }
}

/**
 * True when an HTML form can send the answer. A private-use scheme cannot receive a POST, and browsers change
 * NUL and line breaks in fields
 * (https://html.spec.whatwg.org/multipage/form-control-infrastructure.html#convert-to-a-list-of-name-value-pairs).
 */
const fitsForm = (redirect_uri: string, state = ''): boolean =>
  !usesPrivateScheme(redirect_uri) && !/[\r\n\0]/.test(state)

/** Returns all scopes that a client may ask for in a request that names these APIs. */
export const scopesWith = (
  client: Origin & { readonly scopes: readonly string[] },
  apis: readonly TargetApi[],
): readonly string[] =>
  apis.length === 0 ? client.scopes : [...client.scopes, ...apis.flatMap(api => scopesAt(api, client) ?? [])]

/**
 * Third step of validation: reads all other parameters. `apis` are the APIs that the parameter `resource`
 * names.
 *
 * @throws OAuthError to be sent to the redirect URI with the state of the request
 */
export const parseAuthorizeRequest = (
  parameters: ParameterMap,
  client: AuthorizeClient,
  target: AuthorizeTarget,
  apis: readonly TargetApi[] = [],
): AuthorizeRequest => {
  checkRegular(parameters)
  const { values } = parameters
  for (const name in unsupported) if (values.has(name)) throw new OAuthError(unsupported[name as Unsupported])
  checkResponse(parameters, target)
  if (!client.grant_types.includes('authorization_code')) throw new OAuthError('unauthorized_client')
  const scope = values.get('scope')
  const allowed = scopesWith(client, apis)
  const grant = isDynamic(client) ? grantKnownScopes : grantScopes
  const organization_id = readOrganization(values, client, apis)
  // An API serves the users of its own organization only.
  if (apis.some(api => api.organization_id !== organization_id)) throw new OAuthError('invalid_target')
  return {
    response_type: 'code',
    client_id: requireParameter(values, 'client_id'),
    redirect_uri: target.redirect_uri,
    response_mode: target.response_mode,
    state: limited(values, 'state', 4096),
    code_challenge: readChallenge(values),
    scopes: grant(scope === undefined ? undefined : parseScope(scope), allowed, defaultScopes),
    ...(apis.length > 0 && { resources: apis.map(({ identifier }) => identifier) }),
    organization_id,
    any_organization:
      apis.length === 0 && !values.has('organization_id') && !values.has('id_token_hint') && isCross(client),
    prompts: readPrompts(values.get('prompt')),
    max_age: readMaxAge(values.get('max_age')),
    nonce: limited(values, 'nonce', 1024),
    id_token_hint: limited(values, 'id_token_hint', 8192),
    login_hint: readLoginHint(values.get('login_hint')),
    ui_locales: readList(values.get('ui_locales')).filter(tag =>
      /^[A-Za-z]{1,8}(?:-[A-Za-z0-9]{1,8})*$/.test(tag),
    ),
    acr_values: readList(values.get('acr_values')),
  }
}

// A request with one of these parameters is refused. The server reads no request objects. Fetching a request
// object from a `request_uri` would make the server call an address that a stranger chooses. The parameters
// are not ignored, because the client may rely on them.
// https://openid.net/specs/openid-connect-core-1_0.html#JWTRequests
const unsupported = {
  request: 'request_not_supported',
  request_uri: 'request_uri_not_supported',
  registration: 'registration_not_supported',
} as const satisfies Record<string, OAuthErrorCode>
type Unsupported = keyof typeof unsupported

/**
 * Refuses every response type except `code`, and a response mode in which the answer cannot be sent. Response
 * types such as `token` put tokens into the URL, which browser histories and logs keep:
 * https://www.rfc-editor.org/rfc/rfc9700#section-2.1.2
 */
const checkResponse = (parameters: ParameterMap, target: AuthorizeTarget) => {
  // An empty response_type is refused with unsupported_response_type, and a missing response_type with
  // invalid_request.
  const isEmpty = parameters.irregular.has('response_type')
  if (isEmpty || requireParameter(parameters.values, 'response_type') !== 'code')
    throw new OAuthError('unsupported_response_type')
  const mode = parameters.values.get('response_mode')
  // When a form cannot send the answer, `parseTarget` has left `response_mode` undefined.
  if (mode === 'form_post' && !target.response_mode)
    throw new OAuthError(
      'invalid_request',
      'The response_mode form_post needs an http or https redirect_uri, and a state without line breaks or NUL.',
    )
  if (mode !== undefined && !(responseModes as readonly string[]).includes(mode))
    throw invalidParameter('response_mode')
}

/**
 * Returns a value of at most `maxLength` characters. The length is limited, because requests are stored and
 * ID tokens contain the nonce.
 */
const limited = (values: ReadonlyMap<string, string>, name: string, maxLength: number) => {
  const value = values.get(name)
  if (value !== undefined && value.length > maxLength) throw invalidParameter(name)
  return value
}

/** True when users of this organization may sign in to the client. */
export const serves = (
  client: Pick<AuthorizeClient, 'client_id' | 'from_document' | 'organization_id' | 'capabilities'>,
  organization_id: string,
): boolean => organization_id === client.organization_id || isCross(client) || isUnowned(client)

const isCross = ({ capabilities }: Pick<AuthorizeClient, 'capabilities'>): boolean =>
  capabilities.includes('cross_organization')

/**
 * Reads the organization of the request. The default is the organization of the client. For a dynamic client
 * that requests an API, the default is the organization of the API.
 */
const readOrganization = (
  values: ReadonlyMap<string, string>,
  client: AuthorizeClient,
  [api]: readonly TargetApi[],
) => {
  const named = values.get('organization_id')
  const decided = isDynamic(client) ? api?.organization_id : undefined
  if (named !== undefined && decided !== undefined && named !== decided)
    throw invalidParameter('organization_id')
  const organization_id = named ?? decided ?? client.organization_id
  if (!serves(client, organization_id)) throw invalidParameter('organization_id')
  return organization_id
}

const isPrompt = (text: string): text is Prompt => (promptValues as readonly string[]).includes(text)

/**
 * Returns the values of `prompt`. The value `none` must be the only value (OpenID Connect Core section
 * 3.1.2.1). An unknown or repeated value is refused, because ignoring a value could skip a step that the
 * client relies on.
 */
const readPrompts = (text: string | undefined): readonly Prompt[] => {
  if (text === undefined) return []
  const prompts = text.split(' ', promptValues.length + 1)
  const isOnce = new Set(prompts).size === prompts.length
  if (!prompts.every(isPrompt) || !isOnce || (prompts.includes('none') && prompts.length > 1))
    throw invalidParameter('prompt')
  return prompts
}

const readMaxAge = (text: string | undefined) => {
  if (text === undefined) return undefined
  const seconds = /^\d{1,10}$/.test(text) ? Number(text) : Number.POSITIVE_INFINITY
  if (seconds > 2 ** 31 - 1) throw invalidParameter('max_age')
  return seconds
}

/**
 * Returns the value of `login_hint`. Returns undefined when the value is longer than any e-mail address, or
 * has characters that no username has. Such a value is not an error, because the user can type the username.
 */
const readLoginHint = (text: string | undefined) =>
  text !== undefined && text.length <= 320 && isLine(text) ? text : undefined

/**
 * Returns the first 16 entries of a list of preferences. Entries of more than 256 characters and all further
 * entries are ignored, because preferences are optional and requests are stored.
 */
const readList = (text: string | undefined): readonly string[] =>
  text?.split(' ', 16).filter(item => item !== '' && item.length <= 256) ?? []
