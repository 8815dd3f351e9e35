import type { Context, Core } from '#src/context.ts'
import {
  type ExternalAccount,
  findAccount,
  insertAccount,
  listAccounts,
  removeAccount,
} from '#src/directory/identity-providers/account-store.ts'
import { recordUser } from '#src/directory/users/record.ts'
import type { UserRow } from '#src/directory/users/store.ts'
import type { ClientInfo } from '#src/lib/client-info.ts'
import { enqueueNotice } from '#src/mail/outbox.ts'
import { removeRemembered } from '#src/sessions/remembered-store.ts'
import type { Transaction } from '#src/storage/store.ts'

/** An account at an identity provider. */
export type ExternalIdentity = Pick<ExternalAccount, 'provider_id' | 'subject' | 'label'>

type Owner = Pick<UserRow, 'id' | 'email' | 'organization_id'>

/**
 * Links the account to the user. Returns false when the account is linked already, for example by a
 * concurrent callback.
 */
export const linkAccount = async (
  { clock }: Core,
  tx: Transaction,
  account: ExternalIdentity,
  { id: user_id, organization_id }: Pick<Owner, 'id' | 'organization_id'>,
): Promise<boolean> => {
  if (await findAccount(tx, account)) return false
  await insertAccount(tx, { ...account, user_id, organization_id, created_at: clock.now() })
  return true
}

/**
 * Maximum number of a user's accounts at one provider. Pages list all of them, and some providers report a
 * new subject at each login.
 */
const MAX_ACCOUNTS = 20

/**
 * Links the account to the user, records `user.updated` and puts a notice into the outbox. If the account is
 * linked already, does nothing. If the user has too many accounts at the provider, unlinks the oldest.
 */
export const linkOwnAccount = async (
  context: Context,
  tx: Transaction,
  account: ExternalIdentity,
  user: Owner,
  client_info: ClientInfo,
): Promise<void> => {
  if (!(await linkAccount(context, tx, account, user))) return
  await recordLink(context, tx, user, { linked: account.provider_id }, client_info)
  const linked = (await listAccounts(tx, user.id)).filter(
    ({ provider }) => provider.id === account.provider_id,
  )
  await unlink(context, tx, user, linked.slice(0, -MAX_ACCOUNTS), client_info)
  const { name: provider = '' } = linked.at(-1)?.provider ?? {}
  await enqueueNotice(context, tx, 'account_linked', user, client_info, { provider })
}

/** Unlinks all accounts of the user and records an event for each. */
export const unlinkAccounts = async (
  context: Context,
  tx: Transaction,
  user: Owner,
  client_info: ClientInfo,
): Promise<void> => unlink(context, tx, user, await listAccounts(tx, user.id), client_info)

const unlink = async (
  context: Context,
  tx: Transaction,
  user: Owner,
  accounts: readonly { account: ExternalAccount }[],
  client_info: ClientInfo,
): Promise<void> => {
  for (const { account } of accounts) {
    await removeAccount(tx, account)
    await recordLink(context, tx, user, { unlinked: account.provider_id }, client_info)
  }
}

/**
 * Records `user.updated` for an account that was linked or unlinked. Removes the remembered browsers of the
 * user, because each change of the credentials must do this (RMB-04).
 */
export const recordLink = async (
  context: Context,
  tx: Transaction,
  user: Owner,
  change: { linked: string } | { unlinked: string },
  client_info: ClientInfo,
): Promise<void> => {
  await removeRemembered(tx, user.id)
  await recordUser(
    context,
    tx,
    { actor: { id: user.id, email: user.email }, client_info },
    'user.updated',
    user,
    {
      fields: ['external_accounts'],
      ...change,
    },
  )
}
