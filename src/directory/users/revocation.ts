import type { Caller, Core } from '#src/context.ts'
import type { LoginId, OrganizationId, UserId } from '#src/lib/ids.ts'
import type { SessionFilter } from '#src/sessions/filter-store.ts'
import { endUserLogins } from '#src/sessions/login-store.ts'
import { removeRemembered } from '#src/sessions/remembered-store.ts'
import { type RevokedBy, revokeSessions } from '#src/sessions/service.ts'
import { inBatches } from '#src/storage/batches.ts'
import type { Transaction } from '#src/storage/store.ts'
import { removeEmailCode } from './email-code-store.ts'
import { removeSignInLinks } from './link-store.ts'
import { cancelPendingEmail, findUser } from './store.ts'

/**
 * Deletes a user's sign-in links, code by mail and remembered browsers, and cancels a pending change of
 * address. Runs when the user's address or `enabled` changes, and whenever {@link revokeUser} ends the user's
 * logins. Links and codes from before the change must not work after it. With `organization_id`, a user of
 * another organization keeps everything.
 */
export const revokePendingLinks = async (
  tx: Transaction,
  user_id: UserId,
  organization_id?: OrganizationId,
): Promise<void> => {
  if (organization_id && !(await findUser(tx, organization_id, user_id))) return
  await removeSignInLinks(tx, user_id, organization_id)
  await cancelPendingEmail(tx, user_id, organization_id)
  await removeEmailCode(tx, user_id)
  await removeRemembered(tx, user_id)
}

/**
 * Revokes at most `limit` of the user's sessions, like `revokeSessions`. Ends the user's logins and pending
 * links. The login `except_login_id` and its sessions continue. Returns the number of revoked sessions.
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
): Promise<number> => {
  const { user_id, organization_id, except_login_id } = user
  const count = await revokeSessions(context, tx, user, by, limit)
  await endUserLogins(tx, user_id, organization_id, except_login_id)
  await revokePendingLinks(tx, user_id, organization_id)
  return count
}

/**
 * Revokes all sessions that match a filter, in writes of bounded size. When the filter has a user and no
 * client, the user's logins and pending links end too. Only the first write checks the caller, because that
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
        ? revokeUser(context, tx, { ...filter, user_id }, by, limit)
        : revokeSessions(context, tx, filter, by, limit)
    },
    (count, limit) => count < limit,
  )
}
