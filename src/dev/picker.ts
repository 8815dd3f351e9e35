import type { Context, LoginStep } from '#src/context.ts'
import { findOrganization } from '#src/directory/organizations/store.ts'
import { findUser, findUserForLogin } from '#src/directory/users/store.ts'
import { assetUrl } from '#src/http/assets.ts'
import type { Call } from '#src/http/call.ts'
import { browserHash } from '#src/http/cookies.ts'
import { verifyCsrf } from '#src/http/csrf.ts'
import { PageError } from '#src/http/page-boundary.ts'
import { seeOther } from '#src/oauth/advance.ts'
import { findFlow, visitorOf } from '#src/oauth/flow.ts'
import { proceedAs } from '#src/oauth/proven.ts'
import { PASSWORD } from '#src/sign-in/log-in.ts'
import { firstUsers } from './store.ts'

export const PICK = '/dev/pick'
const SHOWN = 50

/** Where a person is logged in without a password. */
const pickUrl = ({ handle, csrf_token }: LoginStep, user_id: string): string =>
  `${PICK}?${new URLSearchParams({ request: handle, csrf_token, user: user_id })}`

/**
 * In the place of the login form: every user is one click away, under a stable `data-testid`. With `auto_login` a `login_hint`
 * logs in at once. `?form` in the page's address, as the link below the users has it, is the form of production.
 */
export const loginPicker =
  (context: Context, { auto_login }: { auto_login: boolean }) =>
  async (step: LoginStep): Promise<Response | undefined> => {
    if (new URL(step.request.url).searchParams.has('form')) return undefined
    const { login_hint: hint, organization_id } = step
    const hinted =
      auto_login && hint !== undefined
        ? await context.store.read(q => findUserForLogin(q, organization_id, hint))
        : undefined
    if (hinted?.enabled) return seeOther(pickUrl(step, hinted.id))
    const users = await context.store.read(q => firstUsers(q, [organization_id], SHOWN))
    const organization = await findOrganization(context.store, organization_id)
    return page(step, organization?.display_name ?? '', users)
  }

type Users = Awaited<ReturnType<typeof firstUsers>>

const page = (step: LoginStep, organization: string, users: Users): Response => {
  const text = Bun.escapeHTML
  const rows = users
    .map(
      ({ id, username, email, first_name, last_name, enabled }) =>
        `<a class="button secondary" data-testid="user-${text(username)}" href="${text(pickUrl(step, id))}"${enabled ? '' : ' aria-disabled="true"'}>
      <span>${text(`${first_name} ${last_name}`.trim() || username)} · ${text(email)}</span></a>`,
    )
    .join('\n      ')
  const html = `<!doctype html>
<html lang="en">
<head>
  <meta charset="utf-8">
  <meta name="viewport" content="width=device-width, initial-scale=1">
  <meta name="color-scheme" content="light dark">
  <title>Development: choose a user</title>
  <link rel="stylesheet" href="${assetUrl('themes/default.css')}">
  <link rel="stylesheet" href="${assetUrl('style.css')}">
</head>
<body class="login">
  <div class="frame">
    <main class="card" data-testid="user-picker">
      <h1>Choose a user</h1>
      <p class="lead">Development mode: ${text(step.client_name ?? 'your account')} in ${text(organization)}. No password is asked for.</p>
      <div class="providers">
      ${rows}
      </div>
      <p><a data-testid="password-form" href="/oauth/login?request=${text(step.handle)}&amp;form">Log in with a password</a></p>
    </main>
  </div>
</body>
</html>
`
  return new Response(html, {
    headers: {
      'content-type': 'text/html; charset=utf-8',
      'cache-control': 'no-store',
      'referrer-policy': 'no-referrer',
      'content-security-policy':
        "default-src 'none'; style-src 'self'; base-uri 'none'; frame-ancestors 'none'",
    },
  })
}

/** The browser that was shown the picker, and no other, goes on as the user whom it picked. */
export const pick =
  (context: Context) =>
  async (call: Call): Promise<Response> => {
    const query = new URL(call.request.url).searchParams
    const holder = browserHash(context.config, call.request)
    const handle = verifyCsrf(context, 'login', holder, query.get('csrf_token') ?? undefined)
    if (query.get('request') !== handle) throw new PageError('forbidden', 403)
    const visitor = visitorOf(context, call)
    const flow = await findFlow(context, visitor, handle)
    const user = await context.store.read(q => findUser(q, flow.organization.id, query.get('user') ?? ''))
    if (!user?.enabled) throw new PageError('bad_request', 400)
    return proceedAs(context, visitor, flow, { user, ...PASSWORD })
  }
