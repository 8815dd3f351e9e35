import type { Context } from '#src/context.ts'
import { countAdmins } from '#src/directory/roles/store.ts'
import { recordUser } from '#src/directory/users/record.ts'
import type { UserChangedBy } from '#src/directory/users/service.ts'
import type { UserRow } from '#src/directory/users/store.ts'
import { readForm } from '#src/http/body.ts'
import type { Call } from '#src/http/call.ts'
import { browserHash, cookieNames, findCookie, setCookie } from '#src/http/cookies.ts'
import { conflict } from '#src/lib/app-error.ts'
import { DAY } from '#src/lib/duration.ts'
import { DEFAULT_ORGANIZATION } from '#src/lib/ids.ts'
import { hashSecret, newSecret } from '#src/lib/secrets.ts'
import { LINK_LIFETIME } from '#src/mail/outbox.ts'
import { PageError } from '#src/pages/boundary.ts'
import { checkOrigin, issueCsrf, verifyCsrf } from '#src/pages/csrf.ts'
import { parseForm } from '#src/protocol/oauth/parameters.ts'
import type { Queries, Transaction } from '#src/storage/store.ts'
import { consumeLink, findLink, insertLink, type Link } from './store.ts'

type Base = Pick<Context, 'config' | 'store' | 'clock'>

/** Mail is not always read at once, and this one lets nobody in. */
const VERIFY_FOR = DAY

const paths = {
  set_up: '/account/set-up',
  sign_in: '/account/sign-in',
  reset_password: '/account/reset-password',
  verify_email: '/account/verify-email',
} as const

const createLink = async (
  { config, store, clock }: Base,
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

/** The address where the first admin of the instance is created: works once, for 30 minutes. */
export const createSetUpLink = (base: Base): Promise<string> =>
  createLink(base, { kind: 'set_up', user_id: null, organization_id: DEFAULT_ORGANIZATION })

type Holder = Pick<UserRow, 'id' | 'organization_id'>

/**
 * The address where a user who is locked out chooses a new password: works once, for 30 minutes. Whoever has it can be
 * that user: it is recorded who made it. 409 for a disabled user, whom it would not let in.
 */
export const createSignInLink = async (
  context: Context,
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

/** The address where whoever asked for it by mail chooses one. */
export const createResetLink = (
  base: Base,
  tx: Transaction,
  { id: user_id, organization_id }: Holder,
): Promise<string> => createLink(base, { kind: 'reset_password', user_id, organization_id }, tx)

/** Shows that the address is the user's: works once, for a day, and for this address alone. */
export const createVerifyLink = (
  base: Base,
  tx: Transaction,
  { id: user_id, organization_id }: Holder,
  email: string,
): Promise<string> => createLink(base, { kind: 'verify_email', user_id, organization_id, email }, tx)

const gone = (): PageError => new PageError('link', 410)
/** There is one first admin, however that one came to be: whoever made the account signs in. */
const isSetUp = (): PageError => new PageError('set_up', 410, { retry_url: '/account' })

/** A page of a link: opening it uses nothing up, for mail scanners and previews open links too. */
export interface LinkPage {
  link: Link
  action: string
  token: string
  csrf_token: string
}

const keyOf = (context: Context, kind: Link['kind'], token: string) => ({
  link_hash: hashSecret(token),
  kind,
  now: context.clock.now(),
})

const getLink = async (q: Queries, context: Context, kind: Link['kind'], token: string): Promise<Link> => {
  if (kind === 'set_up' && (await countAdmins(q)) > 0) throw isSetUp()
  const link = await findLink(q, keyOf(context, kind, token))
  if (!link) throw gone()
  return link
}

/**
 * The link that was opened, now or before its owner signed in, and the cookie that binds its form to this browser if there was
 * none.
 */
export const openLink = async (
  context: Context,
  { request }: Call,
  kind: Link['kind'],
): Promise<LinkPage & { cookies: string[] }> => {
  const { config } = context
  const token =
    new URL(request.url).searchParams.get('token') ?? findCookie(request, cookieNames(config).link) ?? ''
  const link = await context.store.read(q => getLink(q, context, kind, token))
  const fresh = newSecret()
  const known = browserHash(config, request)
  const csrf_token = issueCsrf(context, kind, known ?? hashSecret(fresh), link.link_hash)
  const cookies = known ? [] : [setCookie(config, cookieNames(config).browser, fresh)]
  return { link, action: paths[kind], token, csrf_token, cookies }
}

/**
 * The form of a link's page. In the write that does what the link is for, `check` says that it is there still, and `use`
 * uses it up.
 */
export const openLinkForm = async (
  context: Context,
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
  const subject = verifyCsrf(context, kind, browserHash(context.config, request), csrf_token)
  if (subject !== hashSecret(token)) throw new PageError('forbidden', 403)
  const check = (q: Queries) => getLink(q, context, kind, token)
  const link = await context.store.read(check)
  const use = async (tx: Transaction) => {
    // The one that this link makes is among them.
    if (kind === 'set_up' && (await countAdmins(tx)) > 1) throw isSetUp()
    if (!(await consumeLink(tx, keyOf(context, kind, token)))) throw gone()
  }
  return { link, action: paths[kind], token, csrf_token, form, check, use }
}
