import { Elysia } from 'elysia'
import type { Context } from '#src/context.ts'
import type { SocialProvider } from '#src/directory/identity-providers/store.ts'
import { receive } from '#src/federation/callback.ts'
import { park, unpark } from '#src/federation/cross-site-post.ts'
import { ArrivalError, checkArrivals, refuseArrival } from '#src/federation/refusal.ts'
import { depart, getProvider } from '#src/federation/start-login.ts'
import { isAway } from '#src/federation/upstream-request.ts'
import { readForm } from '#src/http/body.ts'
import type { Call } from '#src/http/call.ts'
import { pageBoundary } from '#src/pages/boundary.ts'
import { leave, proveBy } from './upstream.ts'

export const socialRoutes = (context: Context) => {
  const page = (handle: (call: Call, provider: SocialProvider) => Promise<Response>) =>
    pageBoundary(context, async call => handle(call, await providerOf(context, call)))
  const path = '/oauth/social/:provider'
  return new Elysia({ strictPath: true })
    .get(
      path,
      page((call, provider) => depart(context, call, provider, leave(context))),
    )
    .get(
      `${path}/callback`,
      page((call, provider) => arrive(context, call, provider, new URL(call.request.url).search)),
    )
    .post(
      `${path}/callback`,
      page((call, provider) => postCallback(context, call, provider)),
      { parse: 'none' },
    )
    .get(
      `${path}/callback/parked`,
      page(async (call, provider) => arrive(context, call, provider, await unpark(context, call))),
    )
}

const providerOf = (context: Context, { path }: Call): Promise<SocialProvider> =>
  getProvider(context, path.split('/')[3] ?? '', provider => provider.type !== 'saml')

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
