import type { Context } from '#src/context.ts'
import { preflight } from '#src/http/cors.ts'
import { mount } from '#src/http/routes.ts'
import { postIntrospect } from './introspect.ts'
import { postRegister } from './register.ts'
import { postRevoke } from './revoke.ts'
import { postToken } from './token.ts'
import { userinfo } from './userinfo.ts'

/**
 * Endpoints for clients and resource servers. Introspection answers no preflight, because its callers need a
 * secret, which no web page can keep.
 */
export const tokenRoutes = (context: Context) =>
  mount({
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
  })
