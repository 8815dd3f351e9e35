import type { Context } from '#src/context.ts'
import { revokeUser } from '#src/directory/users/revocation.ts'
import { seeOther } from '#src/http/answer.ts'
import type { Call } from '#src/http/call.ts'
import type { LoginId } from '#src/lib/ids.ts'
import { iso } from '#src/lib/text.ts'
import { othersRun } from '#src/lib/turn.ts'
import type { AccountPage } from '#src/pages/data.ts'
import { findActiveSession, listUserSessions } from '#src/sessions/list-store.ts'
import { listUserLogins } from '#src/sessions/login-store.ts'
import { beginLogOut, logOut, revokeMost, revokeSession } from '#src/sessions/service.ts'
import type { Queries } from '#src/storage/store.ts'
import { openForm, ownPath, type Viewer } from './viewer.ts'

type SignedIn = Pick<
  AccountPage,
  'logins' | 'sessions' | 'now' | 'login_action' | 'session_action' | 'others_action'
>

/**
 * Lists the browsers in which the user is signed in, each with its sessions at clients. A second list
 * contains the sessions whose login has ended.
 */
export const listSignedIn = async (
  context: Context,
  call: Call,
  { user, login }: Viewer,
): Promise<SignedIn> => {
  const now = context.clock.now()
  const locate = await context.places.open()
  const [logins, sessions] = await context.store.read(q =>
    Promise.all([listUserLogins(q, user.id, now), listUserSessions(q, user.id, now)]),
  )
  const rows = sessions.map(({ id, login_id, client_name, user_agent, ip_address, ...session }) => ({
    id,
    login_id,
    client_name,
    user_agent,
    ip_address,
    location: locate(ip_address, call.locale) || session.location,
    last_active_at: iso(session.last_active_at),
  }))
  const browsers = logins.map(({ id, user_agent, ip_address, signed_in_at }) => ({
    id,
    user_agent,
    ip_address,
    location: locate(ip_address, call.locale),
    signed_in_at: iso(signed_in_at),
    current: id === login.id,
    sessions: rows.filter(({ login_id }) => login_id === id),
  }))
  const others = rows.filter(({ login_id }) => !logins.some(({ id }) => id === login_id))
  return {
    logins: browsers.toSorted((a, b) => Number(b.current) - Number(a.current)),
    sessions: others,
    now,
    login_action: ownPath(call, '/account/logins'),
    session_action: ownPath(call, '/account/sessions'),
    ...(browsers.length + others.length > 1 && { others_action: ownPath(call, '/account/logins/others') }),
  }
}

const loginOf =
  ({ id: user_id, email, organization_id }: Viewer['user']) =>
  ({ id }: { id: LoginId }) => ({ id, user_id, email, organization_id })

/** Ends one login of the user and the sessions that came from it. Ignores a login of another user. */
export const postLogins =
  (context: Context) =>
  async (call: Call): Promise<Response> => {
    const { viewer, form } = await openForm(context, call)
    const { user } = viewer
    const chosenOf = async (q: Queries) => {
      const logins = await listUserLogins(q, user.id, context.clock.now())
      return logins.filter(({ id }) => id === form.get('login_id')).map(loginOf(user))
    }
    await beginLogOut(context, await context.store.read(chosenOf), call)
    await context.store.write(async tx => logOut(context, tx, await chosenOf(tx), call))
    return seeOther(ownPath(call, '/account?notice=login_ended'))
  }

/** Maximum number of logins that one write ends. On SQLite all other requests wait for that write. */
const PORTION = 50

/**
 * Ends all logins and sessions of the user except those of this browser, in which the user stays signed
 * in.
 */
export const postOtherLogins =
  (context: Context) =>
  async (call: Call): Promise<Response> => {
    const { viewer } = await openForm(context, call)
    const { user, login } = viewer
    const { id: user_id, email } = user
    const by = { actor: { id: user_id, email }, client_info: call, reason: 'user' }
    const othersOf = async (q: Queries) => {
      const logins = await listUserLogins(q, user_id, context.clock.now())
      return logins.filter(({ id }) => id !== login.id)
    }
    await revokeMost(context, { user_id, except_login_id: login.id }, by)
    const known = await context.store.read(othersOf)
    for (let start = 0; start < known.length; start += PORTION) {
      const some = known.slice(start, start + PORTION).map(loginOf(user))
      await context.store.write(tx => logOut(context, tx, some, call))
      await othersRun()
    }
    await context.store.write(async tx => {
      const others = await othersOf(tx)
      await logOut(context, tx, others.map(loginOf(user)), call)
      await revokeUser(context, tx, { user_id, except_login_id: login.id }, by)
    })
    return seeOther(ownPath(call, '/account?notice=others_ended'))
  }

/**
 * Ends a session at one client, and the login that the session came from. Ignores a session that has ended or
 * belongs to another user.
 */
export const postSessions =
  (context: Context) =>
  async (call: Call): Promise<Response> => {
    const { viewer, form } = await openForm(context, call)
    const { user } = viewer
    const by = { actor: { id: user.id, email: user.email }, client_info: call, reason: 'user' }
    await context.store.write(async tx => {
      const session = await findActiveSession(tx, {
        session_id: form.get('session_id') ?? '',
        organization_id: user.organization_id,
        now: context.clock.now(),
      })
      if (session?.user_id === user.id) await revokeSession(context, tx, session, by)
    })
    return seeOther(ownPath(call, '/account?notice=session_ended'))
  }
