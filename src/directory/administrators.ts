import { z } from 'zod'
import type { Caller } from '#src/context.ts'
import { AppError } from '#src/lib/app-error.ts'
import type { OrganizationId } from '#src/lib/ids.ts'
import type { Transaction } from '#src/storage/store.ts'
import { line } from './fields.ts'
import { hasAdmin } from './roles/store.ts'

/** Query parameters of each call that could leave an organization without an enabled administrator. */
export const ConfirmQuery = z.strictObject({
  confirm: line(128)
    .optional()
    .describe(
      'Confirms a change that leaves the organization without an administrator. The value is the user name of the changed user, or the name of the changed group.',
    ),
})
export type ConfirmQuery = z.output<typeof ConfirmQuery>

interface ConfirmedBy {
  /** Absent when users change themselves, or when the server acts. */
  caller?: Caller
  confirmed?: string | true | undefined
}

/**
 * Prepares a change that may leave the organization without an enabled administrator, such as the deletion of
 * a user. Call this function before the change. Call the returned function after the change, in the same
 * write. The returned function refuses a change by `caller` that removes the last enabled administrator,
 * because nobody in the organization could then administer it. The change is accepted when `caller` is
 * absent, and when `confirmed` is true or equals `name` (the name of the changed user or group).
 *
 * @throws AppError 409 `last_administrator`, from the returned function
 */
export const adminKeeper = async (
  tx: Transaction,
  { caller, confirmed }: ConfirmedBy,
  organization_id: OrganizationId,
  name: string,
): Promise<() => Promise<void>> => {
  if (!caller || confirmed === true || !(await hasAdmin(tx, organization_id))) return async () => {}
  return async () => {
    if (confirmed === name || (await hasAdmin(tx, organization_id))) return
    throw new AppError(
      'last_administrator',
      'The organization would have no administrator. Repeat the call with the query parameter `confirm` set to the name in the field `confirm`.',
      { confirm: name },
    )
  }
}
