import type { Context } from '#src/context.ts'
import { readForm } from '#src/http/body.ts'
import { AppError } from '#src/lib/app-error.ts'
import { SECOND } from '#src/lib/duration.ts'
import { parseForm } from '#src/protocol/oauth/parameters.ts'
import { type ClaimsUser, userinfoClaims } from '#src/protocol/oidc/claims.ts'
import type { Holder } from '#src/sessions/store.ts'
import type { Queries } from '#src/storage/store.ts'
import { authenticateBearer, claimedClient } from './bearer.ts'
import { endpoint, oauthJson } from './endpoint.ts'
import { furtherClaims } from './further-claims.ts'

type Subject = Pick<Holder, 'id' | 'updated_at' | 'attributes' | 'picture'> & ClaimsUser

/** Returns the answer of the UserInfo endpoint for a user's token with these scopes. */
export const userinfoOf = async (
  { config }: Context,
  q: Queries,
  client: Parameters<typeof furtherClaims>[1],
  user: Subject,
  scopes: readonly string[],
) => {
  const updated_at = Math.floor(user.updated_at / SECOND)
  const picture = user.picture && `${config.url}${user.picture}`
  return userinfoClaims(
    { ...user, picture, updated_at },
    scopes,
    await furtherClaims(q, client, user.id, scopes),
  )
}

/** Handles the UserInfo endpoint: https://openid.net/specs/openid-connect-core-1_0.html#UserInfo */
export const userinfo = (context: Context) =>
  endpoint(context, async endpoint_call => {
    const { request } = endpoint_call.call
    if (request.headers.has('origin')) endpoint_call.client_id = claimedClient(request)
    const hasForm = request.method === 'POST' && request.headers.has('content-type')
    const form = hasForm ? parseForm(await readForm(request)) : undefined
    const { client, scopes, holder } = await authenticateBearer(context, request, form)
    if (!scopes.includes('openid')) throw insufficient('The access token lacks the scope openid.')
    if (!holder) throw insufficient('The access token belongs to a client, not to a user.')
    return oauthJson(await context.store.read(q => userinfoOf(context, q, client, holder, scopes)))
  })

const insufficient = (description: string): AppError =>
  new AppError('insufficient_scope', description, {
    headers: { 'www-authenticate': 'Bearer error="insufficient_scope", scope="openid"' },
  })
