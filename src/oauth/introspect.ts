import { record } from '#src/audit/record.ts'
import type { Context } from '#src/context.ts'
import { isAdmitted } from '#src/directory/admission.ts'
import { findApi } from '#src/directory/apis/store.ts'
import { type Client, findClient } from '#src/directory/clients/store.ts'
import { readForm } from '#src/http/body.ts'
import { forbidden } from '#src/lib/app-error.ts'
import type { ClientInfo } from '#src/lib/client-info.ts'
import { SECOND } from '#src/lib/duration.ts'
import { bareId, type OrganizationId, type UserId } from '#src/lib/ids.ts'
import { parseClientAuth } from '#src/protocol/oauth/client-auth.ts'
import { OAuthError } from '#src/protocol/oauth/error.ts'
import { parseForm, requireParameter } from '#src/protocol/oauth/parameters.ts'
import { findRefreshGrant } from '#src/sessions/refresh-tokens.ts'
import { findLiveToken } from './bearer.ts'
import { asClient } from './client-authentication.ts'
import { endpoint, oauthJson } from './endpoint.ts'
import { findExclusion } from './grants/grant.ts'

/** An active token of any organization. {@link maySee} decides whether the client may read the token. */
interface Found {
  organization_id: OrganizationId
  /** Identifier of the API for which an access token was issued. */
  resource?: string | undefined
  user_id: UserId | undefined
  target_id: string
  target_type: 'session' | 'client'
  claims: Record<string, unknown>
}

/**
 * Handles token introspection: https://www.rfc-editor.org/rfc/rfc7662#section-2. The client needs the
 * capability `token_introspection`, because the answer contains claims about users.
 */
export const postIntrospect = (context: Context) =>
  endpoint(context, async ({ call }) => {
    const form = parseForm(await readForm(call.request))
    const presented = parseClientAuth(call.request.headers.get('authorization'), form)
    if (!presented || presented.method === 'none') throw new OAuthError('invalid_client')
    const attempt = async (client: Client) => {
      if (!client.capabilities.includes('token_introspection'))
        throw forbidden('The client lacks the capability token_introspection.')
      const token = requireParameter(form, 'token')
      const found = (await findAccess(context, token)) ?? (await findRefresh(context, token))
      const isVisible = found !== undefined && (await maySee(context, client, found))
      await recordIntrospection(context, client, call, isVisible ? found : undefined)
      return oauthJson(isVisible ? { active: true, ...found.claims } : { active: false })
    }
    return asClient(context, call, presented, attempt, { place: 'either' })
  })

/**
 * True when the client may read the token. Client and token must belong to the same organization. For a token
 * of an API, the API's `served_by` must also name the client, because the answer contains claims about the
 * user.
 */
const maySee = (
  { store }: Context,
  client: Client,
  { organization_id, resource }: Found,
): Promise<boolean> => {
  if (organization_id !== client.organization_id) return Promise.resolve(false)
  if (resource === undefined) return Promise.resolve(true)
  return findApi(store, resource).then(api => api?.served_by.includes(client.client_id) ?? false)
}

const findAccess = async (context: Context, text: string): Promise<Found | undefined> => {
  const token = await findLiveToken(context, text, 'any')
  if (!token) return undefined
  const { organization_id, resource, client_id, user, claims } = token
  return {
    organization_id,
    resource,
    user_id: user?.user_id,
    target_id: user?.session_id ?? client_id,
    target_type: user ? 'session' : 'client',
    claims: {
      ...claims,
      token_type: 'Bearer',
      ...(user && { username: claims.preferred_username }),
    },
  }
}

/** Finds a refresh token. Returns undefined when the token endpoint would refuse the token. */
const findRefresh = async (context: Context, text: string): Promise<Found | undefined> => {
  const grant = await context.store.read(q => findRefreshGrant(context, q, text))
  if (!grant || grant === 'gone') return undefined
  const isLive =
    !grant.is_used && grant.ended_at === null && grant.enabled && grant.expires_at > context.clock.now()
  if (!isLive) return undefined
  const { organization_id, user_id, id: session_id, client_id, scope, username, expires_at } = grant
  const client = await findClient(context, client_id)
  if (!client?.grant_types.includes('refresh_token')) return undefined
  const isServed = await context.store.read(
    async q =>
      (await findExclusion(q, client, organization_id)) === undefined && isAdmitted(q, client, user_id),
  )
  if (!isServed) return undefined
  return {
    organization_id,
    user_id,
    target_id: session_id,
    target_type: 'session',
    claims: {
      iss: context.config.url,
      sub: bareId(user_id),
      client_id,
      scope,
      exp: Math.floor(expires_at / SECOND),
      org_id: bareId(organization_id),
      sid: bareId(session_id),
      username,
      token_type: 'refresh_token',
    },
  }
}

/**
 * Records the introspection. The actor is the calling client. The target is the session of the token, or the
 * client of a token that belongs to no user. When the token is inactive or the calling client may not read
 * the token, the target is the calling client.
 */
const recordIntrospection = (
  context: Context,
  client: Client,
  client_info: ClientInfo,
  found: Found | undefined,
): Promise<void> =>
  context.store.write(tx =>
    record(context, tx, {
      type: 'token.introspected',
      actor: { id: client.client_id, email: null },
      target_id: found?.target_id ?? client.client_id,
      target_type: found?.target_type ?? 'client',
      organization_id: client.organization_id,
      client_info: client_info,
      metadata: { active: found !== undefined },
      subject_id: found?.user_id ?? null,
    }),
  )
