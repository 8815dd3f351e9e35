import { advance, decide } from '#src/authorize/advance.ts'
import { decideAmong } from '#src/authorize/due-step.ts'
import { isLogin, listBrowserLogins, type StepUser } from '#src/authorize/eligible-logins.ts'
import { accountRequest, type BrowserSession, browserSessionOf, flowOf } from '#src/authorize/flow.ts'
import { isFirstFactor } from '#src/authorize/remembered.ts'
import type { FlowRequest } from '#src/authorize/store.ts'
import type { Context } from '#src/context.ts'
import { permissionsOf } from '#src/directory/access.ts'
import { effectiveRoles } from '#src/directory/effective-roles-store.ts'
import {
  findOrganization,
  findOrganizationBySlug,
  type Organization,
} from '#src/directory/organizations/store.ts'
import { listFactors } from '#src/directory/users/factors/store.ts'
import { findUser, type UserRow } from '#src/directory/users/store.ts'
import { listWaysIn } from '#src/directory/users/ways-in-store.ts'
import { readForm } from '#src/http/body.ts'
import type { Call } from '#src/http/call.ts'
import { loginHash } from '#src/http/cookies.ts'
import { DEFAULT_ORGANIZATION, type LoginId } from '#src/lib/ids.ts'
import type { Permission } from '#src/lib/permission.ts'
import type { SecretHash } from '#src/lib/secrets.ts'
import { checkOrigin, issueCsrf, verifyCsrf } from '#src/pages/csrf.ts'
import type { MessageKey } from '#src/pages/data.ts'
import { PageError } from '#src/pages/error-page.ts'
import { sameOrganization } from '#src/pages/way-back.ts'
import { FRESH, isFresh } from '#src/protocol/oauth/next-step.ts'
import { parseForm } from '#src/protocol/oauth/parameters.ts'
import { levelOf, levelWith } from '#src/protocol/oidc/acr.ts'
import { listLogins } from '#src/sessions/logins.ts'
import { recordUnseen } from '#src/sign-in/sign-in.ts'

/** The user of the account pages. */
export interface Viewer {
  login: StepUser & { id: LoginId }
  login_hash: SecretHash
  user: UserRow
  organization: Organization
  permissions: ReadonlySet<Permission>
}

/**
 * Returns the path of an account page or form, within the organization that the URL of this call names. All
 * links, forms and redirects of the account pages use this function.
 */
export const ownPath = ({ request }: Pick<Call, 'request'>, path: string): string =>
  sameOrganization(request.url, path)

/**
 * Returns the user of the latest login of this browser. With `?organization=` (slug), only logins in that
 * organization count. Returns a page instead when there is no login, when the login still has a step to
 * complete, or when a required recent authentication is missing.
 *
 * @param back path to which the browser returns after a login
 * @param cancel path to which the user may go back, for a page that requires a recent authentication
 */
export const requireViewer = async (
  context: Context,
  call: Call,
  back?: string,
  cancel?: string,
): Promise<Viewer | Response> => {
  const browser = browserSessionOf(context, call)
  const slug = new URL(call.request.url).searchParams.get('organization')
  const organization = await wantedOrganization(context, slug, browser.login_hash)
  const end = slug || back !== undefined ? ownPath(call, back ?? '/account') : undefined
  const own = { any_organization: !slug, ...(end !== undefined && { back: end }) }
  const flow = await flowOf(context, accountRequest(organization.id, own))
  const logins = await listBrowserLogins(context, browser, flow)
  const next = decideAmong(context, flow, logins)
  if (next.step !== 'issue' || !isLogin(next.login) || !browser.login_hash)
    return advance(context, browser, flow, 'get', logins)
  const viewer = await viewerOf(context, browser.login_hash, next.login)
  if (end !== undefined && cancel !== undefined && !(await provesChange(context, viewer)))
    return confirmUser(context, browser, next.login, { back: end, cancel: ownPath(call, cancel) }, 'get')
  await recordUnseen(context, next.login, call)
  return viewer
}

/**
 * True when a login suffices for a change of the account. The login must be recent (`FRESH` in
 * next-step.ts), and must include a second factor if the user has one. A remembered browser does not replace
 * the second factor, because its cookie identifies a browser, not a person. A code by mail does not suffice
 * for a user who has another way to sign in, because a mailbox alone must not change the account.
 */
const provesChange = async ({ clock, store }: Context, { login, user }: Viewer): Promise<boolean> => {
  if (!isFresh(login, clock.now())) return false
  if (levelOf(login.acr) >= levelWith('totp')) return true
  const { factors, ways } = await store.read(async q => ({
    factors: await listFactors(q, user.id),
    ways: await listWaysIn(q, user),
  }))
  return factors.length === 0 && (isFirstFactor(login) || ways.length === 0)
}

/**
 * Asks the signed-in user to confirm who they are. Afterwards the browser goes to `back`, or the form in
 * `intent` is handled.
 */
const confirmUser = async (
  context: Context,
  browser: BrowserSession,
  login: Pick<StepUser, 'user_id' | 'organization_id' | 'amr'>,
  { back, ...confirm }: { back: string } & NonNullable<FlowRequest['confirm']>,
  after: 'get' | 'post',
): Promise<Response> => {
  const { user_id, organization_id } = login
  // A recent login by a code by mail would satisfy `max_age`, but it does not satisfy `prompt=login`.
  const prompts = isFirstFactor(login) ? [] : (['login'] as const)
  const own = { back, confirm, max_age: FRESH, prompts, hinted_user_id: user_id }
  return advance(context, browser, await flowOf(context, accountRequest(organization_id, own)), after)
}

const wantedOrganization = async (
  context: Context,
  slug: string | null,
  login_hash: SecretHash | undefined,
): Promise<Organization> => {
  const { store } = context
  const logins = login_hash ? await store.read(q => listLogins(context, q, login_hash)) : []
  const latest = logins.find(({ enabled }) => enabled)?.organization_id ?? DEFAULT_ORGANIZATION
  const organization = await (slug ? findOrganizationBySlug(store, slug) : findOrganization(store, latest))
  if (!organization) throw new PageError('not_found', 404)
  return organization
}

/**
 * Loads the user and the organization of a login, and the permissions of the user.
 *
 * @throws PageError 400 `expired` when the user is disabled, or the user or the organization is deleted
 */
export const viewerOf = async (
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
 * Requires a permission. The built-in role `user` has `profile:read` and `profile:update`; other roles may
 * lack them.
 *
 * @throws PageError 403 `not_allowed`
 */
export const permit = ({ permissions }: Viewer, permission: 'profile:read' | 'profile:update'): void => {
  if (!permissions.has(permission)) throw new PageError('not_allowed', 403)
}

/**
 * Returns a CSRF token that names the login shown on the page. The token becomes invalid when the browser
 * gets a new login cookie.
 */
export const accountToken = (context: Context, { login_hash, login }: Viewer): string =>
  issueCsrf(context, 'account', login_hash, login.id)

interface AccountForm {
  viewer: Viewer
  form: ReadonlyMap<string, string>
}

/**
 * Opens a form of the account pages.
 *
 * @throws PageError 403 when the form was not issued to this browser's login cookie, 400 `expired` when the
 * login has ended or still has a step to complete
 */
export const openForm = async (
  context: Context,
  call: Call,
  read?: (request: Request) => Promise<ReadonlyMap<string, string>>,
): Promise<AccountForm> => {
  const { login, login_hash, form } = await openAnyForm(context, call, read)
  const flow = await flowOf(context, accountRequest(login.organization_id))
  const next = await decide(context, { call, login_hash }, flow, login.id)
  if (next.step !== 'issue') throw expired(call)
  return { viewer: await viewerOf(context, login_hash, login), form }
}

/**
 * `page` is the path of the page that contains the form. `change` is the texts that name the change to the
 * user who confirms it. A form that must not be stored because it contains secrets, or that is answered with
 * a file, has `back` instead: the path to return to after the confirmation.
 */
type FreshForm = { page: string } & (
  | { change: readonly MessageKey[]; back?: never }
  | { change?: never; back: string }
)

/**
 * Maximum length of a form that is stored until the user has confirmed who they are, in characters. A longer
 * form is not stored, because each step reads the row of the pending request, which contains the form. The
 * user has to fill in a longer form again.
 */
const MAX_INTENT = 4_096

/**
 * Like {@link openForm}, for a form that requires a recent authentication. If the login does not suffice
 * (`provesChange`), the function returns the page that asks for another authentication. Afterwards a form
 * without `back` is handled if it has at most `MAX_INTENT` characters. Otherwise the user goes to `back` or,
 * if no `back` is given, to the page of the form.
 */
export const openFreshForm = async (
  context: Context,
  call: Call,
  { page, back = page, change }: FreshForm,
): Promise<AccountForm | Response> => {
  const opened = await openForm(context, call)
  const { viewer, form } = opened
  const { login, login_hash } = viewer
  if (await provesChange(context, viewer)) return opened
  const { csrf_token: _, ...fields } = Object.fromEntries(form)
  const continues = change && JSON.stringify(fields).length <= MAX_INTENT
  const intent = continues ? { intent: { path: call.path, fields, change } } : {}
  return confirmUser(
    context,
    { call, login_hash },
    login,
    { back: ownPath(call, back), cancel: ownPath(call, page), ...intent },
    'post',
  )
}

/**
 * Like {@link openForm}, for a user who only signs out. This function accepts a login that still has a step
 * to complete, because nobody has to prove a factor or change a password in order to sign out.
 */
export const openAnyForm = async (
  context: Context,
  call: Call,
  read = async (posted: Request): Promise<ReadonlyMap<string, string>> => parseForm(await readForm(posted)),
) => {
  const { request } = call
  checkOrigin(context.config, request)
  const form = await read(request)
  const login_hash = loginHash(context, request)
  const login_id = shownLogin(context, call, login_hash, form)
  const logins = login_hash ? await context.store.read(q => listLogins(context, q, login_hash)) : []
  const login = logins.find(({ id }) => id === login_id)
  if (!login || !login_hash) throw expired(call)
  return { login, login_hash, form }
}

/**
 * Returns the login that the page showed. The CSRF token becomes invalid when the browser signs in again or
 * signs out. The error page then links to /account. The usual error page for an invalid token is not used,
 * because that page advises the user to allow cookies.
 */
const shownLogin = (
  context: Context,
  call: Call,
  login_hash: SecretHash | undefined,
  form: ReadonlyMap<string, string>,
): string => {
  try {
    return verifyCsrf(context, 'account', login_hash, form.get('csrf_token'))
  } catch (cause) {
    throw new PageError('expired', 403, { retry_url: ownPath(call, '/account'), cause })
  }
}

const expired = (call: Call): PageError =>
  new PageError('expired', 400, { retry_url: ownPath(call, '/account') })
