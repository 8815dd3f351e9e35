import type { Context } from '#src/context.ts'
import type { Call } from '#src/http/call.ts'
import { clearCookie, cookieNames, withCookies } from '#src/http/cookies.ts'
import { render } from '#src/http/pages.ts'
import { houseBrand } from '#src/http/themes.ts'
import { iso } from '#src/lib/text.ts'
import { seeOther } from '#src/oauth/advance.ts'
import { personOf } from '#src/oauth/step-pages.ts'
import { openLocator } from '#src/sessions/location.ts'
import { listLogins } from '#src/sessions/logins.ts'
import { logOut, revokeSession } from '#src/sessions/service.ts'
import { findActiveSession, listUserSessions } from '#src/sessions/store.ts'
import { frameOf, noticeOf } from './frame.ts'
import { identitiesOf } from './identities.ts'
import { enter, openAnyForm, openForm, permit } from './person.ts'

const notices = ['password_changed', 'session_ended', 'account_linked', 'account_unlinked'] as const

/** A person's own page: who I am, where I am signed in. A login that no client asked for ends here. */
export const getAccount =
  (context: Context) =>
  async (call: Call): Promise<Response> => {
    const person = await enter(context, call)
    if (person instanceof Response) return person
    permit(person, 'profile:read')
    const { user, organization, login, permissions } = person
    const now = context.clock.now()
    const sessions = await context.store.read(q => listUserSessions(q, user.id, now))
    const locate = await openLocator(context)
    const identities = await identitiesOf(context, person)
    const notice = noticeOf(call, notices)
    return render(
      'account',
      {
        ...frameOf(context, call, person),
        user: {
          ...personOf(user),
          email_verified: user.email_verified,
          organization: organization.display_name,
        },
        sessions: sessions.map(session => ({
          id: session.id,
          client_name: session.client_name,
          user_agent: session.user_agent,
          location: locate(session.ip_address, call.locale) || session.location,
          ip_address: session.ip_address,
          last_active_at: iso(session.last_active_at),
          current: session.login_id === login.id,
        })),
        now,
        session_action: '/account/sessions',
        ...(permissions.has('profile:update') &&
          user.password_hash !== null && { change_password_url: '/account/change-password' }),
        ...(identities && { identities }),
        ...(notice && { notice }),
      },
      { locale: call.locale },
    )
  }

/** Signs out of one client. A session that is not the person's own is left alone, like one that has ended. */
export const postSessions =
  (context: Context) =>
  async (call: Call): Promise<Response> => {
    const { person, form } = await openForm(context, call)
    const { user } = person
    const by = { actor: { id: user.id, email: user.email }, origin: call, reason: 'user' }
    await context.store.write(async tx => {
      const session = await findActiveSession(tx, {
        session_id: form.get('session_id') ?? '',
        organization_id: user.organization_id,
        now: context.clock.now(),
      })
      if (session?.user_id === user.id) await revokeSession(context, tx, session, by)
    })
    return seeOther('/account?notice=session_ended')
  }

/** Signs out of everything in this browser. */
export const postLogout =
  (context: Context) =>
  async (call: Call): Promise<Response> => {
    const { login_hash } = await openAnyForm(context, call)
    await context.store.write(async tx =>
      logOut(context, tx, await listLogins(context, tx, login_hash), call),
    )
    const { config } = context
    return withCookies(seeOther('/account/signed-out'), [clearCookie(config, cookieNames(config).login)])
  }

export const getSignedOut =
  (context: Context) =>
  async (call: Call): Promise<Response> =>
    render(
      'logged-out',
      { brand: houseBrand(context), request_id: call.request_id, login_url: '/account' },
      { locale: call.locale },
    )
