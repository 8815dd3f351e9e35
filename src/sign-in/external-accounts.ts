import type { Context } from '#src/context.ts'
import {
  type ExternalAccount,
  findAccount,
  insertAccount,
} from '#src/directory/identity-providers/account-store.ts'
import { recordUser } from '#src/directory/users/record.ts'
import type { UserRow } from '#src/directory/users/store.ts'
import type { ClientInfo } from '#src/lib/client-info.ts'
import type { Transaction } from '#src/storage/store.ts'

/** An account at a provider. */
export type ExternalIdentity = Pick<ExternalAccount, 'provider_id' | 'subject' | 'label'>

type Owner = Pick<UserRow, 'id' | 'email' | 'organization_id'>

/** Links the account to the user. Whether that is new: a second callback at the same moment may have done so already. */
export const linkAccount = async (
  { clock }: Pick<Context, 'clock'>,
  tx: Transaction,
  account: ExternalIdentity,
  { id: user_id, organization_id }: Pick<Owner, 'id' | 'organization_id'>,
): Promise<boolean> => {
  if (await findAccount(tx, account)) return false
  await insertAccount(tx, { ...account, user_id, organization_id, created_at: clock.now() })
  return true
}

/** The same, with the event: another way in changes the user. */
export const linkOwnAccount = async (
  context: Context,
  tx: Transaction,
  account: ExternalIdentity,
  user: Owner,
  client_info: ClientInfo,
): Promise<void> => {
  if (await linkAccount(context, tx, account, user))
    await recordLink(context, tx, user, { linked: account.provider_id }, client_info)
}

/** A link made or ended changes the user. */
export const recordLink = (
  context: Context,
  tx: Transaction,
  user: Owner,
  change: { linked: string } | { unlinked: string },
  client_info: ClientInfo,
): Promise<void> =>
  recordUser(context, tx, { actor: { id: user.id, email: user.email }, client_info }, 'user.updated', user, {
    fields: ['external_accounts'],
    ...change,
  })
