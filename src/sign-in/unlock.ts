import type { Core } from '#src/context.ts'
import type { UserChangedBy } from '#src/directory/users/change.ts'
import { recordUser } from '#src/directory/users/record.ts'
import type { UserRow } from '#src/directory/users/store.ts'
import type { Transaction } from '#src/storage/store.ts'
import { countsOf } from './login-throttle.ts'
import { accountName } from './password.ts'
import { removeThrottles } from './store.ts'

/**
 * Deletes all counts of failures with the user's name, e-mail address or second factor. Also deletes the
 * counts of the mails that were requested for the user. Counts of networks stay, because they also count
 * attempts at other accounts. Counts of mailboxes stay, because they also count the mails of other users.
 * Records one `user.unlocked` when at least one count was deleted.
 */
export const forgetFailures = async (
  context: Core,
  tx: Transaction,
  user: Pick<UserRow, 'id' | 'organization_id' | 'username' | 'email'>,
  by: Pick<UserChangedBy, 'actor' | 'client_info'>,
): Promise<void> => {
  const { id, organization_id } = user
  const keys = [`factor:${id}`, `verify:${id}`]
  const prefixes = [`known-factor:${id}:`]
  for (const identifier of [user.username, user.email]) {
    const name = accountName({ organization_id, identifier })
    const counts = countsOf({ name, user })
    keys.push(...counts.keys)
    prefixes.push(...counts.prefixes, `reset:${name}`, `code:${name}`)
  }
  if ((await removeThrottles(tx, { keys, prefixes })) > 0)
    await recordUser(context, tx, by, 'user.unlocked', user)
}
