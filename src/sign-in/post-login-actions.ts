import type { Context, Core } from '#src/context.ts'
import { readProvider } from '#src/directory/identity-providers/store.ts'
import { addFactor, type UnnamedFactor } from '#src/directory/users/factors/service.ts'
import { listFactors } from '#src/directory/users/factors/store.ts'
import { consumeSignInLink } from '#src/directory/users/link-store.ts'
import { revokeUser } from '#src/directory/users/revocation.ts'
import type { UserRow } from '#src/directory/users/store.ts'
import type { Call } from '#src/http/call.ts'
import type { ClientInfo } from '#src/lib/client-info.ts'
import type { SecretHash } from '#src/lib/secrets.ts'
import { PageError } from '#src/pages/error-page.ts'
import { translator } from '#src/pages/translate.ts'
import type { Transaction } from '#src/storage/store.ts'
import { type AccountLink, linkOwnAccount, unlinkAccounts } from './external-accounts.ts'
import { countSuccess } from './login-throttle.ts'
import { replaceOwnPassword } from './new-password.ts'
import { accountName } from './password.ts'
import { issueRecoveryCodes } from './recovery-codes.ts'
import { checkMaker } from './user-links.ts'

/**
 * A change that is made in the write that starts a login. A first factor alone, such as a stolen password,
 * must not be enough to change an account that requires a second factor. Until the second factor is proven,
 * the sealed action is stored with the proof of the first factor.
 */
export type PostLoginAction =
  /** `provider_version` is `updated_at` of the provider whose settings verified the account. */
  | ({ readonly do: 'link'; readonly provider_version: number } & AccountLink)
  /**
   * `link_hash` is the hash of the link that started the login. The action consumes this link. `is_same` is
   * true when the user who followed the link typed the current password as the new password.
   */
  | {
      readonly do: 'replace_password'
      readonly password_hash: string
      readonly is_same?: boolean
      readonly link_hash?: SecretHash
    }

const labelOf = (request_hash: SecretHash, user_id: string): string => `action:${request_hash}:${user_id}`

/** Encrypts an action for one request and one user (base64url). */
export const sealAction = (
  { master }: Core,
  request_hash: SecretHash,
  { id }: Pick<UserRow, 'id'>,
  action: PostLoginAction,
): string => master.seal(Buffer.from(JSON.stringify(action)), labelOf(request_hash, id)).toString('base64url')

/**
 * Decrypts an action. Returns undefined when there is no action. Throws when the action was sealed for
 * another request or user.
 */
export const openAction = (
  { master }: Core,
  request_hash: SecretHash,
  { user_id, action }: { user_id: string; action?: string },
): PostLoginAction | undefined =>
  action === undefined
    ? undefined
    : JSON.parse(master.open(Buffer.from(action, 'base64url'), labelOf(request_hash, user_id)).toString())

/**
 * Runs the action in the given transaction.
 *
 * @throws PageError 400 or 410 when the action is no longer allowed; the caller must then roll the
 *   transaction back
 */
export const runAction = async (
  context: Context,
  tx: Transaction,
  user: UserRow,
  action: PostLoginAction,
  client_info: ClientInfo,
): Promise<void> => {
  if (action.do === 'link') {
    const provider = await readProvider(tx, action.account.provider_id)
    if (!provider?.enabled || provider.updated_at !== action.provider_version)
      throw new PageError('expired', 400)
    return linkOwnAccount(context, tx, action, user, client_info)
  }
  const { password_hash, is_same = false, link_hash } = action
  if (link_hash) await useLink(context, tx, link_hash, user, client_info)
  return replaceOwnPassword(context, tx, { user, password_hash, is_same, client_info })
}

const useLink = async (
  context: Context,
  tx: Transaction,
  link_hash: SecretHash,
  user: UserRow,
  client_info: ClientInfo,
): Promise<void> => {
  const link = await consumeSignInLink(tx, link_hash, context.clock.now())
  if (!link) throw new PageError('link', 410)
  await checkMaker(tx, link, user.id)
  // If the address is not verified, another person may have signed up with it through a provider. Only the
  // owner of the address has the link of a reset mail. All provider accounts of the user are then unlinked,
  // because they may belong to the other person.
  if (link.kind === 'reset_password' && !user.email_verified)
    await unlinkAccounts(context, tx, user, client_info)
  await confirmOwner(context, tx, user, client_info)
}

/**
 * Adds the passkey that the holder of a link has chosen, ends the user's sessions and logins, and returns new
 * recovery codes. The passkey is added at once and not by a post-login action, because a user without a
 * factor has nothing more to prove.
 *
 * @throws PageError 400 `expired` when the user now has a factor; 410 `link` when the link is no longer valid
 */
export const replaceByPasskey = async (
  context: Context,
  tx: Transaction,
  user: UserRow,
  { passkey, link_hash }: { passkey: UnnamedFactor; link_hash: SecretHash },
  call: Call,
): Promise<string[]> => {
  if ((await listFactors(tx, user.id)).length > 0) throw new PageError('expired', 400)
  await useLink(context, tx, link_hash, user, call)
  const by = { actor: { id: user.id, email: user.email }, client_info: call }
  await revokeUser(context, tx, { user_id: user.id }, { ...by, reason: 'sign_in_link' })
  const name = passkey.name ?? translator(call.locale)('enrol.kind.passkey')
  await addFactor(context, tx, user, { ...passkey, name }, by)
  return issueRecoveryCodes(context, tx, user.id)
}

/**
 * Removes the failures that throttle the user in this browser. The holder of the link is the owner of the
 * account. Failures of other people must not delay the owner.
 */
const confirmOwner = async (
  context: Context,
  tx: Transaction,
  user: UserRow,
  client_info: ClientInfo,
): Promise<void> => {
  const { organization_id } = user
  for (const identifier of [user.username, user.email])
    await countSuccess(
      context,
      tx,
      { name: accountName({ organization_id, identifier }), user },
      [],
      client_info,
    )
}
