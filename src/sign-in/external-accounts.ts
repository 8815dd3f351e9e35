import type { Context } from '#src/context.ts'
import { permissionsOf } from '#src/directory/access.ts'
import { effectiveRoles } from '#src/directory/effective-roles-store.ts'
import {
  type ExternalAccount,
  findAccount,
  insertAccount,
  listAccounts,
  removeAccount,
} from '#src/directory/identity-providers/account-store.ts'
import { recordUser } from '#src/directory/users/record.ts'
import type { UserRow } from '#src/directory/users/store.ts'
import { conflict } from '#src/lib/app-error.ts'
import type { ClientInfo } from '#src/lib/client-info.ts'
import { isAdministrative } from '#src/lib/permission.ts'
import { enqueueNotice } from '#src/mail/outbox.ts'
import { PageError } from '#src/pages/error-page.ts'
import { removeRemembered } from '#src/sessions/remembered-store.ts'
import type { Queries, Transaction } from '#src/storage/store.ts'

/** An account at an identity provider. */
export type ExternalIdentity = Pick<ExternalAccount, 'provider_id' | 'subject' | 'label'>

/**
 * An account to link, and the proof that the user wants it: the local password, a login of the user in this
 * browser, or only the provider's assertion that the user has the e-mail address.
 */
export interface AccountLink {
  readonly account: ExternalIdentity
  readonly by: 'password' | 'login' | 'assertion'
}

type Owner = Pick<UserRow, 'id' | 'email' | 'organization_id'>

/**
 * Links the account to the user and records `user.updated`.
 *
 * @throws AppError `conflict` when the account is linked already, for example by a concurrent callback
 */
export const linkAccount = async (
  context: Context,
  tx: Transaction,
  account: ExternalIdentity,
  user: Owner,
  client_info: ClientInfo,
): Promise<void> => {
  if (await findAccount(tx, account)) throw conflict('The account is linked already.')
  const { id: user_id, organization_id } = user
  await insertAccount(tx, { ...account, user_id, organization_id, created_at: context.clock.now() })
  await recordLink(context, tx, user, { linked: account.provider_id }, client_info)
}

/**
 * True when a trusted provider's assertion of a verified e-mail address may identify this user. The user must
 * have no permissions beyond those of the role `user`, because a provider alone must not give anyone access
 * to further permissions. If Gatehouse has not verified the address of the user, the user must never have
 * signed in and must have no linked account. Otherwise an attacker could register another person's address
 * and wait until that person signs in through a provider.
 */
export const mayLinkByAddress = async (q: Queries, user: UserRow): Promise<boolean> => {
  if (isAdministrative(permissionsOf(await effectiveRoles(q, user.id)))) return false
  if (user.email_verified) return true
  return user.last_login === null && (await listAccounts(q, user.id)).length === 0
}

/**
 * Maximum number of a user's accounts at one provider. Pages list all of them, and some providers report a
 * new subject at each login.
 */
const MAX_ACCOUNTS = 20

/**
 * Links the account to the user, records `user.updated` and puts a notice into the outbox. If the account is
 * linked to the user already, does nothing. If the user has too many accounts at the provider, unlinks the
 * oldest.
 *
 * @throws PageError 400 `expired` when the account is linked to another user, or the proof no longer suffices
 */
export const linkOwnAccount = async (
  context: Context,
  tx: Transaction,
  { account, by }: AccountLink,
  user: UserRow,
  client_info: ClientInfo,
): Promise<void> => {
  const linked_to = (await findAccount(tx, account))?.user_id
  if (linked_to === user.id) return
  if (linked_to || (by === 'assertion' && !(await mayLinkByAddress(tx, user))))
    throw new PageError('expired', 400)
  await linkAccount(context, tx, account, user, client_info)
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
