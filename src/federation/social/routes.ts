import type { Context } from '#src/context.ts'
import type { IdentityProvider, SocialProvider } from '#src/directory/identity-providers/store.ts'
import { receive } from '#src/federation/callback.ts'
import { park, unpark } from '#src/federation/cross-site-post.ts'
import { ArrivalError, checkArrivals, refuseArrival } from '#src/federation/refusal.ts'
import { depart, getProvider } from '#src/federation/start-login.ts'
import { isAway } from '#src/federation/upstream-request.ts'
import { readForm } from '#src/http/body.ts'
import type { Call } from '#src/http/call.ts'
import { type PageHandler, pageRoutes } from '#src/pages/boundary.ts'
import { leave, proveBy } from './upstream.ts'

export const socialRoutes = (context: Context) => {
  const at =
    (handle: (call: Call, provider: SocialProvider) => Promise<Response>): PageHandler =>
    async (call, { provider = '' }) =>
      handle(call, await getProvider(context, provider, isSocial))
  return pageRoutes(context, {
    'GET /oauth/social/:provider': at((call, provider) => depart(context, call, provider, leave(context))),
    'GET /oauth/social/:provider/callback': at((call, provider) =>
      arrive(context, call, provider, new URL(call.request.url).search),
    ),
    'POST /oauth/social/:provider/callback': at((call, provider) => postCallback(context, call, provider)),
    'GET /oauth/social/:provider/callback/parked': at(async (call, provider) =>
      arrive(context, call, provider, await unpark(context, call)),
    ),
  })
}

const isSocial = (provider: IdentityProvider): provider is SocialProvider => provider.type !== 'saml'

/** Once, or it is none. */
const stateOf = (parameters: URLSearchParams): string => {
  const [state = '', ...more] = parameters.getAll('state')
  return more.length > 0 ? '' : state
}

const arrive = (context: Context, call: Call, provider: SocialProvider, query: string): Promise<Response> => {
  const parameters = new URLSearchParams(query)
  const state = stateOf(parameters)
  return receive(context, call, provider, {
    state,
    prove: asked => proveBy(context, provider, { parameters, state, asked }),
  })
}

/** `response_mode=form_post`: https://openid.net/specs/oauth-v2-form-post-response-mode-1_0.html */
const postCallback = async (context: Context, call: Call, provider: SocialProvider): Promise<Response> => {
  await checkArrivals(context, call, provider)
  const body = await readForm(call.request)
  const state = stateOf(new URLSearchParams(body))
  if (!(await isAway(context, { state, provider })))
    throw await refuseArrival(context, call, provider, new ArrivalError('unknown_state'))
  return park(context, call, provider, body, state)
}
