import type { PasswordPolicy } from '#src/directory/organizations/schema.ts'
import { settingsOf } from '#src/directory/organizations/settings.ts'
import type { Organization } from '#src/directory/organizations/store.ts'
import type { UserId } from '#src/lib/ids.ts'
import type { Queries } from '#src/storage/store.ts'
import { listFactors } from './factors/store.ts'

/**
 * Returns the rules for a new password of this user. If the policy has `min_length_with_factor`, a user with
 * a second factor may choose a shorter password, because the password alone is not enough to sign in. If the
 * factor is removed later, the password stays valid, because its length is not stored.
 */
export const policyFor = async (
  q: Queries,
  organization: Pick<Organization, 'settings'>,
  user_id: UserId,
): Promise<PasswordPolicy> => {
  const { password_policy } = settingsOf(organization)
  const { min_length_with_factor: min_length } = password_policy
  if (min_length === undefined) return password_policy
  const { length } = await listFactors(q, user_id)
  return length > 0 ? { ...password_policy, min_length } : password_policy
}
