import type { Caller, Core } from '#src/context.ts'
import type { LoginId, OrganizationId, UserId } from '#src/lib/ids.ts'
import type { SessionFilter } from '#src/sessions/filter-store.ts'
import { endUserLogins } from '#src/sessions/login-store.ts'
import { removeRemembered } from '#src/sessions/remembered-store.ts'
import { type RevokedBy, revokeSessions } from '#src/sessions/service.ts'
import { inBatches } from '#src/storage/batches.ts'
import type { Transaction } from '#src/storage/store.ts'
import { removeDevices } from './device-store.ts'
import { removeEmailCode } from './email-code-store.ts'
import { removeSignInLinks } from './link-store.ts'
import { recordUser } from './record.ts'
import { cancelPendingEmail, endProofs, findUser } from './store.ts'

/** Returns the names of the counts that are not 0. */
const namesOf = (counts: Record<string, number>): string[] =>
  Object.entries(counts).flatMap(([name, count]) => (count > 0 ? [name] : []))

/**
 * Deletes a user's sign-in links, e-mail code and remembered browsers. Cancels a pending change of address.
 * Ends first factors that wait for a second factor or a new passkey. Runs when the user's address or
 * `enabled` changes, and when {@link revokeUser} ends the user's logins, because older links and codes must
 * no longer work. Returns the names of what was deleted or cancelled. These names do not include first
 * factors.
 */
export const revokePendingLinks = async (tx: Transaction, user_id: UserId): Promise<string[]> => {
  await endProofs(tx, user_id)
  return namesOf({
    sign_in_link: await removeSignInLinks(tx, user_id),
    pending_email: await cancelPendingEmail(tx, user_id),
    email_code: await removeEmailCode(tx, user_id),
    remembered_browsers: (await removeRemembered(tx, user_id)).length,
  })
}

/**
 * Revokes the user's sessions with `revokeSessions`, at most `limit` of them. Ends the user's logins and
 * pending links. The login `except_login_id` and its sessions continue. Forgets the known browsers, because a
 * thief's known browser would keep its own budget of wrong passwords. The browser in which the user makes the
 * change stays known. A user outside the given `organization_id` loses only the sessions and logins in it.
 * Returns the number of ended sessions, and the kinds of other things that ended, such as `logins`.
 */
export const revokeUser = async (
  context: Core,
  tx: Transaction,
  user: {
    user_id: UserId
    organization_id?: OrganizationId | undefined
    except_login_id?: LoginId | undefined
  },
  by: RevokedBy,
  limit?: number,
): Promise<{ sessions: number; others: string[] }> => {
  const { user_id, organization_id, except_login_id } = user
  const sessions = await revokeSessions(context, tx, user, by, limit)
  const logins = await endUserLogins(tx, user_id, organization_id, except_login_id)
  if (organization_id && !(await findUser(tx, organization_id, user_id)))
    return { sessions, others: namesOf({ logins }) }
  const own = by.actor.id === user_id ? by.client_info.device_hash : undefined
  const known_browsers = await removeDevices(tx, user_id, own)
  const links = await revokePendingLinks(tx, user_id)
  return { sessions, others: [...namesOf({ logins, known_browsers }), ...links] }
}

/**
 * Calls {@link revokeUser} and returns the number of ended sessions. Each ended session has its own event. If
 * no session ended, one event names the other things that ended, because the log must show who signed the
 * user out.
 */
const revokeRecorded = async (
  context: Core,
  tx: Transaction,
  user: { user_id: UserId; organization_id?: OrganizationId | undefined },
  by: RevokedBy,
  limit: number,
): Promise<number> => {
  const { sessions, others } = await revokeUser(context, tx, user, by, limit)
  const found =
    sessions === 0 && others.length > 0 ? await findUser(tx, user.organization_id, user.user_id) : undefined
  if (found) await recordUser(context, tx, by, 'user.updated', found, { fields: others })
  return sessions
}

/**
 * Revokes all sessions that match a filter, in writes of bounded size. When the filter names a user and no
 * client, the user's logins and pending links end too. Only the first write checks the caller, because this
 * write may end the caller's own session.
 */
export const revokeAllSessions = async (
  context: Core,
  filter: Pick<SessionFilter, 'user_id' | 'client_id' | 'organization_id'>,
  { caller, ...by }: RevokedBy & { caller?: Caller | undefined },
): Promise<number> => {
  const { user_id, client_id } = filter
  let isConfirmed = false
  return inBatches(
    context.store,
    async (tx, limit) => {
      if (!isConfirmed) await caller?.confirm(tx)
      tx.after(() => {
        isConfirmed = true
      })
      return user_id && client_id === undefined
        ? revokeRecorded(context, tx, { ...filter, user_id }, by, limit)
        : revokeSessions(context, tx, filter, by, limit)
    },
    (count, limit) => count < limit,
  )
}
