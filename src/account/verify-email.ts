import { advance, hasCompleteLogin } from '#src/authorize/advance.ts'
import { accountRequest, browserSessionOf, flowOf } from '#src/authorize/flow.ts'
import type { Context } from '#src/context.ts'
import { brandOf } from '#src/directory/organizations/brand.ts'
import { findOrganization, type Organization } from '#src/directory/organizations/store.ts'
import type { Link } from '#src/directory/users/link-store.ts'
import { updateUser } from '#src/directory/users/service.ts'
import { findUser, type UserRow } from '#src/directory/users/store.ts'
import { seeOther } from '#src/http/answer.ts'
import type { Call } from '#src/http/call.ts'
import { clearCookie, setCookie, withCookies } from '#src/http/cookies.ts'
import { isSameEmail } from '#src/lib/email.ts'
import { refusedEmail, sendVerification } from '#src/links/email-verification.ts'
import { type LinkPage, openLink, openLinkForm } from '#src/links/link-pages.ts'
import type { VerifyEmailPage } from '#src/pages/data.ts'
import { PageError } from '#src/pages/error-page.ts'
import { render } from '#src/pages/render.ts'
import { openForm, ownPath, permit } from './viewer.ts'

const PAGE = '/account/verify-email'
const SIGN_IN = `${PAGE}/sign-in`

interface LinkUser {
  user: UserRow
  organization: Organization
  /** True when the link confirms the pending address. The pending address then replaces the current one. */
  is_pending: boolean
}

/** True when the user is enabled, and the link is for the current or the pending address of the user. */
const isAbout = (user: UserRow, { email }: Link): boolean =>
  user.enabled &&
  email !== null &&
  (isSameEmail(user.email, email) || isSameEmail(user.pending_email ?? '', email))

/**
 * Returns the user of the link.
 *
 * @throws PageError 410 when the user is disabled or deleted, or the address is no longer the user's
 */
const linkUserOf = async ({ store }: Context, link: Link): Promise<LinkUser> => {
  const { user_id, organization_id } = link
  const user = user_id && (await store.read(q => findUser(q, organization_id, user_id)))
  const organization = await findOrganization(store, organization_id)
  if (!user || !organization || !isAbout(user, link)) throw new PageError('link', 410)
  return { user, organization, is_pending: !isSameEmail(user.email, link.email ?? '') }
}

const verifyEmailPage = (
  context: Context,
  call: Call,
  { organization }: LinkUser,
  data: Omit<VerifyEmailPage, 'brand' | 'request_id'>,
): Response =>
  render(
    'verify-email',
    { brand: brandOf(context, organization), request_id: call.request_id, ...data },
    { locale: call.locale, status: data.error ? 400 : 200 },
  )

/**
 * Asks the user to confirm the address. Requires a login of the user, because the address may be a
 * stranger's. The user may have mistyped it, or may have entered it on purpose so that the stranger uses an
 * account that the user can read.
 */
const askPage = async (
  context: Context,
  call: Call,
  { link, action, token, csrf_token }: LinkPage,
  holder: LinkUser,
  error?: VerifyEmailPage['error'],
): Promise<Response> => {
  const { user, is_pending } = holder
  const page = { email: link.email ?? '', is_change: is_pending }
  if (!(await hasCompleteLogin(context, browserSessionOf(context, call), user)))
    return withCookies(verifyEmailPage(context, call, holder, { ...page, sign_in_url: SIGN_IN }), [
      setCookie(context.config, context.cookies.link, token),
    ])
  const form = { action, token, csrf_token, ...(is_pending && { username: user.username }) }
  return verifyEmailPage(context, call, holder, { ...page, form, ...(error && { error }) })
}

export const getVerifyEmail =
  (context: Context) =>
  async (call: Call): Promise<Response> => {
    const opened = await openLink(context, call, 'verify_email')
    const answer = await askPage(context, call, opened, await linkUserOf(context, opened.link))
    return withCookies(answer, opened.cookies)
  }

/**
 * Signs the user in and returns to the link. During the login a cookie contains the link's token, because a
 * stored request must not contain a secret.
 */
export const getConfirmSignIn =
  (context: Context) =>
  async (call: Call): Promise<Response> => {
    const { link } = await openLink(context, call, 'verify_email')
    const { user, organization } = await linkUserOf(context, link)
    const own = { back: PAGE, hinted_user_id: user.id }
    const flow = await flowOf(context, accountRequest(organization.id, own))
    return advance(context, browserSessionOf(context, call), flow, 'get')
  }

/** Verifies the address after a form post. A GET verifies nothing, because mail scanners open every link. */
export const postVerifyEmail =
  (context: Context) =>
  async (call: Call): Promise<Response> => {
    const opened = await openLinkForm(context, call, 'verify_email')
    const { link } = opened
    const holder = await linkUserOf(context, link)
    const { user, organization, is_pending } = holder
    if (!(await hasCompleteLogin(context, browserSessionOf(context, call), user)))
      return askPage(context, call, opened, holder)
    const email = link.email ?? ''
    const change = { ...(is_pending && { email }), email_verified: true }
    const by = { actor: { id: user.id, email: user.email }, client_info: call }
    try {
      await updateUser(context, user.id, change, by, async (tx, before) => {
        await opened.use(tx)
        // `change` fits the address that the user had when the link was read.
        if (!isAbout(before, link) || before.email !== user.email) throw new PageError('link', 410)
      })
    } catch (error) {
      const code = refusedEmail(error)
      if (!code) throw error
      return askPage(context, call, opened, holder, code)
    }
    const account_url = `/account?organization=${organization.slug}`
    return withCookies(verifyEmailPage(context, call, holder, { email, account_url }), [
      clearCookie(context.config, context.cookies.link),
    ])
  }

/**
 * Sends the verification mail again. With `discard` it removes the pending address instead. No mail is sent
 * when the limit of mails is reached. The page then shows the same notice as after a mail, because the links
 * in the earlier mails still work.
 */
export const postSendVerification =
  (context: Context) =>
  async (call: Call): Promise<Response> => {
    const { viewer, form } = await openForm(context, call)
    permit(viewer, 'profile:update')
    if (!context.mail) throw new PageError('not_found', 404)
    const { user } = viewer
    const by = { actor: { id: user.id, email: user.email }, client_info: call }
    if (form.has('discard')) {
      await updateUser(context, user.id, { pending_email: null }, by)
      return seeOther(ownPath(call, '/account/profile?notice=saved'))
    }
    await context.store.write(tx =>
      sendVerification(context, tx, user, user.pending_email ?? user.email, call),
    )
    return seeOther(ownPath(call, '/account/profile?notice=verification_sent'))
  }
