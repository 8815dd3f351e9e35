import { advance, decide, decideAmong } from '#src/authorize/advance.ts'
import { isLogin, listBrowserLogins, type StepUser } from '#src/authorize/eligible-logins.ts'
import { accountRequest, browserSessionOf, flowOf } from '#src/authorize/flow.ts'
import type { Context } from '#src/context.ts'
import { permissionsOf } from '#src/directory/access.ts'
import {
  findOrganization,
  findOrganizationBySlug,
  type Organization,
} from '#src/directory/organizations/store.ts'
import { effectiveRoles } from '#src/directory/store.ts'
import { findUser, type UserRow } from '#src/directory/users/store.ts'
import { seeOther } from '#src/http/answer.ts'
import { readForm } from '#src/http/body.ts'
import type { Call } from '#src/http/call.ts'
import { loginHash } from '#src/http/cookies.ts'
import { DEFAULT_ORGANIZATION, type LoginId } from '#src/lib/ids.ts'
import type { Permission } from '#src/lib/permission.ts'
import type { SecretHash } from '#src/lib/secrets.ts'
import { PageError } from '#src/pages/boundary.ts'
import { checkOrigin, issueCsrf, verifyCsrf } from '#src/pages/csrf.ts'
import { FRESH, isFresh } from '#src/protocol/oauth/next-step.ts'
import { parseForm } from '#src/protocol/oauth/parameters.ts'
import { listLogins } from '#src/sessions/logins.ts'

/** The user of the account pages. */
export interface Viewer {
  login: StepUser & { id: LoginId }
  login_hash: SecretHash
  user: UserRow
  organization: Organization
  permissions: ReadonlySet<Permission>
}

/** Page that requires a recent authentication, for forms of pages that are shown without one. */
export const PROVE_PATH = '/account/prove'

export const getProve =
  (context: Context) =>
  async (call: Call): Promise<Response> => {
    const viewer = await requireViewer(context, call, '/account')
    return viewer instanceof Response ? viewer : seeOther('/account')
  }

/**
 * Returns the user of the latest login of this browser, or of its login in the organization of
 * `?organization=` (slug). Without a login, or when the login owes a step, it returns that step's page
 * instead.
 *
 * @param back path of a page that requires a recent authentication
 */
export const requireViewer = async (
  context: Context,
  call: Call,
  back?: string,
): Promise<Viewer | Response> => {
  const browser = browserSessionOf(context, call)
  const organization = await wantedOrganization(context, call, browser.login_hash)
  const own = back === undefined ? {} : { back, max_age: FRESH }
  const flow = await flowOf(context, accountRequest(organization.id, own))
  const logins = await listBrowserLogins(context, browser, flow)
  const next = decideAmong(context, flow, logins)
  return next.step === 'issue' && isLogin(next.login) && browser.login_hash
    ? viewerOf(context, browser.login_hash, next.login)
    : advance(context, browser, flow, 'get', logins)
}

const wantedOrganization = async (
  context: Context,
  { request }: Call,
  login_hash: SecretHash | undefined,
): Promise<Organization> => {
  const { store } = context
  const slug = new URL(request.url).searchParams.get('organization')
  const logins = login_hash ? await store.read(q => listLogins(context, q, login_hash)) : []
  const latest = logins.find(({ enabled }) => enabled)?.organization_id ?? DEFAULT_ORGANIZATION
  const organization = await (slug ? findOrganizationBySlug(store, slug) : findOrganization(store, latest))
  if (!organization) throw new PageError('not_found', 404)
  return organization
}

const viewerOf = async (
  context: Context,
  login_hash: SecretHash,
  login: Viewer['login'],
): Promise<Viewer> => {
  const { user_id, organization_id } = login
  const organization = await findOrganization(context.store, organization_id)
  const { user, roles } = await context.store.read(async q => ({
    user: await findUser(q, organization_id, user_id),
    roles: await effectiveRoles(q, user_id),
  }))
  if (!user?.enabled || !organization) throw new PageError('expired', 400)
  return { login, login_hash, user, organization, permissions: permissionsOf(roles) }
}

/**
 * Requires a permission. The built-in role `user` includes both; other roles may not.
 *
 * @throws PageError 403 `not_allowed`
 */
export const permit = ({ permissions }: Viewer, permission: 'profile:read' | 'profile:update'): void => {
  if (!permissions.has(permission)) throw new PageError('not_allowed', 403)
}

/** CSRF token that names the login shown on the page. It becomes invalid with the login cookie. */
export const accountToken = (context: Context, { login_hash, login }: Viewer): string =>
  issueCsrf(context, 'account', login_hash, login.id)

/**
 * Opens a form of the account pages.
 *
 * @param back page to start again, for a form that requires a recent authentication
 * @throws PageError 403 when the form was not issued to this login, 400 `expired` when the login owes a step
 */
export const openForm = async (
  context: Context,
  call: Call,
  back?: string,
): Promise<{ viewer: Viewer; form: ReadonlyMap<string, string> }> => {
  const { login, login_hash, form } = await openAnyForm(context, call)
  const browser = { call, login_hash }
  const flow = await flowOf(context, accountRequest(login.organization_id))
  const next = await decide(context, browser, flow, login.id)
  const is_stale = back !== undefined && !isFresh(login, context.clock.now())
  if (next.step !== 'issue' || is_stale) throw expired(back)
  return { viewer: await viewerOf(context, login_hash, login), form }
}

/** As {@link openForm}, for a user who only signs out: accepts a login that owes a step. */
export const openAnyForm = async (context: Context, { request }: Call) => {
  checkOrigin(context.config, request)
  const form = parseForm(await readForm(request))
  const login_hash = loginHash(context, request)
  const login_id = shownLogin(context, login_hash, form)
  const logins = login_hash ? await context.store.read(q => listLogins(context, q, login_hash)) : []
  const login = logins.find(({ id }) => id === login_id)
  if (!login || !login_hash) throw expired()
  return { login, login_hash, form }
}

/**
 * Returns the login that the page showed. When the browser has since signed in again or out, the error page
 * links to /account instead of explaining cookies.
 */
const shownLogin = (
  context: Context,
  login_hash: SecretHash | undefined,
  form: ReadonlyMap<string, string>,
): string => {
  try {
    return verifyCsrf(context, 'account', login_hash, form.get('csrf_token'))
  } catch (cause) {
    throw new PageError('expired', 403, { retry_url: '/account', cause })
  }
}

const expired = (retry_url = '/account'): PageError => new PageError('expired', 400, { retry_url })
