import type { Core } from '#src/context.ts'
import type { UserChangedBy } from '#src/directory/users/change.ts'
import { recordUser } from '#src/directory/users/record.ts'
import { revokeUser } from '#src/directory/users/revocation.ts'
import type { UserRow } from '#src/directory/users/store.ts'
import { type LoginId, newId, type UserId } from '#src/lib/ids.ts'
import { enqueueNotice, factorFacts } from '#src/mail/outbox.ts'
import { removeRemembered } from '#src/sessions/remembered-store.ts'
import type { Transaction } from '#src/storage/store.ts'
import { deleteFactor, type Factor, insertFactor, listFactors, replaceRecoveryCodes } from './store.ts'

type User = Pick<UserRow, 'id' | 'organization_id'>

/**
 * Maximum number of factors of a user. The number is limited, because a typed code is compared with the codes
 * of all authenticator apps until one matches.
 */
export const MAX_FACTORS = 20

export type NewFactor = Pick<Factor, 'type' | 'name'> & Partial<Omit<Factor, 'id' | 'user_id' | 'created_at'>>

/**
 * A new factor. `name` is the name of the passkey's maker, such as a password manager. It is undefined for a
 * passkey of an unknown maker and for an authenticator app.
 */
export type UnnamedFactor = Omit<NewFactor, 'name'> & { name?: string | undefined }

const bare = {
  secret: null,
  last_step: 0,
  credential_id: null,
  public_key: null,
  sign_count: 0,
  transports: [],
  synced: false,
  alone: false,
  last_used_at: null,
}

const fields = ['factors']

/**
 * Returns the client info for a notice to the user. If an administrator made the change, the info contains
 * only the language. The address and the browser would be those of the administrator.
 */
const originFor = ({ id }: User, { actor, client_info }: Pick<UserChangedBy, 'actor' | 'client_info'>) =>
  actor.id === id ? client_info : { locale: client_info.locale }

/**
 * Adds a factor. Returns true if it is the user's first factor. The first factor turns two-factor login on.
 * The removal of the last factor turns two-factor login off.
 */
export const addFactor = async (
  context: Core,
  tx: Transaction,
  user: User,
  factor: NewFactor,
  by: Pick<UserChangedBy, 'actor' | 'client_info'>,
): Promise<boolean> => {
  const now = context.clock.now()
  const id = newId('fac', now)
  const isFirst = (await listFactors(tx, user.id)).length === 0
  // Each change of credentials removes the remembered browsers (RMB-04), because a thief may use one of them.
  await removeRemembered(tx, user.id)
  await insertFactor(tx, { ...bare, ...factor, id, user_id: user.id, created_at: now })
  const metadata = { factor_id: id, factor_type: factor.type }
  await (isFirst
    ? recordUser(context, tx, by, 'user.mfa_enabled', user, metadata)
    : recordUser(context, tx, by, 'user.updated', user, { fields, added: metadata }))
  await enqueueNotice(context, tx, 'factor_added', user, originFor(user, by), factorFacts([factor]))
  return isFirst
}

/**
 * Ends the logins and sessions of the user, because some of them may have begun with the removed factor. The
 * login with the id `login_id` continues, and so do the sessions of this login.
 */
const endSessions = async (
  context: Core,
  tx: Transaction,
  { id: user_id }: User,
  { actor, client_info }: Pick<UserChangedBy, 'actor' | 'client_info'>,
  login_id?: LoginId,
): Promise<void> => {
  const by = { actor, client_info, reason: 'factor_removed' }
  await revokeUser(context, tx, { user_id, except_login_id: login_id }, by)
}

/**
 * Removes a factor and returns it. Returns undefined when the user has no factor with this id. The removal of
 * the last factor also deletes the recovery codes, because they only replace a lost factor. `login_id` is the
 * login in which the user removes the factor. This login does not end.
 */
export const removeFactor = async (
  context: Core,
  tx: Transaction,
  user: User,
  id: string,
  by: Pick<UserChangedBy, 'actor' | 'client_info'>,
  login_id?: LoginId,
): Promise<Factor | undefined> => {
  const factor = await deleteFactor(tx, user.id, id)
  if (!factor) return undefined
  const isLast = (await listFactors(tx, user.id)).length === 0
  if (isLast) await replaceRecoveryCodes(tx, user.id, [])
  const metadata = { factor_id: factor.id, factor_type: factor.type }
  await (isLast
    ? recordUser(context, tx, by, 'user.mfa_disabled', user, metadata)
    : recordUser(context, tx, by, 'user.updated', user, { fields, removed: metadata }))
  await endSessions(context, tx, user, by, login_id)
  await enqueueNotice(context, tx, 'factor_removed', user, originFor(user, by), factorFacts([factor]))
  return factor
}

/**
 * Removes all factors and recovery codes of a user. If the user had a factor, ends the user's logins and
 * sessions, and records one `user.mfa_disabled`. Returns the number of removed factors.
 */
export const removeFactors = async (
  context: Core,
  tx: Transaction,
  user: User,
  by: Pick<UserChangedBy, 'actor' | 'client_info'>,
): Promise<number> => {
  const factors = await listFactors(tx, user.id)
  for (const { id } of factors) await deleteFactor(tx, user.id as UserId, id)
  await replaceRecoveryCodes(tx, user.id, [])
  if (factors.length > 0) {
    const metadata = { factor_ids: factors.map(({ id }) => id) }
    await recordUser(context, tx, by, 'user.mfa_disabled', user, metadata)
    await endSessions(context, tx, user, by)
    await enqueueNotice(context, tx, 'factor_removed', user, originFor(user, by), factorFacts(factors))
  }
  return factors.length
}
