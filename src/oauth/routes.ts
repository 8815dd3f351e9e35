import { Elysia } from 'elysia'
import type { Context } from '#src/context.ts'
import { preflight } from '#src/http/cors.ts'
import { pageBoundary } from '#src/pages/boundary.ts'
import { postIntrospect } from './introspect.ts'
import { getLogout, postLogout } from './logout.ts'
import { postRevoke } from './revoke.ts'
import { postToken } from './token.ts'
import { userinfo } from './userinfo.ts'
import { getDiscovery, getKeySet, preflightAny } from './well-known.ts'

/** Where clients and resource servers call, and where a browser is sent to log out. */
export const tokenRoutes = (context: Context) => {
  const raw = { parse: 'none' } as const
  const discovery = getDiscovery(context)
  return new Elysia({ strictPath: true })
    .post('/oauth/token', postToken(context), raw)
    .options('/oauth/token', preflight(context, 'POST'))
    .post('/oauth/revoke', postRevoke(context), raw)
    .options('/oauth/revoke', preflight(context, 'POST'))
    .post('/oauth/introspect', postIntrospect(context), raw)
    .get('/oauth/userinfo', userinfo(context))
    .post('/oauth/userinfo', userinfo(context), raw)
    .options('/oauth/userinfo', preflight(context, 'GET, POST'))
    .get('/oauth/logout', pageBoundary(context, getLogout(context)))
    .post('/oauth/logout', pageBoundary(context, postLogout(context)), raw)
    .get('/.well-known/openid-configuration', discovery)
    .options('/.well-known/openid-configuration', preflightAny)
    .get('/.well-known/oauth-authorization-server', discovery)
    .options('/.well-known/oauth-authorization-server', preflightAny)
    .get('/.well-known/jwks.json', getKeySet(context))
    .options('/.well-known/jwks.json', preflightAny)
}
