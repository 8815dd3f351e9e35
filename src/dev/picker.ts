import { proceedAs } from '#src/authorize/authentication-result.ts'
import { browserSessionOf, findFlow } from '#src/authorize/flow.ts'
import type { Context, LoginStep } from '#src/context.ts'
import { brandOf } from '#src/directory/organizations/brand.ts'
import { findOrganization } from '#src/directory/organizations/store.ts'
import { findUser, findUserForLogin, roleNamesOf, type UserWithRoles } from '#src/directory/users/store.ts'
import { seeOther } from '#src/http/answer.ts'
import type { Call } from '#src/http/call.ts'
import { browserHash } from '#src/http/cookies.ts'
import { assetUrl } from '#src/pages/assets.ts'
import { verifyCsrf } from '#src/pages/csrf.ts'
import type { Brand } from '#src/pages/data.ts'
import { PageError } from '#src/pages/error-page.ts'
import { sheetsOf } from '#src/pages/render.ts'
import { defaultBrand } from '#src/pages/themes.ts'
import { initials, tone } from '#src/pages/view.ts'
import { PASSWORD } from '#src/sign-in/sign-in.ts'
import { firstUsers } from './store.ts'

export const PICK = '/dev/pick'
/**
 * Maximum number of users in the list, so that the list needs little scrolling. A search finds other users.
 */
const SHOWN = 50
/** Query parameter of the form that searches a long list. */
const SEARCH = 'search'

/** Returns the URL that signs a user in without a password. */
const pickUrl = ({ handle, csrf_token }: LoginStep, user_id: string): string =>
  `${PICK}?${new URLSearchParams({ request: handle, csrf_token, user: user_id })}`

/**
 * Shows a list of users in place of the login form. Each user has a stable `data-testid`. With `auto_login`,
 * the enabled user whom the `login_hint` names is signed in at once. A link below the list adds the parameter
 * `form` to the URL. A URL with this parameter shows the login form of production.
 */
export const loginPicker =
  ({ auto_login }: { auto_login: boolean }) =>
  async (context: Context, step: LoginStep): Promise<Response | undefined> => {
    if (new URL(step.request.url).searchParams.has('form')) return undefined
    const { login_hint: hint, organization_id } = step
    const hinted =
      auto_login && hint !== undefined
        ? await context.store.read(q => findUserForLogin(q, organization_id, hint))
        : undefined
    if (hinted?.enabled) return seeOther(pickUrl(step, hinted.id))
    const search = new URL(step.request.url).searchParams.get(SEARCH)?.slice(0, 100)
    const users = await context.store.read(async q =>
      roleNamesOf(q, await firstUsers(q, [organization_id], SHOWN, search)),
    )
    const organization = await findOrganization(context.store, organization_id)
    return page(step, organization ? brandOf(context, organization) : defaultBrand(context), users, search)
  }

const text = Bun.escapeHTML

const row = (
  step: LoginStep,
  { id, username, email, first_name, last_name, enabled, roles }: UserWithRoles,
): string => {
  const name = `${first_name} ${last_name}`.trim() || username
  return `<li><a class="choice" data-testid="user-${text(username)}" href="${text(pickUrl(step, id))}"${enabled ? '' : ' aria-disabled="true"'}>
        <span class="avatar tone-${tone(email + username)}" aria-hidden="true">${text(initials(name))}</span>
        <span class="person"><span class="person-name">${text(name)}</span><span class="person-detail">${text(email)}</span><span class="person-detail">${text(roles.join(', '))}</span></span>
      </a></li>`
}

/**
 * Returns the form that searches for users who are not in the list. Returns '' when the list of all users is
 * not full.
 */
const searchForm = ({ handle }: LoginStep, users: readonly UserWithRoles[], search = ''): string =>
  users.length < SHOWN && search === ''
    ? ''
    : `<form action="/oauth/login" class="field">
        <input type="hidden" name="request" value="${text(handle)}">
        <label for="${SEARCH}">Search by username or email</label>
        <input class="input" id="${SEARCH}" name="${SEARCH}" type="search" value="${text(search)}">
      </form>`

const page = (step: LoginStep, brand: Brand, users: readonly UserWithRoles[], search?: string): Response => {
  const html = `<!doctype html>
<html lang="en">
<head>
  <meta charset="utf-8">
  <meta name="viewport" content="width=device-width, initial-scale=1">
  <meta name="color-scheme" content="light dark">
  <title>Development: choose a user</title>
  <link rel="icon" type="image/svg+xml" href="${assetUrl('gate.svg')}">
  ${sheetsOf(brand)
    .map(url => `<link rel="stylesheet" href="${url}">`)
    .join('\n  ')}
</head>
<body class="login">
  <div class="frame">
    <main class="card" data-testid="user-picker">
      <div class="brand"><span class="monogram" aria-hidden="true">${text(initials(brand.name))}</span><span class="brand-name">${text(brand.name)}</span></div>
      <h1>Choose a user</h1>
      <p class="lead">To continue to ${text(step.client_name ?? 'your account')}. In development mode no password is asked for.</p>
      ${searchForm(step, users, search)}
      <ul class="choices">
      ${users.map(user => row(step, user)).join('\n      ')}
      </ul>
      <a class="button quiet" data-testid="password-form" href="/oauth/login?request=${text(step.handle)}&amp;form">Sign in with a password</a>
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
        "default-src 'none'; style-src 'self'; img-src 'self'; base-uri 'none'; frame-ancestors 'none'",
    },
  })
}

/**
 * Signs in the chosen user. Only the browser that has got the list may choose a user. Otherwise another site
 * could sign a user in.
 */
export const pick =
  (context: Context) =>
  async (call: Call): Promise<Response> => {
    const query = new URL(call.request.url).searchParams
    const holder = browserHash(context, call.request)
    const handle = verifyCsrf(context, 'login', holder, query.get('csrf_token') ?? undefined)
    if (query.get('request') !== handle) throw new PageError('forbidden', 403)
    const browser = browserSessionOf(context, call)
    const flow = await findFlow(context, browser, handle)
    const user = await context.store.read(q => findUser(q, flow.organization.id, query.get('user') ?? ''))
    if (!user?.enabled) throw new PageError('bad_request', 400)
    return proceedAs(context, browser, flow, { user, ...PASSWORD })
  }
