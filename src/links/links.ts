import type { Core } from '#src/context.ts'
import { countAdmins } from '#src/directory/roles/store.ts'
import type { UserChangedBy } from '#src/directory/users/change.ts'
import { consumeLink, findLink, insertLink, type Link } from '#src/directory/users/link-store.ts'
import { recordUser } from '#src/directory/users/record.ts'
import type { UserRow } from '#src/directory/users/store.ts'
import { readForm } from '#src/http/body.ts'
import type { Call } from '#src/http/call.ts'
import { browserHash, findCookie, setCookie } from '#src/http/cookies.ts'
import { conflict } from '#src/lib/app-error.ts'
import { DAY } from '#src/lib/duration.ts'
import { DEFAULT_ORGANIZATION } from '#src/lib/ids.ts'
import { hashSecret, newSecret } from '#src/lib/secrets.ts'
import { LINK_LIFETIME } from '#src/mail/outbox.ts'
import { PageError } from '#src/pages/boundary.ts'
import { checkOrigin, issueCsrf, verifyCsrf } from '#src/pages/csrf.ts'
import { parseForm } from '#src/protocol/oauth/parameters.ts'
import type { Queries, Transaction } from '#src/storage/store.ts'

/** Longer than the other links: mail is not always read at once, and this link allows no login. */
const VERIFY_FOR = DAY

const paths = {
  set_up: '/account/set-up',
  sign_in: '/account/sign-in',
  reset_password: '/account/reset-password',
  verify_email: '/account/verify-email',
} as const

const createLink = async (
  { config, store, clock }: Core,
  link: Pick<Link, 'kind' | 'user_id' | 'organization_id'> & Partial<Pick<Link, 'email' | 'permissions'>>,
  tx?: Transaction,
): Promise<string> => {
  const token = newSecret()
  const now = clock.now()
  const write = (own: Transaction) =>
    insertLink(own, {
      email: null,
      permissions: null,
      ...link,
      link_hash: hashSecret(token),
      created_at: now,
      expires_at: now + (link.kind === 'verify_email' ? VERIFY_FOR : LINK_LIFETIME),
    })
  await (tx ? write(tx) : store.write(write))
  return `${config.url}${paths[link.kind]}?token=${token}`
}

/** Creates the link with which the first administrator is created: single-use, valid for 30 minutes. */
export const createSetUpLink = (context: Core): Promise<string> =>
  createLink(context, { kind: 'set_up', user_id: null, organization_id: DEFAULT_ORGANIZATION })

type Holder = Pick<UserRow, 'id' | 'organization_id'>

/**
 * Creates the link with which a locked-out user chooses a new password: single-use, valid for 30 minutes. Its
 * holder can log in as the user, so an event records its creator.
 *
 * @throws AppError `conflict` for a disabled user
 */
export const createSignInLink = async (
  context: Core,
  tx: Transaction,
  user: Holder & Pick<UserRow, 'enabled'>,
  { caller, ...by }: UserChangedBy,
): Promise<string> => {
  if (!user.enabled) throw conflict('The user is disabled.')
  const { id: user_id, organization_id } = user
  await recordUser(context, tx, by, 'user.updated', user, { fields: ['sign_in_link'] })
  const permissions = caller ? [...caller.permissions] : null
  return createLink(context, { kind: 'sign_in', user_id, organization_id, permissions }, tx)
}

/** Creates the link of a reset mail, with which the user chooses a new password. */
export const createResetLink = (
  context: Core,
  tx: Transaction,
  { id: user_id, organization_id }: Holder,
): Promise<string> => createLink(context, { kind: 'reset_password', user_id, organization_id }, tx)

/** Creates the link that verifies an e-mail address: single-use, valid for a day, for this address only. */
export const createVerifyLink = (
  context: Core,
  tx: Transaction,
  { id: user_id, organization_id }: Holder,
  email: string,
): Promise<string> => createLink(context, { kind: 'verify_email', user_id, organization_id, email }, tx)

const gone = (): PageError => new PageError('link', 410)
// Once an administrator exists, a set-up link has no effect: its page links to the login.
const isSetUp = (): PageError => new PageError('set_up', 410, { retry_url: '/account' })

/** A link's page. Opening it does not use the link up, because mail scanners and previews open links. */
export interface LinkPage {
  link: Link
  action: string
  token: string
  csrf_token: string
}

const keyOf = (context: Core, kind: Link['kind'], token: string) => ({
  link_hash: hashSecret(token),
  kind,
  now: context.clock.now(),
})

const getLink = async (q: Queries, context: Core, kind: Link['kind'], token: string): Promise<Link> => {
  if (kind === 'set_up' && (await countAdmins(q)) > 0) throw isSetUp()
  const link = await findLink(q, keyOf(context, kind, token))
  if (!link) throw gone()
  return link
}

/**
 * Opens a link from its URL, or from the cookie in which it waited for a login. Returns the browser cookie to
 * set when it is missing, because the form is bound to it.
 */
export const openLink = async (
  context: Core,
  { request }: Call,
  kind: Link['kind'],
): Promise<LinkPage & { cookies: string[] }> => {
  const token =
    new URL(request.url).searchParams.get('token') ?? findCookie(request, context.cookies.link) ?? ''
  const link = await context.store.read(q => getLink(q, context, kind, token))
  const fresh = newSecret()
  const known = browserHash(context, request)
  const csrf_token = issueCsrf(context, kind, known ?? hashSecret(fresh), link.link_hash)
  const cookies = known ? [] : [setCookie(context.config, context.cookies.browser, fresh)]
  return { link, action: paths[kind], token, csrf_token, cookies }
}

/**
 * Opens the form of a link's page. Within the write that acts on the link, `check` verifies that it is still
 * valid and `use` consumes it.
 */
export const openLinkForm = async (
  context: Core,
  { request }: Call,
  kind: Link['kind'],
): Promise<
  LinkPage & {
    form: ReadonlyMap<string, string>
    check(q: Queries): Promise<Link>
    use(tx: Transaction): Promise<void>
  }
> => {
  checkOrigin(context.config, request)
  const form = parseForm(await readForm(request))
  const csrf_token = form.get('csrf_token') ?? ''
  const token = form.get('token') ?? ''
  const subject = verifyCsrf(context, kind, browserHash(context, request), csrf_token)
  if (subject !== hashSecret(token)) throw new PageError('forbidden', 403)
  const check = (q: Queries) => getLink(q, context, kind, token)
  const link = await context.store.read(check)
  const use = async (tx: Transaction) => {
    // The count includes the administrator that this link creates.
    if (kind === 'set_up' && (await countAdmins(tx)) > 1) throw isSetUp()
    if (!(await consumeLink(tx, keyOf(context, kind, token)))) throw gone()
  }
  return { link, action: paths[kind], token, csrf_token, form, check, use }
}
