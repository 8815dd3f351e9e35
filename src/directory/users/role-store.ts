import { eq, sql } from 'drizzle-orm'
import type { RoleId, UserId } from '#src/lib/ids.ts'
import { placeholderRow } from '#src/storage/statements.ts'
import { prepared, type Transaction } from '#src/storage/store.ts'

const { placeholder } = sql

const selectAssignment = prepared((q, { roles, users }) =>
  q
    .select({
      user_id: users.id,
      role_id: roles.id,
      role_name: roles.name,
      organization_id: users.organization_id,
      seq: users.seq,
      enabled: users.enabled,
      email_verified: users.email_verified,
      username_fold: users.username_fold,
      email_fold: users.email_fold,
      last_login: users.last_login,
    })
    .from(users)
    .innerJoin(roles, eq(roles.id, placeholder('role_id')))
    .where(eq(users.id, placeholder('user_id'))),
)

const insertAssignment = prepared((q, { user_roles }) =>
  q.insert(user_roles).values(placeholderRow(user_roles, 'number')),
)

/**
 * Assigns roles to a user. Each row of user_roles repeats the columns of the user by which lists are sorted
 * and filtered.
 */
export const addRoles = async (tx: Transaction, user_id: UserId, role_ids: RoleId[]): Promise<void> => {
  const rows = await Promise.all(role_ids.map(role_id => selectAssignment(tx, { user_id, role_id })))
  await Promise.all(rows.flat().map(row => insertAssignment(tx, row)))
}

/** Replaces the directly assigned roles of a user. */
export const replaceUserRoles = async (
  tx: Transaction,
  user_id: UserId,
  role_ids: RoleId[],
): Promise<void> => {
  await tx.delete(tx.tables.user_roles).where(eq(tx.tables.user_roles.user_id, user_id))
  await addRoles(tx, user_id, role_ids)
}
