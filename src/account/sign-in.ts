import { proceedAs } from '#src/authorize/authentication-result.ts'
import { accountRequest, browserSessionOf, flowOf, storeFlow } from '#src/authorize/flow.ts'
import type { Context } from '#src/context.ts'
import { brandOf } from '#src/directory/organizations/brand.ts'
import { settingsOf } from '#src/directory/organizations/settings.ts'
import { findOrganization, type Organization } from '#src/directory/organizations/store.ts'
import { listFactors } from '#src/directory/users/factors/store.ts'
import type { Link } from '#src/directory/users/link-store.ts'
import { findUser, type UserRow } from '#src/directory/users/store.ts'
import type { Call } from '#src/http/call.ts'
import { withCookies } from '#src/http/cookies.ts'
import { offersPasskeys } from '#src/lib/passkey-site.ts'
import { iso } from '#src/lib/text.ts'
import { type LinkPage, openLink, openLinkForm } from '#src/links/link-pages.ts'
import type { ChangePasswordPage } from '#src/pages/data.ts'
import { pageUserOf } from '#src/pages/data.ts'
import { PageError } from '#src/pages/error-page.ts'
import { type RenderOptions, render } from '#src/pages/render.ts'
import { acrOf, levelWith } from '#src/protocol/oidc/acr.ts'
import { chooseNewPassword, passwordRulesFor } from '#src/sign-in/new-password.ts'
import { challengeOf, creationOptions, verifyRegistration } from '#src/sign-in/passkeys.ts'
import { confirmProof } from '#src/sign-in/password.ts'
import { replaceByPasskey } from '#src/sign-in/post-login-actions.ts'
import { PASSWORD } from '#src/sign-in/sign-in.ts'
import { checkMaker } from '#src/sign-in/user-links.ts'

interface LinkUser {
  user: UserRow
  organization: Organization
  /**
   * True when the user may choose a passkey instead of a password. The server must offer passkeys, and the
   * user must have no factor, because a link must not replace a factor. The user must also have no password,
   * or the link must come from an administrator.
   */
  takes_passkey: boolean
}

/**
 * Returns the user of a link. A user who was disabled or deleted after the link was made gets the page of an
 * unknown link, which reveals nothing about the account.
 *
 * @throws PageError 410 `link`
 */
const linkUserOf = async ({ config, store }: Context, link: Link): Promise<LinkUser> => {
  const { kind, user_id, organization_id } = link
  const user = user_id && (await store.read(q => findUser(q, organization_id, user_id)))
  const organization = await findOrganization(store, organization_id)
  if (!user?.enabled || !organization) throw new PageError('link', 410)
  await store.read(q => checkMaker(q, link, user.id))
  const { length } = await store.read(q => listFactors(q, user.id))
  const isOffered = kind === 'sign_in' || user.password_hash === null
  return { user, organization, takes_passkey: isOffered && length === 0 && offersPasskeys(config) }
}

const linkPage = async (
  context: Context,
  call: Call,
  { action, token, csrf_token }: LinkPage,
  { user, organization, takes_passkey }: LinkUser,
  { data, ...options }: RenderOptions & { data?: Partial<ChangePasswordPage> } = {},
): Promise<Response> => {
  const needsPasskey = settingsOf(organization).passkey_required
  const passkey_options =
    takes_passkey &&
    creationOptions(
      context.config,
      challengeFor(context, csrf_token),
      organization.display_name,
      user,
      [],
      'required',
    )
  return render(
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
      ...(passkey_options && { passkey_options }),
      ...(takes_passkey && needsPasskey && { takes_password: false }),
      ...data,
    },
    { locale: call.locale, ...options },
  )
}

const challengeFor = (context: Context, csrf_token: string): string =>
  challengeOf(context, 'link', csrf_token)

/**
 * Shows the form behind the link that an administrator makes (`gatehouse user link USER`) or that a reset
 * mail contains. The user chooses a new password and is signed in, after the second factor if the user has
 * one. Some users may choose a passkey instead (`takes_passkey`).
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
    const { user, organization, takes_passkey } = holder
    const credential = opened.form.has('password') ? undefined : opened.form.get('credential')
    if (credential !== undefined && takes_passkey)
      return choosePasskey(context, call, opened, holder, credential)
    const { password_hash, is_same, retry } = await chooseNewPassword(context, organization, opened.form, {
      user,
      ask_current: false,
      by_link: true,
      client_info: call,
    })
    if (retry) {
      // If two copies of the form arrive at the same time, the first one uses up the link, and this check
      // refuses the second.
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
      action: { do: 'replace_password', password_hash, is_same, link_hash: opened.link.link_hash },
    })
  }

/** Adds the passkey that the holder of a link has chosen, and signs in with it. */
const choosePasskey = async (
  context: Context,
  call: Call,
  opened: Awaited<ReturnType<typeof openLinkForm>>,
  holder: LinkUser,
  credential: string,
): Promise<Response> => {
  const { user, organization } = holder
  const challenge = challengeFor(context, opened.csrf_token)
  const passkey = await verifyRegistration(context, credential, challenge, { alone: true })
  if (!passkey) {
    const data = { error: { code: 'passkey' } } as const
    return linkPage(context, call, opened, holder, { data, status: 400 })
  }
  const browser = browserSessionOf(context, call)
  const { stored } = await storeFlow(context, browser, await flowOf(context, accountRequest(organization.id)))
  let codes: string[] = []
  return proceedAs(context, browser, stored, {
    user,
    acr: acrOf(levelWith('passkey')),
    amr: [passkey.synced ? 'swk' : 'hwk', 'mfa'],
    confirm: async tx => {
      await opened.check(tx)
      await confirmProof(tx, user)
      codes = await replaceByPasskey(context, tx, user, { passkey, link_hash: opened.link.link_hash }, call)
    },
    show: async () =>
      render(
        'recovery-codes',
        {
          brand: brandOf(context, organization),
          request_id: call.request_id,
          user: pageUserOf(user),
          codes,
          address: context.config.url,
          created_at: iso(context.clock.now()),
          // This form continues the authorization request. The login is recorded when that request ends.
          action: '/oauth/login',
          request: stored.handle,
        },
        { locale: call.locale },
      ),
  })
}
