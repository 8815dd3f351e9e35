import type { Context } from '#src/context.ts'
import { seeOther } from '#src/http/answer.ts'
import type { Call } from '#src/http/call.ts'
import { clearCookie, withCookies } from '#src/http/cookies.ts'
import { isAdministrative } from '#src/lib/permission.ts'
import { pageUserOf } from '#src/pages/data.ts'
import { render } from '#src/pages/render.ts'
import { defaultBrand } from '#src/pages/themes.ts'
import { listLogins } from '#src/sessions/logins.ts'
import { beginLogOut, logOut } from '#src/sessions/service.ts'
import { listSignedIn } from './browsers.ts'
import { frameOf, noticeOf } from './frame.ts'
import { identitiesOf } from './identities.ts'
import { nextStepsOf } from './next-steps.ts'
import { openAnyForm, ownPath, permit, requireViewer } from './viewer.ts'

const notices = [
  'password_changed',
  'session_ended',
  'login_ended',
  'others_ended',
  'account_linked',
  'account_unlinked',
] as const

/**
 * Shows the account page: profile, logins and linked accounts. A user who signs in without a client arrives
 * on this page.
 */
export const getAccount =
  (context: Context) =>
  async (call: Call): Promise<Response> => {
    const viewer = await requireViewer(context, call)
    if (viewer instanceof Response) return viewer
    permit(viewer, 'profile:read')
    const { user, organization, permissions } = viewer
    const identities = await identitiesOf(context, call, viewer)
    const next = await nextStepsOf(context, viewer)
    const notice = noticeOf(call, notices)
    return render(
      'account',
      {
        ...frameOf(context, call, viewer),
        user: {
          ...pageUserOf(user),
          email_verified: user.email_verified,
          organization: organization.display_name,
          ...(user.picture && { picture: user.picture }),
        },
        ...(await listSignedIn(context, call, viewer)),
        ...(context.config.console === 'on' &&
          isAdministrative(permissions) && { console_url: `/console?organization=${organization.id}` }),
        ...(permissions.has('profile:update') &&
          user.password_hash !== null && { change_password_url: ownPath(call, '/account/change-password') }),
        ...(identities && { identities }),
        ...(next && { next }),
        ...(notice && { notice }),
      },
      { locale: call.locale },
    )
  }

/** Ends all logins of this browser. A person who leaves a shared computer expects that no login remains. */
export const postAccountLogout =
  (context: Context) =>
  async (call: Call): Promise<Response> => {
    const { login, login_hash } = await openAnyForm(context, call)
    const logins = await context.store.read(q => listLogins(context, q, login_hash))
    await beginLogOut(context, logins, call)
    await context.store.write(async tx =>
      logOut(context, tx, await listLogins(context, tx, login_hash), call),
    )
    const { config, cookies } = context
    return withCookies(seeOther(`/account/signed-out?organization=${login.organization_slug}`), [
      clearCookie(config, cookies.login),
    ])
  }

export const getSignedOut =
  (context: Context) =>
  async (call: Call): Promise<Response> =>
    render(
      'logged-out',
      { brand: defaultBrand(context), request_id: call.request_id, login_url: ownPath(call, '/account') },
      { locale: call.locale },
    )
