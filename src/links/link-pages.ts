import type { Core } from '#src/context.ts'
import { countAdmins } from '#src/directory/roles/store.ts'
import { consumeLink, findLink, type Link } from '#src/directory/users/link-store.ts'
import { readForm } from '#src/http/body.ts'
import type { Call } from '#src/http/call.ts'
import { browserHash, findCookie, setCookie } from '#src/http/cookies.ts'
import { hashSecret, newSecret } from '#src/lib/secrets.ts'
import { checkOrigin, issueCsrf, verifyCsrf } from '#src/pages/csrf.ts'
import { PageError } from '#src/pages/error-page.ts'
import { parseForm } from '#src/protocol/oauth/parameters.ts'
import type { Queries, Transaction } from '#src/storage/store.ts'
import { paths } from './links.ts'

const gone = (): PageError => new PageError('link', 410)
// When an administrator exists, a set-up link has no effect, and its error page links to the login.
const isSetUp = (): PageError => new PageError('set_up', 410, { retry_url: '/account' })

/**
 * The page of a link. Opening the page does not use the link up, because mail scanners and previews open
 * links.
 */
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
 * Opens a link by the token in its URL, or by the cookie that keeps the token during a login. The form is
 * bound to the browser cookie. If the browser has no such cookie, `cookies` contains the Set-Cookie line for
 * this cookie.
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
 * Opens the posted form of a link's page. Within the write that acts on the link, `check` verifies that the
 * link is still valid, and `use` uses the link up.
 */
export const openLinkForm = async (
  context: Core,
  call: Call,
  kind: Link['kind'],
): Promise<
  LinkPage & {
    form: ReadonlyMap<string, string>
    check(q: Queries): Promise<Link>
    use(tx: Transaction): Promise<void>
  }
> => {
  const { request } = call
  checkOrigin(context.config, request)
  const form = parseForm(await readForm(request))
  const csrf_token = form.get('csrf_token') ?? ''
  const token = form.get('token') ?? ''
  const subject = verifyCsrf(context, kind, browserHash(context, request), csrf_token)
  if (subject !== hashSecret(token)) throw new PageError('forbidden', 403)
  call.page = `${paths[kind]}?token=${token}`
  const check = (q: Queries) => getLink(q, context, kind, token)
  const link = await context.store.read(check)
  const use = async (tx: Transaction) => {
    // The count already includes the administrator that this write creates.
    if (kind === 'set_up' && (await countAdmins(tx)) > 1) throw isSetUp()
    if (!(await consumeLink(tx, keyOf(context, kind, token)))) throw gone()
  }
  return { link, action: paths[kind], token, csrf_token, form, check, use }
}
