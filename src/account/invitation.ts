import { proceedAs } from '#src/authorize/authentication-result.ts'
import { browserSessionOf } from '#src/authorize/flow.ts'
import type { Context } from '#src/context.ts'
import { kindOf } from '#src/directory/identity-providers/buttons.ts'
import { INVITATION_PATH, invitationUrl } from '#src/directory/invitations/service.ts'
import { brandOf } from '#src/directory/organizations/brand.ts'
import { settingsOf } from '#src/directory/organizations/settings.ts'
import { isReservedName, needsApproval } from '#src/directory/registrations/service.ts'
import { addFactor, type UnnamedFactor } from '#src/directory/users/factors/service.ts'
import { checkChosen } from '#src/directory/users/password.ts'
import { findUser, setLastLogin, setPasskeyDeclined, type UserRow } from '#src/directory/users/store.ts'
import { acceptsTerms, acceptTerms } from '#src/directory/users/terms.ts'
import { baseName } from '#src/federation/provisioning.ts'
import { readForm } from '#src/http/body.ts'
import type { Call } from '#src/http/call.ts'
import { browserHash, loginHash, setCookie, withCookies } from '#src/http/cookies.ts'
import { newId, type UserId } from '#src/lib/ids.ts'
import { offersPasskeys } from '#src/lib/passkey-site.ts'
import { hashSecret, newSecret, type SecretHash } from '#src/lib/secrets.ts'
import { iso } from '#src/lib/text.ts'
import { refusedEmail } from '#src/links/email-verification.ts'
import { checkOrigin, issueCsrf, verifyCsrf } from '#src/pages/csrf.ts'
import type { InvitationPage, NewUserErrors, NewUserFields } from '#src/pages/data.ts'
import { PageError } from '#src/pages/error-page.ts'
import { render } from '#src/pages/render.ts'
import { translator } from '#src/pages/translate.ts'
import { parseForm } from '#src/protocol/oauth/parameters.ts'
import { listLogins } from '#src/sessions/logins.ts'
import {
  completeUser,
  createInvited,
  type Found,
  findInvited,
  refuse,
  useUp,
} from '#src/sign-in/accept-invitation.ts'
import { passwordRules } from '#src/sign-in/new-password.ts'
import { challengeOf, creationOptions, verifyRegistration } from '#src/sign-in/passkeys.ts'
import { issueRecoveryCodes } from '#src/sign-in/recovery-codes.ts'
import { PASSWORD } from '#src/sign-in/sign-in.ts'
import type { Transaction } from '#src/storage/store.ts'
import { flowAfter, providersFor, toProvider } from './invitation-flows.ts'
import { newUserErrors, newUserOf, valuesOf } from './new-user.ts'
import { openInvitation } from './refused-invitation.ts'

/** An invitation as a page shows it. A new user's id is chosen in advance, because a passkey contains it. */
interface Opened extends Found {
  token: string
  link_hash: SecretHash
  user_id: UserId
  csrf_token: string
  /** Handle of the authorization request in which the person asked to register. */
  request: string | undefined
}

// Separates the link's hash (base64url) from the user's id in the CSRF token. Neither contains a tilde.
const SEPARATOR = '~'

/**
 * Shows the form of an invitation. Opening the form does not use up the invitation, because mail scanners and
 * previews open links.
 */
export const getInvitationPage =
  (context: Context) =>
  async (call: Call): Promise<Response> => {
    const { searchParams } = new URL(call.request.url)
    const token = searchParams.get('token') ?? ''
    const link_hash = hashSecret(token)
    const found = await openInvitation(context, call, link_hash)
    const fresh = newSecret()
    const known = browserHash(context, call.request)
    const user_id = found.user?.id ?? newId('usr', context.clock.now())
    const subject = `${link_hash}${SEPARATOR}${user_id}`
    const csrf_token = issueCsrf(context, 'invitation', known ?? hashSecret(fresh), subject)
    const request = searchParams.get('request') ?? undefined
    const opened = { ...found, token, link_hash, user_id, csrf_token, request }
    const { email } = found.invitation
    const values = email === null ? {} : { email, username: baseName({ email }) }
    const page = await (found.user
      ? credentialPage(context, call, opened, valuesOf(found.user))
      : invitationPage(context, call, opened, { values, ...(await signedInAs(context, call)) }))
    return withCookies(page, known ? [] : [setCookie(context.config, context.cookies.browser, fresh)])
  }

const signedInAs = async (
  context: Context,
  { request }: Call,
): Promise<Pick<InvitationPage, 'signed_in_as'>> => {
  const hash = loginHash(context, request)
  const [login] = hash ? await context.store.read(q => listLogins(context, q, hash)) : []
  return login ? { signed_in_as: login.username } : {}
}

const invitationPage = async (
  context: Context,
  call: Call,
  opened: Opened,
  data: Pick<InvitationPage, 'values' | 'errors' | 'sign_in' | 'signed_in_as'>,
  status = 200,
): Promise<Response> => {
  const { invitation, organization, user, token, csrf_token, request } = opened
  // Only the first form offers providers. A new user's first form asks for name and address. The second form
  // (`sign_in`) asks for a passkey or a password. An existing user gets only the form `sign_in`.
  const providers = data.sign_in && !user ? [] : await providersFor(context, opened)
  return render(
    'invitation',
    {
      brand: brandOf(context, organization),
      request_id: call.request_id,
      action: INVITATION_PATH,
      token,
      csrf_token,
      ...(invitation.email !== null && { email: invitation.email }),
      is_new: user === undefined,
      is_registration: invitation.is_registration,
      ...(request !== undefined && { request }),
      ...(providers.length > 0 && {
        providers: providers.map(each => ({ alias: each.alias, name: each.name, kind: kindOf(each) })),
      }),
      ...data,
    },
    { locale: call.locale, status },
  )
}

/** Asks for a passkey or a password. `broken` lists the rules that a refused password broke. */
const credentialPage = async (
  context: Context,
  call: Call,
  opened: Opened,
  values: NewUserFields,
  refused?: { errors?: InvitationPage['errors']; error?: 'passkey' | 'terms' },
  broken: ReturnType<typeof checkChosen> = [],
): Promise<Response> => {
  const { errors, error } = refused ?? {}
  const { terms, passkey_required, password_policy } = settingsOf(opened.organization)
  const sign_in = {
    takes_password: !passkey_required,
    rules: passwordRules(password_policy, broken),
    ...(offersPasskeys(context.config) && { options: optionsFor(context, opened, values) }),
    ...(error && { error }),
    ...(terms && { terms }),
  }
  return invitationPage(
    context,
    call,
    opened,
    { values, sign_in, ...(errors && { errors }) },
    refused ? 400 : 200,
  )
}

const challengeFor = (context: Context, { csrf_token }: Opened): string =>
  challengeOf(context, 'invitation', csrf_token)

/**
 * Returns the errors of the person's fields. A person who registers must not choose a name that looks like
 * the name of an administrator, because other people would trust it.
 */
const errorsOf = async (
  context: Context,
  { invitation, organization, link_hash }: Opened,
  values: NewUserFields,
): Promise<NewUserErrors> => {
  const errors = await newUserErrors(context, organization.id, values)
  const isReserved =
    invitation.is_registration &&
    (await context.store.read(q => isReservedName(q, organization, values.username)))
  if (isReserved) errors.username ??= 'taken'
  // If the form was sent twice, the first request took the name and used up the invitation. `findInvited`
  // then refuses the second request, so that the page does not say that the name is taken.
  if (Object.keys(errors).length > 0) await context.store.read(q => findInvited(context, q, link_hash))
  return errors
}

/** Handles both forms: the one with the person's fields, and the one with the person's credential. */
export const postInvitation =
  (context: Context) =>
  async (call: Call): Promise<Response> => {
    checkOrigin(context.config, call.request)
    const form = parseForm(await readForm(call.request))
    const csrf_token = form.get('csrf_token') ?? ''
    const token = form.get('token') ?? ''
    const subject = verifyCsrf(context, 'invitation', browserHash(context, call.request), csrf_token)
    const [named, user_id] = subject.split(SEPARATOR)
    const link_hash = hashSecret(token)
    if (named !== link_hash) throw new PageError('forbidden', 403)
    const request = form.get('request')
    call.page = `${INVITATION_PATH}?${new URLSearchParams({ token, ...(request && { request }) })}`
    const found = await openInvitation(context, call, link_hash)
    const opened: Opened = { ...found, token, link_hash, user_id: user_id as UserId, csrf_token, request }
    const { invitation, organization, user } = opened
    const alias = form.get('provider')
    if (alias !== undefined) return toProvider(context, call, opened, alias)

    const given = newUserOf(form)
    const values = user ? valuesOf(user) : { ...given, email: invitation.email ?? given.email }
    const errors = user ? {} : await errorsOf(context, opened, values)
    if (Object.keys(errors).length > 0) return invitationPage(context, call, opened, { values, errors }, 400)
    if (form.has('edit') && !user) return invitationPage(context, call, opened, { values })
    const password = form.get('password')
    const credential = form.get('credential')
    if ((password ?? credential) !== undefined && !acceptsTerms(organization, form))
      return credentialPage(context, call, opened, values, { error: 'terms' })
    if (password !== undefined && settingsOf(organization).passkey_required)
      return credentialPage(context, call, opened, values, { error: 'passkey' })
    if (password !== undefined) {
      const broken = checkChosen(settingsOf(organization).password_policy, password)
      const errors = { password: 'policy' } as const
      if (broken.length > 0) return credentialPage(context, call, opened, values, { errors }, broken)
      if (password !== (form.get('password_repeat') ?? password))
        return credentialPage(context, call, opened, values, { errors: { password_repeat: 'mismatch' } })
      return accept(context, call, opened, values, { password })
    }
    if (credential === undefined) return credentialPage(context, call, opened, values)
    const challenge = challengeFor(context, opened)
    const passkey = await verifyRegistration(context, credential, challenge, { alone: true })
    return passkey
      ? accept(context, call, opened, values, { passkey })
      : credentialPage(context, call, opened, values, { error: 'passkey' })
  }

const optionsFor = (context: Context, opened: Opened, values: NewUserFields): string =>
  creationOptions(
    context.config,
    challengeFor(context, opened),
    opened.organization.display_name,
    { id: opened.user_id, ...values },
    [],
    'required',
  )

type Credential = { password: string; passkey?: never } | { password?: never; passkey: UnnamedFactor }

/** Stores the user with the credential. Begins the login if the user need not wait for approval. */
const accept = async (
  context: Context,
  call: Call,
  opened: Opened,
  values: NewUserFields,
  { password, passkey }: Credential,
): Promise<Response> => {
  const { invitation, organization, user_id } = opened
  const waits = invitation.is_registration && needsApproval(organization)
  let codes: string[] = []
  const also = async (tx: Transaction, user: UserRow) => {
    await useUp(context, tx, call, opened, user)
    const { terms } = settingsOf(organization)
    if (terms) await acceptTerms(context, tx, user, terms.version, call)
    // This link does not verify the address. Before a first login, the address alone would suffice to link an
    // account at a provider (`mayLinkByAddress`). `last_login` is thus set now, even before a second factor.
    if (invitation.delivery === 'link') await setLastLogin(tx, user.id, context.clock.now())
    // If the server supports passkeys, this page has offered one, so the next login does not offer it again.
    if (!passkey) return setPasskeyDeclined(tx, user.id, context.clock.now())
    const name = passkey.name ?? translator(call.locale)('enrol.kind.passkey')
    const actor = { id: user.id, email: user.email }
    await addFactor(context, tx, user, { ...passkey, name }, { actor, client_info: call })
    // A user who waits for approval gets recovery codes on the security page later.
    if (!waits) codes = await issueRecoveryCodes(context, tx, user.id)
  }
  try {
    await (opened.user
      ? completeUser(context, call, opened, password, also)
      : createInvited(context, call, opened, values, password, also))
  } catch (error) {
    // If the form was sent twice, the first request created the user, and these checks refuse the second one.
    await context.store.read(q => findInvited(context, q, opened.link_hash))
    if (!opened.user && (await context.store.read(q => findUser(q, organization.id, user_id))))
      throw new PageError('expired', 400, { retry_url: invitationUrl(context, opened.token) })
    const code = refusedEmail(error)
    if (!code) return refuse(error)
    const taken = await errorsOf(context, opened, values)
    const errors = code === 'domain' ? { ...taken, email: code } : taken
    return invitationPage(context, call, opened, { values, errors }, 400)
  }
  const common = { brand: brandOf(context, organization), request_id: call.request_id }
  if (waits) return render('registration-waiting', common, { locale: call.locale })
  const browser = browserSessionOf(context, call)
  const stored = await flowAfter(context, browser, opened)
  const first = { user: { id: user_id }, is_first: true } as const
  if (!passkey) return proceedAs(context, browser, stored, { ...first, ...PASSWORD })
  const saved = {
    ...common,
    user: values,
    codes,
    address: context.config.url,
    created_at: iso(context.clock.now()),
    // This form continues the authorization request. The login is recorded when that request ends.
    action: '/oauth/login',
    request: stored.handle,
  }
  return proceedAs(context, browser, stored, {
    ...first,
    acr: 'phr',
    amr: [passkey.synced ? 'swk' : 'hwk', 'mfa'],
    show: async () => render('recovery-codes', saved, { locale: call.locale }),
  })
}
