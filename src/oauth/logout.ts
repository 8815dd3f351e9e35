import type { Context } from '#src/context.ts'
import { checkedName } from '#src/directory/clients/names.ts'
import { type Client, findClient } from '#src/directory/clients/store.ts'
import { brandOf } from '#src/directory/organizations/brand.ts'
import { findOrganization } from '#src/directory/organizations/store.ts'
import { seeOther } from '#src/http/answer.ts'
import { readForm } from '#src/http/body.ts'
import type { Call } from '#src/http/call.ts'
import { clearCookie, loginHash, withCookies } from '#src/http/cookies.ts'
import { queryOf } from '#src/http/query.ts'
import { DEFAULT_ORGANIZATION } from '#src/lib/ids.ts'
import { checkOrigin, issueCsrf, verifyCsrf } from '#src/pages/csrf.ts'
import type { Common } from '#src/pages/data.ts'
import { pageUserOf } from '#src/pages/data.ts'
import { pageRoutes } from '#src/pages/page-routes.ts'
import { render } from '#src/pages/render.ts'
import { defaultBrand } from '#src/pages/themes.ts'
import { parseForm } from '#src/protocol/oauth/parameters.ts'
import { webOriginOf, withParameters } from '#src/protocol/oauth/redirect-uri.ts'
import type { IdTokenHint } from '#src/protocol/oidc/id-token-hint.ts'
import { findSessionOf } from '#src/sessions/login-sessions-store.ts'
import type { Login } from '#src/sessions/login-store.ts'
import { listLogins } from '#src/sessions/logins.ts'
import { beginLogOut, logOut, revokeSessionsAlone } from '#src/sessions/service.ts'
import { verifyIdTokenHint } from '#src/tokens/verify.ts'

const PATH = '/oauth/logout'
/**
 * Parameters that the confirmation form posts again. A redirect from POST to GET keeps them and
 * `id_token_hint`.
 */
const kept = ['client_id', 'post_logout_redirect_uri', 'state', 'ui_locales']

type Parameters = ReadonlyMap<string, string>

/** A logout request from an application: https://openid.net/specs/openid-connect-rpinitiated-1_0.html */
interface Logout {
  call: Call
  parameters: Parameters
  hint: IdTokenHint | undefined
  client: Client | undefined
  /** The logins of this browser. */
  logins: Login[]
}

const getLogout =
  (context: Context) =>
  async (call: Call): Promise<Response> => {
    const logout = await openLogout(context, call, parseForm(queryOf(call.request)))
    const { hint, logins } = logout
    const session = hint && (await hintedSession(context, hint))
    const hinted = logins.filter(({ id }) => id === session?.login_id)
    if (hinted.length > 0) return end(context, logout, hinted)
    // At this point the request has no hint, or no login of this browser has begun the session of the hint.
    // The session of the hint ends at once. The logins of this browser end only after the user confirms,
    // because any site can send a browser here.
    if (session) await endSession(context, session, call)
    return logins.length > 0 ? confirmation(context, logout) : goodbye(context, logout)
  }

/**
 * Handles the confirmation form. A POST without a CSRF token comes from an application. It is redirected to
 * GET, because the browser omits SameSite=Lax cookies from cross-site POSTs but sends them with the GET. A
 * form without a login cookie was sent again after "Back". It is redirected too, because nothing is left to
 * confirm.
 */
const postLogout =
  (context: Context) =>
  async (call: Call): Promise<Response> => {
    const form = parseForm(await readForm(call.request))
    const holder = loginHash(context, call.request)
    if (!form.has('csrf_token') || holder === undefined)
      return seeOther(withParameters(PATH, pick(form, ['id_token_hint', ...kept])))
    checkOrigin(context.config, call.request)
    verifyCsrf(context, 'logout', holder, form.get('csrf_token'))
    const logout = await openLogout(context, call, form)
    return end(context, logout, logout.logins)
  }

const pick = (parameters: Parameters, names: string[]): Record<string, string> =>
  Object.fromEntries([...parameters].filter(([name]) => names.includes(name)))

const openLogout = async (context: Context, call: Call, parameters: Parameters): Promise<Logout> => {
  call.ui_locales = parameters.get('ui_locales')?.split(' ') ?? []
  const token = parameters.get('id_token_hint')
  const hint = token && (await verifyIdTokenHint(context, token, parameters.get('client_id')))
  const client_id = hint ? hint.client_id : parameters.get('client_id')
  const browser = loginHash(context, call.request)
  return {
    call,
    parameters,
    hint: hint || undefined,
    client: client_id === undefined ? undefined : await findClient(context, client_id),
    logins: browser ? await context.store.read(q => listLogins(context, q, browser)) : [],
  }
}

const hintedSession = async ({ store }: Context, { sub, sid }: IdTokenHint) =>
  sid === undefined
    ? undefined
    : store.read(q => findSessionOf(q, { session_id: `sess_${sid}`, user_id: `usr_${sub}` }))

type HintedSession = NonNullable<Awaited<ReturnType<typeof hintedSession>>>

/** Revokes the session of the hint if the session is still active. The login of the session does not end. */
const endSession = async (
  context: Context,
  { id: session_id, user_id, email }: HintedSession,
  client_info: Call,
): Promise<void> => {
  const by = { actor: { id: user_id, email }, client_info, reason: 'logout' }
  await context.store.write(tx => revokeSessionsAlone(context, tx, { session_id }, by))
}

const end = async (context: Context, logout: Logout, ended: Login[]): Promise<Response> => {
  await beginLogOut(context, ended, logout.call)
  if (ended.length > 0) await context.store.write(tx => logOut(context, tx, ended, logout.call))
  const isLoggedIn = logout.logins.some(login => !ended.some(({ id }) => id === login.id))
  const answer = await goodbye(context, logout)
  return isLoggedIn ? answer : withCookies(answer, [clearCookie(context.config, context.cookies.login)])
}

/**
 * Redirects to the requested `post_logout_redirect_uri` if the client has registered exactly this URI.
 * Otherwise shows the signed-out page, because a redirect to an unregistered URI would make this endpoint an
 * open redirector.
 */
const goodbye = async (context: Context, logout: Logout): Promise<Response> => {
  const { call, parameters, client } = logout
  const target = parameters.get('post_logout_redirect_uri')
  if (client && target !== undefined && client.post_logout_redirect_uris.includes(target))
    return seeOther(withParameters(target, { state: parameters.get('state') }))
  const isUnregistered = target !== undefined
  // The page links to the client only if the request has a valid hint. Any web site can send a browser here
  // and could otherwise choose the client.
  const return_url = logout.hint && client && homeOf(client)
  return render(
    'logged-out',
    {
      ...(await common(context, logout)),
      is_unregistered: isUnregistered,
      ...(return_url && { return_url }),
    },
    { locale: call.locale },
  )
}

/**
 * Returns the root URL of the first web origin among the client's registered URIs. Returns undefined when no
 * URI has a web origin, which is usual for native applications.
 */
const homeOf = ({ post_logout_redirect_uris, redirect_uris }: Client): string | undefined =>
  [...post_logout_redirect_uris, ...redirect_uris].flatMap(uri => webOriginOf(uri) ?? [])[0]?.concat('/')

const confirmation = async (context: Context, logout: Logout): Promise<Response> => {
  const { call, parameters, hint, client, logins } = logout
  const holder = loginHash(context, call.request)
  const [login, ...others] = logins
  if (!login || !holder) return goodbye(context, logout)
  return render(
    'logout-confirm',
    {
      ...(await common(context, logout)),
      action: PATH,
      csrf_token: issueCsrf(context, 'logout', holder, 'logout'),
      ...(others.length === 0 && { user: pageUserOf(login) }),
      // The form does not post the hint. It posts the `client_id` from the verified hint instead.
      fields: { ...pick(parameters, kept), ...(hint && client && { client_id: client.client_id }) },
      cancel_url: '/account',
    },
    { locale: call.locale },
  )
}

/**
 * Returns the data that both logout pages need. The page has the brand of the organization whose users are
 * signed in. The page has the brand of the default organization when nobody is signed in, or when the users
 * belong to several organizations. The brand of the client's organization is not used: any organization could
 * link here with its own client and put its CSS on a page of other users.
 */
const common = async (
  context: Context,
  { call, client, logins }: Logout,
): Promise<Common & { client_name?: string; login_url: string }> => {
  const [id, ...others] = new Set(logins.map(({ organization_id }) => organization_id))
  const shown = id && others.length === 0 ? id : DEFAULT_ORGANIZATION
  const organization = await findOrganization(context.store, shown)
  return {
    brand: organization ? brandOf(context, organization) : defaultBrand(context),
    request_id: call.request_id,
    login_url: organization ? `/account?organization=${organization.slug}` : '/account',
    ...(client && { client_name: checkedName(client) }),
  }
}

/** Returns the routes of a logout that an application starts: RP-Initiated Logout 1.0 section 2. */
export const logoutRoutes = (context: Context) =>
  pageRoutes(context, {
    'GET /oauth/logout': getLogout(context),
    'POST /oauth/logout': postLogout(context),
  })
