import { proceedAs } from '#src/authorize/authentication-result.ts'
import { accountRequest, browserSessionOf, flowOf, storeFlow } from '#src/authorize/flow.ts'
import type { Context } from '#src/context.ts'
import { brandOf } from '#src/directory/organizations/brand.ts'
import { findOrganization, type Organization } from '#src/directory/organizations/store.ts'
import type { Link } from '#src/directory/users/link-store.ts'
import { findUser, type UserRow } from '#src/directory/users/store.ts'
import type { Call } from '#src/http/call.ts'
import { withCookies } from '#src/http/cookies.ts'
import { type LinkPage, openLink, openLinkForm } from '#src/links/links.ts'
import { PageError } from '#src/pages/boundary.ts'
import type { ChangePasswordPage } from '#src/pages/data.ts'
import { pageUserOf } from '#src/pages/data.ts'
import { type RenderOptions, render } from '#src/pages/render.ts'
import { PASSWORD } from '#src/sign-in/log-in.ts'
import { chooseNewPassword, passwordRulesFor } from '#src/sign-in/new-password.ts'
import { confirmProof } from '#src/sign-in/password.ts'
import { checkMaker } from '#src/sign-in/user-links.ts'

interface LinkUser {
  user: UserRow
  organization: Organization
}

const linkUserOf = async ({ store }: Context, link: Link): Promise<LinkUser> => {
  const { user_id, organization_id } = link
  const user = user_id && (await store.read(q => findUser(q, organization_id, user_id)))
  const organization = await findOrganization(store, organization_id)
  if (!user?.enabled || !organization) throw new PageError('link', 410)
  await store.read(q => checkMaker(q, link, user.id))
  return { user, organization }
}

const linkPage = async (
  context: Context,
  call: Call,
  { action, token, csrf_token }: LinkPage,
  { user, organization }: LinkUser,
  { data, ...options }: RenderOptions & { data?: Partial<ChangePasswordPage> } = {},
): Promise<Response> =>
  render(
    'change-password',
    {
      brand: brandOf(context, organization),
      request_id: call.request_id,
      action,
      token,
      csrf_token,
      reason: 'link',
      user: pageUserOf(user),
      ask_current: false,
      rules: await passwordRulesFor(context, organization, user.id),
      ...data,
    },
    { locale: call.locale, ...options },
  )

/**
 * Form behind a sign-in link of an administrator (`gatehouse user link USER`) or a reset mail: the user
 * chooses a new password and is logged in, after the second factor if there is one.
 */
export const getSignIn =
  (context: Context, kind: 'sign_in' | 'reset_password') =>
  async (call: Call): Promise<Response> => {
    const opened = await openLink(context, call, kind)
    return withCookies(
      await linkPage(context, call, opened, await linkUserOf(context, opened.link)),
      opened.cookies,
    )
  }

export const postSignIn =
  (context: Context, kind: 'sign_in' | 'reset_password') =>
  async (call: Call): Promise<Response> => {
    const opened = await openLinkForm(context, call, kind)
    const holder = await linkUserOf(context, opened.link)
    const { user, organization } = holder
    const { password_hash, retry } = await chooseNewPassword(context, organization, opened.form, {
      user,
      ask_current: false,
      client_info: call,
    })
    if (retry) {
      // The same form was sent twice at once: the second request finds the new password in place.
      await context.store.read(opened.check)
      return linkPage(context, call, opened, holder, retry)
    }
    const browser = browserSessionOf(context, call)
    const flow = await flowOf(context, accountRequest(organization.id))
    const { stored } = await storeFlow(context, browser, flow)
    return proceedAs(context, browser, stored, {
      user,
      ...PASSWORD,
      confirm: async tx => {
        await opened.check(tx)
        await confirmProof(tx, user)
      },
      action: { do: 'replace_password', password_hash, link_hash: opened.link.link_hash },
    })
  }
