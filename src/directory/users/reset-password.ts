import type { Core } from '#src/context.ts'
import { writeAs } from '#src/http/guard.ts'
import { throwProblems } from '#src/lib/app-error.ts'
import type { Queries } from '#src/storage/store.ts'
import { getUserToChange, type UserChangedBy } from './change.ts'
import { changedAt, checkPolicy, hashPassword } from './password.ts'
import { policyFor } from './password-policy.ts'
import { recordUser } from './record.ts'
import { revokeUser } from './revocation.ts'
import { organizationById } from './rules.ts'
import type { ResetPassword } from './schema.ts'
import { notify } from './service.ts'
import { setPassword } from './store.ts'

/**
 * Returns the user, and a detail for each rule that the new password breaks.
 *
 * @throws AppError 403 when the user has permissions that the caller lacks, 404 when the user is unknown or
 * of another organization
 */
export const judgePassword = async (
  q: Queries,
  id: string,
  password: string | undefined,
  by: Pick<UserChangedBy, 'caller'>,
) => {
  const user = await getUserToChange(q, by, id)
  const policy = await policyFor(q, await organizationById(q, user.organization_id), user.id)
  return { user, problems: password === undefined ? [] : checkPolicy(policy, password) }
}

/**
 * Sets a user's password on behalf of an administrator. Ends the user's sessions and unredeemed codes, and
 * everything else that `revokeUser` ends, because another person may have signed in with the old password.
 *
 * @throws AppError 422 for a broken rule of the password policy; the errors of `judgePassword`,
 * `hashPassword` and `notify`
 */
export const resetPassword = async (
  context: Core,
  id: string,
  { password, temporary }: ResetPassword,
  by: UserChangedBy,
): Promise<void> => {
  const { user, problems } = await context.store.read(q => judgePassword(q, id, password, by))
  throwProblems(problems)
  const password_hash = await hashPassword(context, password, {
    work: 'change',
    organization: user.organization_id,
  })
  await writeAs(context, by.caller, async tx => {
    const user = await getUserToChange(tx, by, id)
    const now = context.clock.now()
    await setPassword(tx, user.id, {
      password_hash,
      password_temporary: temporary,
      password_changed_at: changedAt(user, now),
      updated_at: now,
    })
    await recordUser(context, tx, by, 'user.password_reset', user, { temporary })
    await revokeUser(context, tx, { user_id: user.id }, { ...by, reason: 'password_reset' })
    await notify(context, tx, 'password_changed', user, by)
  })
}
