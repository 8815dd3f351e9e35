import type { Context } from '#src/context.ts'
import { preflight } from '#src/http/cors.ts'
import { mount } from '#src/http/routes.ts'
import { pageBoundary } from '#src/pages/boundary.ts'
import { postIntrospect } from './introspect.ts'
import { getLogout, postLogout } from './logout.ts'
import { postRegister } from './register.ts'
import { postRevoke } from './revoke.ts'
import { postToken } from './token.ts'
import { userinfo } from './userinfo.ts'
import { getDiscovery, getKeySet } from './well-known.ts'

/** Endpoints for clients and resource servers, and logout. */
export const tokenRoutes = (context: Context) => {
  const discovery = getDiscovery(context)
  return mount({
    'POST /oauth/token': postToken(context),
    'OPTIONS /oauth/token': preflight('POST'),
    'POST /oauth/register': postRegister(context),
    'OPTIONS /oauth/register': preflight('POST'),
    'POST /oauth/revoke': postRevoke(context),
    'OPTIONS /oauth/revoke': preflight('POST'),
    'POST /oauth/introspect': postIntrospect(context),
    'GET /oauth/userinfo': userinfo(context),
    'POST /oauth/userinfo': userinfo(context),
    'OPTIONS /oauth/userinfo': preflight('GET, POST'),
    'GET /oauth/logout': pageBoundary(context, getLogout(context)),
    'POST /oauth/logout': pageBoundary(context, postLogout(context)),
    'GET /.well-known/openid-configuration': discovery,
    'OPTIONS /.well-known/openid-configuration': preflight('GET'),
    'GET /.well-known/oauth-authorization-server': discovery,
    'OPTIONS /.well-known/oauth-authorization-server': preflight('GET'),
    'GET /.well-known/jwks.json': getKeySet(context),
    'OPTIONS /.well-known/jwks.json': preflight('GET'),
  })
}
