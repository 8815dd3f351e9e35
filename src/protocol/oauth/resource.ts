import { isDynamic, type Origin } from './dynamic-id.ts'
import { OAuthError } from './error.ts'

/**
 * The scopes that OpenID Connect defines, and Gatehouse's scopes `groups` and `roles`. No API may define a
 * scope with one of these names. A granted scope from this list is also part of a token for an API, as long
 * as the client may request the scope.
 */
export const openidScopes: readonly string[] = [
  'openid',
  'profile',
  'email',
  'phone',
  'address',
  'groups',
  'roles',
  'offline_access',
]

/** Maximum number of resources in a request. Each resource is looked up and shown on the consent page. */
const MAX_RESOURCES = 10

/** Properties of a registered API that the checks of authorization and token requests use. */
export interface TargetApi {
  readonly identifier: string
  readonly organization_id: string
  readonly scopes: readonly { readonly name: string; readonly role: string | null }[]
  readonly clients: readonly { readonly client_id: string; readonly scopes: readonly string[] }[]
  readonly open_to_dynamic_clients: boolean
}

/**
 * Returns the form in which identifiers are compared. One trailing slash is removed, because libraries that
 * normalize URLs add a slash.
 */
export const resourceKey = (identifier: string): string => identifier.replace(/\/$/, '')

/**
 * Returns the values of the parameter `resource`, each API once. When the parameter was sent several times,
 * `values` has all sent values in one text, separated by spaces.
 * https://www.rfc-editor.org/rfc/rfc8707#section-2
 *
 * @throws OAuthError `invalid_target`
 */
export const readResources = (values: ReadonlyMap<string, string>): readonly string[] => {
  const sent = values.get('resource')
  if (sent === undefined) return []
  const resources = new Map(sent.split(' ').map(resource => [resourceKey(resource), resource]))
  if (resources.size > MAX_RESOURCES) throw new OAuthError('invalid_target', 'There are too many resources.')
  return [...resources.values()]
}

/**
 * Returns the API's scopes that a client may ask for. Returns undefined when the client may not use the API.
 */
export const scopesAt = (api: TargetApi, client: Origin): readonly string[] | undefined => {
  if (isDynamic(client)) return api.open_to_dynamic_clients ? api.scopes.map(({ name }) => name) : undefined
  const entry = api.clients.find(each => each.client_id === client.client_id)
  return entry && api.scopes.flatMap(({ name }) => (entry.scopes.includes(name) ? name : []))
}

/**
 * Returns the API of a token request: the requested API or, when the request names none, the only authorized
 * API. Returns undefined when the request names no API and none is authorized. `authorized` and `requested`
 * are identifiers of APIs. A token is for one API, so that it cannot be replayed at another API.
 *
 * @throws OAuthError `invalid_target` when the requested API was not authorized, or when several APIs were
 * authorized and the request names none
 */
export const chooseResource = (
  authorized: readonly string[],
  requested: string | undefined,
): string | undefined => {
  if (requested === undefined && authorized.length < 2) return authorized[0]
  const key = requested && resourceKey(requested)
  const chosen = authorized.find(each => resourceKey(each) === key)
  if (chosen !== undefined) return chosen
  throw new OAuthError(
    'invalid_target',
    requested === undefined
      ? 'The authorization names several resources; the request has to name one of them.'
      : 'The authorization does not name this resource.',
  )
}

/** True when the API has the scope and offers it to people with these roles. */
const offers = ({ scopes }: Pick<TargetApi, 'scopes'>, name: string, held: ReadonlySet<string>): boolean =>
  scopes.some(scope => scope.name === name && (scope.role === null || held.has(scope.role)))

/**
 * Returns the APIs that offer the scope to people with these roles. Returns undefined when no API has the
 * scope.
 */
export const apisOffering = <A extends Pick<TargetApi, 'scopes'>>(
  apis: readonly A[],
  name: string,
  held: ReadonlySet<string>,
): A[] | undefined => {
  const owners = apis.filter(api => api.scopes.some(scope => scope.name === name))
  return owners.length === 0 ? undefined : owners.filter(api => offers(api, name, held))
}

/**
 * Returns the scopes of a token for an API. A granted scope of the API is kept if the client may still use it
 * and the person's roles allow it. A granted OpenID scope is kept if the client may still ask for it.
 */
export const scopesOfToken = (
  granted: readonly string[],
  api: TargetApi,
  client: Origin & { readonly scopes: readonly string[] },
  roles: readonly { readonly name: string }[],
): string[] => {
  const own = scopesAt(api, client) ?? []
  const held = new Set(roles.map(({ name }) => name))
  return granted.filter(scope =>
    own.includes(scope)
      ? offers(api, scope, held)
      : openidScopes.includes(scope) && client.scopes.includes(scope),
  )
}
