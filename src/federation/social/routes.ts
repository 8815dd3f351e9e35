import type { Context } from '#src/context.ts'
import type { IdentityProvider, SocialProvider } from '#src/directory/identity-providers/types.ts'
import { handleCallback } from '#src/federation/callback.ts'
import { storePost, takeStoredPost } from '#src/federation/cross-site-post.ts'
import { CallbackError, checkCallbackLimit, refuseCallback } from '#src/federation/refusal.ts'
import { requireProvider, startUpstreamLogin } from '#src/federation/start-login.ts'
import { isPendingUpstream, soleParameter } from '#src/federation/upstream-request.ts'
import { readForm } from '#src/http/body.ts'
import type { Call } from '#src/http/call.ts'
import { type PageHandler, pageRoutes } from '#src/pages/page-routes.ts'
import { authorizationUrlOf, verifySocialCallback } from './upstream.ts'

/** Returns the routes of logins through OpenID Connect and OAuth 2.0 providers. */
export const socialRoutes = (context: Context) => {
  const at =
    (handle: (call: Call, provider: SocialProvider) => Promise<Response>): PageHandler =>
    async (call, { provider = '' }) =>
      handle(call, await requireProvider(context, provider, isSocial))
  return pageRoutes(context, {
    'GET /oauth/social/:provider': at((call, provider) =>
      startUpstreamLogin(context, call, provider, authorizationUrlOf(context)),
    ),
    'GET /oauth/social/:provider/callback': at((call, provider) =>
      handleRedirect(context, call, provider, new URL(call.request.url).search),
    ),
    'POST /oauth/social/:provider/callback': at((call, provider) => postCallback(context, call, provider)),
    'GET /oauth/social/:provider/callback/replay': at(async (call, provider) =>
      handleRedirect(context, call, provider, await takeStoredPost(context, call)),
    ),
  })
}

const isSocial = (provider: IdentityProvider): provider is SocialProvider => provider.type !== 'saml'

const handleRedirect = (
  context: Context,
  call: Call,
  provider: SocialProvider,
  query: string,
): Promise<Response> => {
  const parameters = new URLSearchParams(query)
  const state = soleParameter(parameters, 'state')
  return handleCallback(context, call, provider, {
    state,
    prove: upstream_request =>
      verifySocialCallback(context, provider, { parameters, state, upstream_request }),
  })
}

/** Handles `response_mode=form_post`: https://openid.net/specs/oauth-v2-form-post-response-mode-1_0.html */
const postCallback = async (context: Context, call: Call, provider: SocialProvider): Promise<Response> => {
  const body = await readForm(call.request)
  const state = soleParameter(new URLSearchParams(body), 'state')
  // Only an answer to a pending request is stored, so that strangers cannot fill the database.
  if (!(await isPendingUpstream(context, { state, provider }))) {
    await checkCallbackLimit(context, call, provider)
    throw await refuseCallback(context, call, provider, new CallbackError('unknown_state'))
  }
  return storePost(context, call, provider, body, state)
}
