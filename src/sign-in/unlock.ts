import type { UserRow } from '#src/directory/users/store.ts'
import type { Transaction } from '#src/storage/store.ts'
import { accountName } from './password.ts'
import { removeThrottle, removeThrottles } from './store.ts'

/** All that was counted against a user, by name, address and second factor; what was counted against addresses of the network stays. */
export const forgetFailures = async (
  tx: Transaction,
  { id, organization_id, username, email }: Pick<UserRow, 'id' | 'organization_id' | 'username' | 'email'>,
): Promise<void> => {
  for (const identifier of [username, email]) {
    const name = accountName({ organization_id, identifier })
    await removeThrottle(tx, `account:${name}`)
    for (const kind of ['known', 'reset']) await removeThrottles(tx, `${kind}:${name}`)
  }
  for (const kind of ['factor', 'verify']) await removeThrottle(tx, `${kind}:${id}`)
  await removeThrottles(tx, `known-factor:${id}:`)
}
