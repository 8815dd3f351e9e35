import { type BrowserSession, browserSessionOf, findFlow, type StoredFlow } from '#src/authorize/flow.ts'
import { clientName, otherAccount } from '#src/authorize/step-pages.ts'
import type { Context } from '#src/context.ts'
import { kindOf } from '#src/directory/identity-providers/buttons.ts'
import { findProvider } from '#src/directory/identity-providers/store.ts'
import { brandOf } from '#src/directory/organizations/brand.ts'
import { readForm } from '#src/http/body.ts'
import type { Call } from '#src/http/call.ts'
import { browserHash } from '#src/http/cookies.ts'
import { canonicalEmail } from '#src/lib/email.ts'
import { isPlain } from '#src/lib/text.ts'
import { checkOrigin, issueCsrf, verifyCsrf } from '#src/pages/csrf.ts'
import type { CompleteProfilePage, LinkAccountPage } from '#src/pages/data.ts'
import { PageError } from '#src/pages/error-page.ts'
import { type RenderOptions, render } from '#src/pages/render.ts'
import { parseForm } from '#src/protocol/oauth/parameters.ts'
import { chargeBrowser } from '#src/sign-in/known-browsers.ts'
import { provePassword } from '#src/sign-in/password.ts'
import { type LinkingResult, newAddressOf, resolveAccount, type UpstreamIdentity } from './account-linking.ts'
import { completeLogin, linkAs, withRefusals } from './callback.ts'
import { findStoredIdentity } from './upstream-request.ts'

/** A login whose user has returned from the provider and has to confirm the link or complete the profile. */
interface PendingLink {
  browser: BrowserSession
  flow: StoredFlow
  identity: UpstreamIdentity
  handle: string
}

const ACTION = '/oauth/link-account'

const findPendingLink = async (context: Context, call: Call, handle: string): Promise<PendingLink> => {
  const browser = browserSessionOf(context, call)
  const browser_hash = browserHash(context, call.request)
  const stored = browser_hash && (await findStoredIdentity(context, handle, browser_hash))
  const provider = stored && (await findProvider(context.store, stored.provider_id))
  // The callback verified the profile with the provider's settings at that time. If the settings have changed
  // since the callback, the profile is not used.
  if (!stored || !provider?.enabled || stored.provider_version !== provider.updated_at)
    throw new PageError('expired', 400)
  const flow = await findFlow(context, browser, stored.handle)
  // A successful submission of the form increases the round. Later submissions are refused.
  if (stored.round !== flow.pending.round) throw new PageError('expired', 400)
  const { organization } = flow
  return {
    browser,
    flow,
    identity: {
      provider,
      organization,
      profile: stored.profile,
      invited: flow.request.invited,
      is_form: true,
    },
    handle,
  }
}

const pageParts = (context: Context, { browser, flow, identity, handle }: PendingLink) => {
  const { provider } = identity
  const { organization, pending } = flow
  return {
    common: {
      brand: brandOf(context, organization),
      request_id: browser.call.request_id,
      action: ACTION,
      request: handle,
      csrf_token: issueCsrf(context, 'link_account', pending.browser_hash, handle),
      provider: { name: provider.name, kind: kindOf(provider) },
      ...otherAccount(context, flow),
      ...clientName(flow),
    },
    locale: browser.call.locale,
  }
}

type Retry<Page> = Omit<RenderOptions, 'locale'> & { data?: Partial<Page> }

const linkAccountPage = (
  context: Context,
  pending_link: PendingLink,
  { data, ...options }: Retry<LinkAccountPage> = {},
): Response => {
  const { common, locale } = pageParts(context, pending_link)
  const { email = '' } = pending_link.identity.profile
  const login_url = `/oauth/login?request=${pending_link.flow.handle}`
  return render('link-account', { ...common, email, login_url, ...data }, { locale, ...options })
}

const completeProfilePage = (
  context: Context,
  pending_link: PendingLink,
  { data, ...options }: Retry<CompleteProfilePage> = {},
): Response => {
  const { common, locale } = pageParts(context, pending_link)
  const email = newAddressOf(pending_link.identity)
  const missing = missingOf(pending_link.identity)
  return render(
    'complete-profile',
    { ...common, missing, ...(email && { email }), ...data },
    { locale, ...options },
  )
}

/**
 * Lists the missing fields of the profile. One name is enough, the first or the last. When the profile has no
 * name, both names are listed.
 */
const missingOf = (identity: UpstreamIdentity): CompleteProfilePage['missing'] => [
  ...(identity.profile.first_name || identity.profile.last_name
    ? []
    : (['first_name', 'last_name'] as const)),
  ...(newAddressOf(identity) ? [] : (['email'] as const)),
]

type Reply = (result: LinkingResult) => Promise<Response | undefined>

/**
 * Decides again, with {@link resolveAccount}, to which user the upstream account belongs. `reply` gets the
 * result and returns the response. When `reply` returns undefined, the login is completed.
 */
const openLinkingForm = async (
  context: Context,
  pending_link: PendingLink,
  reply: Reply,
): Promise<Response> => {
  const { browser, flow, identity } = pending_link
  const { provider, linking } = identity
  return withRefusals(context, browser, { provider, flow, linking }, async () => {
    const result = await context.store.read(q => resolveAccount(context, q, identity))
    return (await reply(result)) ?? completeLogin(context, browser, flow, identity)
  })
}

/**
 * Shows the page at `/oauth/link-account?request=<handle>`, which asks for the local password or for the
 * missing profile fields.
 */
export const getLinkingPage =
  (context: Context) =>
  async (call: Call): Promise<Response> => {
    const handle = new URL(call.request.url).searchParams.get('request')
    if (!handle) throw new PageError('method', 400)
    const pending_link = await findPendingLink(context, call, handle)
    return openLinkingForm(context, pending_link, async ({ step }) => {
      if (step === 'prove') return linkAccountPage(context, pending_link)
      return step === 'complete' ? completeProfilePage(context, pending_link) : undefined
    })
  }

/** Processes the form of the page at `/oauth/link-account`: links the account, or completes the profile. */
export const postLinkingForm =
  (context: Context) =>
  async (call: Call): Promise<Response> => {
    checkOrigin(context.config, call.request)
    const form = parseForm(await readForm(call.request))
    const browser_hash = browserHash(context, call.request)
    const handle = verifyCsrf(context, 'link_account', browser_hash, form.get('csrf_token'))
    call.page = `${ACTION}?request=${handle}`
    const pending_link = await findPendingLink(context, call, handle)
    return openLinkingForm(context, pending_link, async result => {
      if (result.step === 'prove') return confirmLink(context, pending_link, result.user.username, form)
      return result.step === 'complete' ? completeProfile(context, pending_link, form) : undefined
    })
  }

/**
 * Links the account when the user enters the local password. Later logins need only the provider's assertion.
 */
const confirmLink = async (
  context: Context,
  pending_link: PendingLink,
  identifier: string,
  form: ReadonlyMap<string, string>,
): Promise<Response> => {
  const { browser, flow, identity } = pending_link
  const password = form.get('password')
  if (!password)
    return linkAccountPage(context, pending_link, { data: { error: { code: 'missing' } }, status: 400 })
  const { user, refusal } = await provePassword(context, {
    organization_id: identity.organization.id,
    identifier,
    password,
    client_info: browser.call,
  })
  if (refusal) {
    const { status, headers, ...error } = refusal
    return linkAccountPage(context, pending_link, { data: { error }, status, headers })
  }
  return linkAs(context, browser, flow, identity, user, 'password')
}

/** Completes the profile with the user's input. An address that the user types is not verified. */
const completeProfile = async (
  context: Context,
  pending_link: PendingLink,
  form: ReadonlyMap<string, string>,
): Promise<Response | undefined> => {
  const { browser, flow, identity } = pending_link
  const missing = missingOf(identity)
  const values = Object.fromEntries(missing.map(field => [field, (form.get(field) ?? '').trim()]))
  const errors = Object.fromEntries(
    missing.flatMap(field => {
      const error = errorOf(field, values[field] ?? '')
      return error ? [[field, error]] : []
    }),
  )
  if (Object.keys(errors).length > 0)
    return completeProfilePage(context, pending_link, { data: { values, errors }, status: 422 })
  // Each submission is charged, because the form stays valid until a submission ends in a login, and each
  // submission whose address belongs to a user stores another pending link.
  await chargeBrowser(context, browser.call, { organization_id: flow.organization.id, kind: 'commit' })
  const email_verified = identity.profile.email_verified && !missing.includes('email')
  return completeLogin(context, browser, flow, {
    ...identity,
    profile: { ...identity.profile, ...values, email_verified },
  })
}

const errorOf = (
  field: CompleteProfilePage['missing'][number],
  text: string,
): NonNullable<CompleteProfilePage['errors']>[typeof field] => {
  if (field === 'last_name' && !text) return undefined
  if (!text) return 'required'
  if (text.length > 255 || !isPlain(text)) return 'too_long'
  return field === 'email' && !canonicalEmail(text) ? 'email' : undefined
}
