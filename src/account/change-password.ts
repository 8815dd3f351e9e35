import type { Context } from '#src/context.ts'
import { brandOf } from '#src/directory/organizations/brand.ts'
import type { UserRow } from '#src/directory/users/store.ts'
import { seeOther } from '#src/http/answer.ts'
import type { Call } from '#src/http/call.ts'
import { withCookies } from '#src/http/cookies.ts'
import type { ChangePasswordPage } from '#src/pages/data.ts'
import { pageUserOf } from '#src/pages/data.ts'
import { type RenderOptions, render } from '#src/pages/render.ts'
import { revokeMost } from '#src/sessions/service.ts'
import { chooseNewPassword, passwordRulesFor, replaceOwnPassword } from '#src/sign-in/new-password.ts'
import { signIn } from '#src/sign-in/sign-in.ts'
import { accountToken, openFreshForm, ownPath, permit, requireViewer, type Viewer } from './viewer.ts'

const PAGE = '/account/change-password'

/** False for a user who has no password yet and chooses the first one on this page. */
const hasPassword = ({ password_hash }: UserRow): boolean => password_hash !== null

const passwordPage = async (
  context: Context,
  call: Call,
  viewer: Viewer,
  { data, ...options }: RenderOptions & { data?: Partial<ChangePasswordPage> } = {},
): Promise<Response> =>
  render(
    'change-password',
    {
      brand: brandOf(context, viewer.organization),
      request_id: call.request_id,
      action: ownPath(call, PAGE),
      csrf_token: accountToken(context, viewer),
      reason: 'chosen',
      user: pageUserOf(viewer.user),
      ask_current: hasPassword(viewer.user),
      rules: await passwordRulesFor(context, viewer.organization, viewer.user.id),
      cancel_url: ownPath(call, '/account'),
      ...data,
    },
    { locale: call.locale, ...options },
  )

export const getAccountPassword =
  (context: Context) =>
  async (call: Call): Promise<Response> => {
    const viewer = await requireViewer(context, call, PAGE, '/account')
    if (viewer instanceof Response) return viewer
    permit(viewer, 'profile:update')
    return passwordPage(context, call, viewer)
  }

/**
 * Changes the password at the user's request. Ends all sessions and logins of the user, because someone else
 * may have used the old password. The current login is replaced by a new one, with a new cookie and the same
 * authentication time. The new login ends no later than the replaced one.
 */
export const postAccountPassword =
  (context: Context) =>
  async (call: Call): Promise<Response> => {
    const opened = await openFreshForm(context, call, { page: '/account', back: PAGE })
    if (opened instanceof Response) return opened
    const { viewer, form } = opened
    permit(viewer, 'profile:update')
    const { user, organization, login_hash, login } = viewer
    const options = { user, ask_current: hasPassword(user), client_info: call }
    const { password_hash, retry } = await chooseNewPassword(context, organization, form, options)
    if (retry) return passwordPage(context, call, viewer, retry)
    const by = { actor: { id: user.id, email: user.email }, client_info: call, reason: 'password_changed' }
    await revokeMost(context, { user_id: user.id }, by)
    const { cookie } = await context.store.write(async tx => {
      await replaceOwnPassword(context, tx, { user, password_hash, client_info: call })
      const { acr, amr, auth_time, signed_in_at, expires_at: until } = login
      const same = { acr, amr, auth_time, signed_in_at, until }
      return signIn(context, tx, { user, organization, ...same, client_info: call, login_hash })
    })
    return withCookies(seeOther(ownPath(call, '/account?notice=password_changed')), [cookie])
  }
