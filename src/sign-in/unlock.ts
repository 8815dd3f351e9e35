import type { UserRow } from '#src/directory/users/store.ts'
import type { Transaction } from '#src/storage/store.ts'
import { clearBudgets } from './login-throttle.ts'
import { accountName } from './password.ts'
import { removeThrottle, removeThrottles } from './store.ts'

/**
 * Deletes all failures counted against a user: those of the user name, the e-mail address and the second
 * factor. Deletes the counts of the mails that were requested for the user, too. Counts of networks stay,
 * because they also count attempts at other accounts. Counts of mailboxes stay, because they also count the
 * mails of other users.
 */
export const forgetFailures = async (
  tx: Transaction,
  user: Pick<UserRow, 'id' | 'organization_id' | 'username' | 'email'>,
): Promise<void> => {
  const { id, organization_id } = user
  for (const identifier of [user.username, user.email]) {
    const name = accountName({ organization_id, identifier })
    await clearBudgets(tx, { name, user })
    for (const mail of ['reset', 'code']) await removeThrottles(tx, `${mail}:${name}`)
  }
  for (const kind of ['factor', 'verify']) await removeThrottle(tx, `${kind}:${id}`)
  await removeThrottles(tx, `known-factor:${id}:`)
}
