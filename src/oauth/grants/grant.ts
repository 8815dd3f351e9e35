import type { Context, Core } from '#src/context.ts'
import { type Api, readApi } from '#src/directory/apis/store.ts'
import type { Client } from '#src/directory/clients/store.ts'
import { letsIn } from '#src/directory/organizations/dynamic-clients.ts'
import { readOrganization } from '#src/directory/organizations/store.ts'
import type { ClientInfo } from '#src/lib/client-info.ts'
import { CLOCK_SKEW } from '#src/lib/duration.ts'
import type { OrganizationId, SessionId, UserId } from '#src/lib/ids.ts'
import { expand } from '#src/lib/permission.ts'
import type { Secret } from '#src/lib/secrets.ts'
import { findConsented } from '#src/oauth/consent-store.ts'
import type { FurtherClaims } from '#src/oauth/further-claims.ts'
import { serves } from '#src/protocol/oauth/authorize-request.ts'
import { isDynamic } from '#src/protocol/oauth/dynamic-id.ts'
import { OAuthError } from '#src/protocol/oauth/error.ts'
import { chooseResource, scopesAt, scopesOfToken } from '#src/protocol/oauth/resource.ts'
import { formatScope } from '#src/protocol/oauth/scope.ts'
import type { TokenRequest } from '#src/protocol/oauth/token-request.ts'
import { accessTokenClaims, type ClaimsUser } from '#src/protocol/oidc/claims.ts'
import type { Queries } from '#src/storage/store.ts'
import { type IssuedToken, issueToken, type TokenForm } from '#src/tokens/issue.ts'

/** A token request of an authenticated client. */
export interface GrantCall<Request> {
  client: Client
  request: Request
  client_info: ClientInfo
}

/**
 * Body of a token response. `expires_in` is in seconds. https://www.rfc-editor.org/rfc/rfc6749#section-5.1
 */
export interface TokenAnswer {
  access_token: string
  token_type: 'Bearer'
  expires_in: number
  refresh_token?: Secret
  id_token?: string
  scope: string
}

/**
 * Handles one grant type: authorizes the request, records the event, and signs the tokens after the commit.
 *
 * @throws OAuthError when the grant is refused
 */
export type Grant<T extends TokenRequest['grant_type']> = (
  context: Context,
  call: GrantCall<Extract<TokenRequest, { grant_type: T }>>,
) => Promise<TokenAnswer>

/**
 * Description of `invalid_grant` for a client that lost the capability `cross_organization` after the login.
 */
const NOT_SERVED = 'The client no longer serves users of this organization.'

/** Description of `invalid_grant` for a dynamic client that the organization does not allow. */
const KEPT_OUT = 'The organization does not allow this client.'

/**
 * Returns the reason why the client may not serve users of the organization. Returns undefined when it may.
 */
export const findExclusion = async (
  q: Queries,
  client: Client,
  organization_id: OrganizationId,
): Promise<string | undefined> => {
  if (!serves(client, organization_id)) return NOT_SERVED
  return (await isKeptOut(q, client, organization_id)) ? KEPT_OUT : undefined
}

/** True for a dynamic client that the organization does not allow. */
export const isKeptOut = async (
  q: Queries,
  client: Client,
  organization_id: OrganizationId,
): Promise<boolean> => {
  if (!isDynamic(client)) return false
  const organization = await readOrganization(q, organization_id)
  return !organization || !letsIn(organization, client)
}

/** Description of `invalid_grant` for a user whom the client no longer admits. */
export const NOT_ADMITTED = 'The client does not admit this user.'

/**
 * Returns the algorithm, `typ` and lifetime (in seconds) of the client's access tokens. With `api`, returns
 * them for the client's tokens for this API. The algorithm and the lifetime of the API take precedence,
 * because the API verifies the token.
 */
export const accessTokenForm = ({ config }: Core, client: Client, api?: Api) => ({
  alg: api?.access_token_alg ?? client.access_token_signed_response_alg ?? config.access_token_alg,
  typ: client.access_token_typ,
  lifetime: api?.access_token_ttl ?? client.access_token_ttl,
})

/**
 * Returns the API of a token request. `organization_id` is the organization of the user or client that gets
 * the token.
 *
 * @throws OAuthError `invalid_target` when the organization has no such API, or the client may not use it
 */
export const requireApi = async (
  q: Queries,
  client: Client,
  resource: string,
  organization_id: string,
): Promise<Api> => {
  const api = await readApi(q, resource)
  // The id of a client with a metadata document is a URL, and an administrator may have given an API the same
  // identifier. The client's tokens that are not for an API have this URL as audience. A request for such an
  // API is refused, because services could not tell tokens for the API from the client's other tokens.
  if (
    !api ||
    api.identifier === client.client_id ||
    api.organization_id !== organization_id ||
    !scopesAt(api, client)
  )
    throw new OAuthError('invalid_target')
  return api
}

/**
 * Returns the API and the scopes of a user's token. A token for an API gets the granted scopes that the
 * client and the user may still have. If users are asked for consent, the token gets only those scopes of the
 * API that the consent has for this API, because a scope of another API may have the same name. A token that
 * is not for an API gets all granted scopes.
 *
 * @throws OAuthError `invalid_target` when no token for the API may be issued. This includes an API that was
 * deleted and created again after the authorization, because the user agreed to the scopes of the deleted
 * API. A `created_at` in the future was stored before the clock was set back, and is ignored
 */
export const targetOf = async (
  q: Queries,
  client: Client,
  granted: {
    resources: string | null
    scopes: readonly string[]
    user: ClaimsUser & { readonly id: UserId }
    roles: { name: string }[]
    /** Time of the authorization in milliseconds. */
    since: number
    now: number
  },
  requested: string | undefined,
): Promise<{ api?: Api; scopes: readonly string[] }> => {
  const { scopes, user, roles, since, now } = granted
  const resource = chooseResource(granted.resources?.split(' ').filter(Boolean) ?? [], requested)
  if (resource === undefined) return { scopes }
  const api = await requireApi(q, client, resource, user.organization_id)
  if (api.created_at > since && api.created_at <= now + CLOCK_SKEW) throw new OAuthError('invalid_target')
  const allowed = scopesOfToken(scopes, api, client, roles)
  const key = { user_id: user.id, client_id: client.client_id }
  const consented = client.consent_required ? await findConsented(q, key) : undefined
  if (!consented) return { api, scopes: allowed }
  const own = new Set(api.scopes.map(({ name }) => name))
  return { api, scopes: allowed.filter(name => !own.has(name) || consented.includes(`${api.id}/${name}`)) }
}

/** Returns the scope and the API of a token as events record them. */
export const describeTarget = ({ api, scopes }: { api?: Api; scopes: readonly string[] }) => ({
  scope: formatScope(scopes),
  ...(api && { resource: api.identifier }),
})

/** Content of a user's access token. `ends_by` is the time by which the session must end, in milliseconds. */
export interface AccessGrant {
  user: ClaimsUser
  roles: { name: string }[]
  session_id: SessionId
  scopes: readonly string[]
  /** Time of the authentication in seconds; absent after a refresh. */
  auth_time?: number
  ends_by: number | null
  further: FurtherClaims
  api?: Api | undefined
}

/** Returns the unsigned access token of a user's session. */
export const accessTokenOf = (core: Core, client: Client, grant: AccessGrant): TokenForm => {
  const { ends_by, roles, auth_time, further, api, ...facts } = grant
  const form = accessTokenForm(core, client, api)
  // Only a token with a permission of the admin API contains `auth_time`, because no other API reads the
  // claim. A token of type `JWT` never contains it, because the SDK would take the token for an ID token.
  const isRead = form.typ === 'at+jwt' && expand(grant.scopes).size > 0
  return {
    ...form,
    ends_by,
    claims: issued =>
      accessTokenClaims({
        ...issued,
        ...facts,
        client_id: client.client_id,
        audience: api?.identifier,
        roles: roles.map(({ name }) => name),
        auth_time: isRead ? auth_time : undefined,
        further: { ...further.ofApi, ...further.mapped },
      }),
  }
}

/**
 * Length in characters above which the SDK refuses an access token. With the other headers of a request, such
 * a token hardly fits into the 16 KiB that Gatehouse's own endpoints accept.
 */
const LONG_TOKEN = 15 * 1024

/**
 * Issues an access token for a user's session. A token that most services refuse is issued nevertheless,
 * because a service may accept longer headers. The log says why other services refuse it.
 */
export const issueAccessToken = async (
  context: Context,
  client: Client,
  grant: AccessGrant,
): Promise<IssuedToken> => {
  const issued = await issueToken(context, accessTokenOf(context, client, grant))
  const characters = issued.token.length
  if (characters > LONG_TOKEN)
    context.log.warn(
      { event: 'long_token', user_id: grant.user.id, client_id: client.client_id, characters },
      `services refuse an access token of more than ${LONG_TOKEN} characters: take roles or groups from the user, or use roles with shorter names`,
    )
  return issued
}
