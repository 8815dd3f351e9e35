import { anonymousActor, record } from '#src/audit/record.ts'
import type { Context } from '#src/context.ts'
import { readOrganization } from '#src/directory/organizations/store.ts'
import { findUser } from '#src/directory/users/store.ts'
import type { ClientInfo } from '#src/lib/client-info.ts'
import type { OrganizationId, UserId } from '#src/lib/ids.ts'
import type { Transaction } from '#src/storage/store.ts'
import { countFailure, type ThrottleKey } from './throttle.ts'

interface FailedLogin {
  organization_id: OrganizationId
  /** The user whom the attempt names. Undefined when no such user exists. */
  user_id: UserId | undefined
  username_attempted: string | undefined
  failure_reason: string | undefined
  client_info: ClientInfo
  /** Further metadata of the event. */
  more?: Record<string, unknown>
}

/**
 * Counts a failed login against the keys. Records the failed login with the count of the first key. Only the
 * audit log has the reason, because the reason would show strangers which users exist.
 */
export const failLogin = async (
  context: Context,
  tx: Transaction,
  keys: readonly ThrottleKey[],
  { organization_id, user_id, username_attempted, failure_reason, client_info, more }: FailedLogin,
): Promise<void> => {
  const [attempt_count] = await countFailure(context, tx, keys)
  // The user or the organization may have been deleted after the attempt began. Their events are then
  // removed, and no new event may follow. Both are read for an unknown user too: a stranger must not learn
  // from the time of the answer that a user exists.
  const organization = await readOrganization(tx, organization_id)
  const user = await findUser(tx, undefined, user_id ?? '')
  if (!organization || (user_id && !user)) return
  await record(context, tx, {
    type: 'user.login_failed',
    actor: anonymousActor,
    target_id: user_id ?? '',
    target_type: 'user',
    organization_id,
    client_info,
    metadata: { username_attempted, failure_reason, attempt_count, ...more },
    subject_id: user_id ?? null,
  })
}
