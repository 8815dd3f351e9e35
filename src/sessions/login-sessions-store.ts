import { and, eq, gte, inArray, isNull, notExists, or, sql } from 'drizzle-orm'
import type { LoginId, SessionId, UserId } from '#src/lib/ids.ts'
import { prepared, type Queries } from '#src/storage/store.ts'
import type { Tables } from '#src/storage/tables.ts'

/** Condition that a code of the login started or extended the session after the user had signed in. */
const shows = ({ logins, sessions }: Pick<Tables, 'logins' | 'sessions'>) =>
  or(
    gte(sessions.started_at, logins.signed_in_at),
    // A code extends only a session without a refresh token.
    and(isNull(sessions.refresh_hash), gte(sessions.last_active_at, logins.signed_in_at)),
  )

const selectUnrecorded = prepared((q, { logins, sessions }) =>
  q
    .select({ id: logins.id })
    .from(logins)
    .where(
      and(
        eq(logins.id, sql.placeholder('login_id')),
        isNull(logins.recorded_at),
        notExists(
          q
            .select({ id: sessions.id })
            .from(sessions)
            .where(and(eq(sessions.login_id, logins.id), shows({ logins, sessions }))),
        ),
      ),
    ),
)

/**
 * True when the login appears in no audit event: it has no event of its own, and since the user signed in, no
 * client has exchanged a code of this login, which would have recorded the event `user.login`.
 */
export const isUnrecorded = async (q: Queries, login_id: LoginId): Promise<boolean> =>
  (await selectUnrecorded(q, { login_id })).length > 0

/**
 * Returns the logins that have no audit event of their own and that the event of one of these sessions shows.
 */
export const listShownBy = async (q: Queries, session_ids: SessionId[]): Promise<LoginId[]> => {
  const { logins, sessions } = q.tables
  const found = await q
    .select({ id: logins.id })
    .from(sessions)
    .innerJoin(logins, eq(logins.id, sessions.login_id))
    .where(and(inArray(sessions.id, session_ids), isNull(logins.recorded_at), shows(q.tables)))
  return found.map(({ id }) => id)
}

/** Returns a session of this user, active or ended, with the login that it came from. */
export const findSessionOf = async (q: Queries, session: { session_id: SessionId; user_id: UserId }) => {
  const { sessions, users } = q.tables
  const [found] = await q
    .select({ id: sessions.id, login_id: sessions.login_id, user_id: users.id, email: users.email })
    .from(sessions)
    .innerJoin(users, eq(users.id, sessions.user_id))
    .where(and(eq(sessions.id, session.session_id), eq(sessions.user_id, session.user_id)))
  return found
}
