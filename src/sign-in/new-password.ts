import { record } from '#src/audit/record.ts'
import type { Context } from '#src/context.ts'
import type { PasswordPolicy } from '#src/directory/organizations/schema.ts'
import type { Organization } from '#src/directory/organizations/store.ts'
import { findCosts } from '#src/directory/users/hash-costs.ts'
import {
  changedAt,
  checkChosen,
  hashPassword,
  MAX_PASSWORD_BYTES,
  verifyPassword,
} from '#src/directory/users/password.ts'
import { policyFor } from '#src/directory/users/password-policy.ts'
import { revokeUser } from '#src/directory/users/revocation.ts'
import { setPassword, type UserRow } from '#src/directory/users/store.ts'
import type { Detail } from '#src/lib/app-error.ts'
import type { ClientInfo } from '#src/lib/client-info.ts'
import type { UserId } from '#src/lib/ids.ts'
import { enqueueNotice } from '#src/mail/outbox.ts'
import type { ChangePasswordPage, PasswordRule } from '#src/pages/data.ts'
import type { Transaction } from '#src/storage/store.ts'
import { chargeBrowser } from './known-browsers.ts'
import { confirmProof, provePassword } from './password.ts'

const switches = ['require_uppercase', 'require_lowercase', 'require_digit', 'require_special'] as const

/** Rules that passwords rarely break. A page shows such a rule only when the password has broken it. */
const rarelyBroken = [{ rule: 'too_long', count: MAX_PASSWORD_BYTES }, { rule: 'control' }] as const

/**
 * Returns the rules that a page shows for a new password. Marks the rules that the refused password has
 * broken.
 */
export const passwordRules = (policy: PasswordPolicy, broken: readonly Detail[] = []): PasswordRule[] => {
  const isBroken = ({ rule }: Pick<PasswordRule, 'rule'>) => broken.some(({ code }) => code === rule)
  const rules: PasswordRule[] = [
    { rule: 'min_length', count: policy.min_length },
    ...switches.filter(rule => policy[rule]).map(rule => ({ rule })),
    ...(policy.refuse_common ? [{ rule: 'not_common' as const }] : []),
    ...rarelyBroken.filter(isBroken),
  ]
  return rules.map(rule => ({ ...rule, failed: isBroken(rule) }))
}

/** Returns the rules that a page shows to this user. */
export const passwordRulesFor = async (
  { store }: Pick<Context, 'store'>,
  organization: Organization,
  user_id: UserId,
): Promise<PasswordRule[]> => passwordRules(await store.read(q => policyFor(q, organization, user_id)))

/** The data, status and headers with which the form is shown again with an error. */
interface Retry {
  data: Required<Pick<ChangePasswordPage, 'error' | 'rules'>>
  status: number
  headers: Record<string, string>
}

/** `is_same` is true when a user who followed a link typed the current password as the new password. */
type ChosenPassword =
  | { password_hash: string; is_same: boolean; retry?: never }
  | { password_hash?: never; is_same?: never; retry: Retry }

/**
 * Checks and hashes the new password of a form. The form has the field `password`. It also has
 * `password_repeat`, except when the page showed the typed password. With `ask_current` it also has
 * `current_password`. Returns the hash, or the data for showing the form again with an error.
 */
export const chooseNewPassword = async (
  context: Context,
  organization: Organization,
  form: ReadonlyMap<string, string>,
  person: { user: UserRow; ask_current: boolean; by_link?: boolean; client_info: ClientInfo },
): Promise<ChosenPassword> => {
  const { user, ask_current, by_link, client_info } = person
  const password = form.get('password') ?? ''
  const policy = await context.store.read(q => policyFor(q, organization, user.id))
  const broken = checkChosen(policy, password)
  const retry = (error: Retry['data']['error'], status = 400, headers = {}): ChosenPassword => ({
    retry: { data: { error, rules: passwordRules(policy, broken) }, status, headers },
  })
  if (ask_current) {
    const { organization_id, username: identifier } = user
    const current = form.get('current_password') ?? ''
    const { refusal } = await provePassword(context, {
      organization_id,
      identifier,
      password: current,
      client_info,
    })
    if (refusal) {
      const { code, seconds, status, headers } = refusal
      return retry(
        { code: code === 'invalid_credentials' ? 'wrong_current' : code, seconds },
        status,
        headers,
      )
    }
  }
  if (broken.length > 0) return retry({ code: 'policy' })
  if (password !== (form.get('password_repeat') ?? password)) return retry({ code: 'mismatch' })
  // If the form has the current password, `provePassword` has already charged for a hash. A link stays valid
  // until a password is stored, so its form could be submitted any number of times. Each submission of this
  // form is therefore charged here.
  if (!ask_current)
    await chargeBrowser(context, client_info, { organization_id: user.organization_id, kind: 'hash' })
  const lane = { work: 'change', organization: user.organization_id } as const
  // The holder of a link has proven neither the password nor the second factor. The answer `unchanged` would
  // confirm a guess of the current password, and no throttle counts these guesses. The form of a link
  // therefore never gets this answer. For this form the comparison takes the same time for every user, and
  // thus reveals nothing about the stored hash.
  const costs = by_link ? await findCosts(context.store, '') : []
  const compares = by_link || user.password_hash !== null
  const isSame = compares && (await verifyPassword(context, user.password_hash, password, lane, costs))
  if (isSame && !by_link) return retry({ code: 'unchanged' })
  return { password_hash: await hashPassword(context, password, lane), is_same: isSame }
}

/**
 * Stores a password that the user chose. Revokes all sessions and logins of the user, because somebody else
 * may know the old password. The caller starts a new login in the current browser. If `is_same` is true, the
 * new password equals the current password. In this case the password keeps its age, and a temporary password
 * stays temporary. At the next login the user must therefore still replace an expired or temporary password.
 */
export const replaceOwnPassword = async (
  context: Context,
  tx: Transaction,
  change: { user: UserRow; password_hash: string; is_same?: boolean; client_info: ClientInfo },
): Promise<void> => {
  const { user, password_hash, is_same = false, client_info } = change
  const now = context.clock.now()
  const actor = { id: user.id, email: user.email }
  await confirmProof(tx, user)
  await setPassword(tx, user.id, {
    password_hash,
    password_temporary: is_same && user.password_temporary,
    password_changed_at: changedAt(user, is_same ? 0 : now),
    updated_at: now,
  })
  await record(context, tx, {
    type: 'user.password_changed',
    actor,
    target_id: user.id,
    target_type: 'user',
    organization_id: user.organization_id,
    client_info,
    subject_id: user.id,
  })
  await revokeUser(context, tx, { user_id: user.id }, { actor, client_info, reason: 'password_changed' })
  await enqueueNotice(context, tx, 'password_changed', user, client_info)
}
