import { listGrants } from '#src/authorize/consent-store.ts'
import type { Context } from '#src/context.ts'
import { listAccounts } from '#src/directory/identity-providers/account-store.ts'
import { settingsOf } from '#src/directory/organizations/settings.ts'
import { listFactors } from '#src/directory/users/factors/store.ts'
import { pictureContent } from '#src/directory/users/picture.ts'
import { userAnswer } from '#src/directory/users/schema.ts'
import { deleteUser } from '#src/directory/users/service.ts'
import { roleNames } from '#src/directory/users/store.ts'
import { acceptedTerms } from '#src/directory/users/terms.ts'
import { seeOther } from '#src/http/answer.ts'
import type { Call } from '#src/http/call.ts'
import { clearCookie, withCookies } from '#src/http/cookies.ts'
import { foldIdentifier } from '#src/lib/email.ts'
import { isAdministrative } from '#src/lib/permission.ts'
import { iso, isoOrNull } from '#src/lib/text.ts'
import type { AccountDataPage } from '#src/pages/data.ts'
import { PageError } from '#src/pages/error-page.ts'
import { render } from '#src/pages/render.ts'
import { defaultBrand } from '#src/pages/themes.ts'
import { listUserSessions } from '#src/sessions/list-store.ts'
import { listUserLogins } from '#src/sessions/login-store.ts'
import { listLogins } from '#src/sessions/logins.ts'
import { listRemembered } from '#src/sessions/remembered-store.ts'
import { chargeBrowser } from '#src/sign-in/known-browsers.ts'
import { frameOf, noticeOf } from './frame.ts'
import { type OwnEvent, readOwnEvents } from './store.ts'
import { openFreshForm, ownPath, permit, requireViewer, type Viewer } from './viewer.ts'

const PAGE = '/account/data'

/**
 * Returns `possible` when the user may delete the account. Returns `administrator` when an administrator has
 * to delete it. Returns undefined when the organization does not offer deletion. A user with more permissions
 * than the role `user` counts as an administrator. Such users cannot delete their own accounts, so that one
 * administrator remains.
 */
const deletionOf = ({ organization, permissions }: Viewer): AccountDataPage['deletion'] => {
  if (!settingsOf(organization).self_deletion) return undefined
  return isAdministrative(permissions) ? 'administrator' : 'possible'
}

const dataPage = (context: Context, call: Call, viewer: Viewer, error?: 'username'): Response => {
  const deletion = deletionOf(viewer)
  const notice = error ? undefined : noticeOf(call, ['confirmed'])
  return render(
    'account-data',
    {
      ...frameOf(context, call, viewer),
      username: viewer.user.username,
      download_action: ownPath(call, '/account/data/download'),
      delete_action: ownPath(call, '/account/data/delete'),
      ...(deletion && { deletion }),
      ...(error && { error: { code: error } }),
      ...(notice && { notice }),
    },
    { locale: call.locale, status: error ? 400 : 200 },
  )
}

export const getData =
  (context: Context) =>
  async (call: Call): Promise<Response> => {
    const viewer = await requireViewer(context, call, PAGE)
    if (viewer instanceof Response) return viewer
    permit(viewer, 'profile:read')
    return dataPage(context, call, viewer)
  }

/**
 * Returns an event as the user's download shows it. IP address and user agent are left out when another user
 * or a client caused the event, because they are not data about this user. They are included when nobody was
 * authenticated, such as in a failed login.
 */
const eventOf = (
  { id }: Viewer['user'],
  { actor_id, timestamp, ip_address, user_agent, ...event }: OwnEvent,
) => ({
  ...event,
  ...((actor_id === id || actor_id === null) && { ip_address, user_agent }),
  timestamp: iso(timestamp),
})

/**
 * Number of writes that a download takes from the budget `commit` (http/rate-limits.ts). A download takes up
 * to 0.2 s, about the time of 20 writes.
 */
const COST = 20

/** Returns the file of a download. Each event is a line of its own. */
const fileOf = (data: Record<string, unknown>, events: readonly string[]): string => {
  const text = JSON.stringify({ ...data, events: [] }, null, 2)
  const [end, list] = ['[]\n}', events.map(event => `\n    ${event}`).join()]
  return list === '' ? text : `${text.slice(0, -end.length)}[${list}\n  ]\n}`
}

/**
 * Downloads the data stored about the user. The file contains all attributes, even those that the user does
 * not see on a page. It lacks secrets that would allow a login, and has only the latest 10,000 events and the
 * newest 100 active sessions. The form requires a recent authentication, because a stranger at a signed-in
 * browser must not get the data.
 */
export const postDownload =
  (context: Context) =>
  async (call: Call): Promise<Response> => {
    const opened = await openFreshForm(context, call, { page: PAGE, back: `${PAGE}?notice=confirmed` })
    if (opened instanceof Response) return opened
    const { viewer } = opened
    permit(viewer, 'profile:read')
    const { user, organization } = viewer
    await chargeBrowser(context, call, { organization_id: organization.id, kind: 'commit', units: COST })
    const data = await context.store.read(async q => ({
      user: {
        ...userAnswer({ ...user, roles: await roleNames(q, user.id) }),
        ...(user.pending_email && { pending_email: user.pending_email }),
        ...(user.picture && { picture: await pictureContent(q, user.picture) }),
      },
      organization: { id: organization.id, name: organization.display_name },
      terms: await acceptedTerms(q, user.id),
      factors: (await listFactors(q, user.id)).map(({ id, type, name, created_at, last_used_at }) => ({
        id,
        type,
        name,
        created_at: iso(created_at),
        last_used_at: isoOrNull(last_used_at),
      })),
      external_accounts: (await listAccounts(q, user.id)).map(({ account, provider }) => ({
        provider: provider.name,
        subject: account.subject,
        label: account.label,
        created_at: iso(account.created_at),
      })),
      applications: (await listGrants(q, user.id)).map(({ created_at, ...grant }) => ({
        ...grant,
        created_at: iso(created_at),
      })),
      remembered_browsers: (await listRemembered(q, user.id, context.clock.now())).map(browser => ({
        ip_address: browser.ip_address,
        user_agent: browser.user_agent,
        created_at: iso(browser.created_at),
        expires_at: iso(browser.expires_at),
      })),
      browsers: (await listUserLogins(q, user.id, context.clock.now())).map(login => ({
        ip_address: login.ip_address,
        user_agent: login.user_agent,
        signed_in_at: iso(login.signed_in_at),
        expires_at: iso(login.expires_at),
        acr: login.acr,
        amr: login.amr,
      })),
      sessions: (await listUserSessions(q, user.id, context.clock.now())).map(session => ({
        id: session.id,
        client_id: session.client_id,
        scope: session.scope,
        ip_address: session.ip_address,
        user_agent: session.user_agent,
        location: session.location,
        started_at: iso(session.started_at),
        last_active_at: iso(session.last_active_at),
        expires_at: iso(session.expires_at),
      })),
    }))
    const events: string[] = []
    await readOwnEvents(context.store, user.id, rows => {
      events.push(...rows.map(row => JSON.stringify(eventOf(user, row))))
    })
    return new Response(fileOf({ made_at: iso(context.clock.now()), ...data }, events), {
      headers: {
        'content-type': 'application/json; charset=utf-8',
        'content-disposition': `attachment; filename="${user.username}.json"`,
        'cache-control': 'no-store',
      },
    })
  }

/** Deletes the account for good. The user types the user name to prevent a mistake. */
export const postDelete =
  (context: Context) =>
  async (call: Call): Promise<Response> => {
    const opened = await openFreshForm(context, call, { page: PAGE, change: ['account-data.deletion'] })
    if (opened instanceof Response) return opened
    const { viewer, form } = opened
    permit(viewer, 'profile:update')
    if (deletionOf(viewer) !== 'possible') throw new PageError('not_allowed', 403)
    const { id, email, username_fold } = viewer.user
    const { slug } = viewer.organization
    if (foldIdentifier(form.get('username') ?? '') !== username_fold)
      return dataPage(context, call, viewer, 'username')
    await deleteUser(context, id, { actor: { id, email }, client_info: call })
    const { config, cookies, store } = context
    const others = await store.read(q => listLogins(context, q, viewer.login_hash))
    const isLast = others.length === 0
    return withCookies(
      seeOther(`/account/deleted?organization=${slug}`),
      isLast ? [clearCookie(config, cookies.login)] : [],
    )
  }

export const getDeleted =
  (context: Context) =>
  async (call: Call): Promise<Response> =>
    render(
      'deleted',
      { brand: defaultBrand(context), login_url: ownPath(call, '/account') },
      { locale: call.locale },
    )
