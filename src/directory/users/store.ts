import { and, eq, inArray, isNotNull, or, type Placeholder, sql } from 'drizzle-orm'
import { DAY, HOUR } from '#src/lib/duration.ts'
import { foldIdentifier } from '#src/lib/email.ts'
import type { OrganizationId, RoleId, UserId } from '#src/lib/ids.ts'
import { notPurged } from '#src/storage/purges.ts'
import { searchText } from '#src/storage/search.ts'
import { placeholderRow } from '#src/storage/statements.ts'
import { prepared, preparedForStart, type Queries, type Transaction } from '#src/storage/store.ts'
import type { Tables } from '#src/storage/tables.ts'
import { addRoles } from './role-store.ts'

export type UserRow = Tables['users']['$inferSelect']

/** A user with the sorted names of the directly assigned roles. */
export type UserWithRoles = UserRow & { roles: string[] }

const placeholder = sql.placeholder

const selectUser = preparedForStart('user', (q, { users }) =>
  q
    .select()
    .from(users)
    .where(and(eq(users.id, placeholder('id')), notPurged(q, users.organization_id))),
)

/** Reads a user by id. With `organization_id`, the user must belong to that organization. */
export const findUser = async (
  q: Queries,
  organization_id: OrganizationId | undefined,
  id: string,
): Promise<UserRow | undefined> => {
  const [user] = await selectUser(q, { id })
  return organization_id === undefined || user?.organization_id === organization_id ? user : undefined
}

const selectForLogin = preparedForStart('user for login', (q, { users }) =>
  q
    .select()
    .from(users)
    .where(
      and(
        eq(users.organization_id, placeholder('organization_id')),
        or(eq(users.username_fold, placeholder('name')), eq(users.email_fold, placeholder('name'))),
        notPurged(q, users.organization_id),
      ),
    ),
)

/**
 * Reads a user by a typed user name or e-mail address. A user name has no `@`, so at most one user matches.
 */
export const findUserForLogin = async (
  q: Queries,
  organization_id: OrganizationId,
  identifier: string,
): Promise<UserRow | undefined> => {
  const [user] = await selectForLogin(q, { organization_id, name: foldIdentifier(identifier) })
  return user
}

const selectRoleNames = prepared((q, { user_roles, roles }) =>
  q
    .select({ name: roles.name })
    .from(user_roles)
    .innerJoin(roles, eq(roles.id, user_roles.role_id))
    .where(eq(user_roles.user_id, placeholder('user_id'))),
)

/** Returns the sorted names of the roles that are directly assigned to a user. */
export const roleNames = async (q: Queries, user_id: UserId): Promise<string[]> =>
  (await selectRoleNames(q, { user_id })).map(({ name }) => name).sort()

/**
 * Adds to users the names of their directly assigned roles.
 *
 * @param areAll true if `users` has all users. The statement then names no ids.
 */
export const roleNamesOf = async (q: Queries, users: UserRow[], areAll = false): Promise<UserWithRoles[]> => {
  const { user_roles, roles } = q.tables
  const ids = users.map(({ id }) => id)
  const rows =
    users.length > 0
      ? await q
          .select({ user_id: user_roles.user_id, name: roles.name })
          .from(user_roles)
          .innerJoin(roles, eq(roles.id, user_roles.role_id))
          .where(areAll ? undefined : inArray(user_roles.user_id, ids))
      : []
  const names = Map.groupBy(rows, ({ user_id }) => user_id)
  return users.map(user => ({ ...user, roles: (names.get(user.id) ?? []).map(({ name }) => name).sort() }))
}

const selectTaken = prepared((q, { users }) =>
  q
    .select({ id: users.id, username_fold: users.username_fold })
    .from(users)
    .where(
      and(
        eq(users.organization_id, placeholder('organization_id')),
        or(eq(users.username_fold, placeholder('username')), eq(users.email_fold, placeholder('email'))),
      ),
    ),
)

/**
 * Returns which of the user's names is taken by another user of the organization: `username` or `e-mail
 * address`. Returns undefined when both are free.
 */
export const takenName = async (
  q: Queries,
  user: Pick<UserRow, 'id' | 'organization_id' | 'username' | 'email'>,
): Promise<'username' | 'e-mail address' | undefined> => {
  const username = foldIdentifier(user.username)
  const rows = await selectTaken(q, {
    organization_id: user.organization_id,
    username,
    email: foldIdentifier(user.email),
  })
  const others = rows.filter(({ id }) => id !== user.id)
  if (others.some(row => row.username_fold === username)) return 'username'
  return others.length > 0 ? 'e-mail address' : undefined
}

const selectNamed = (
  q: Queries,
  organization_id: OrganizationId | Placeholder,
  names: (string | Placeholder)[],
) => {
  const { roles } = q.tables
  return q
    .select({ id: roles.id, name: roles.name, permissions: roles.permissions })
    .from(roles)
    .where(and(eq(roles.organization_id, organization_id), inArray(roles.name, names)))
}

/** Prepared statements for up to four names; few users have more roles. */
const selectFewNamed = Array.from({ length: 4 }, (_, last) =>
  prepared(q =>
    selectNamed(
      q,
      placeholder('organization_id'),
      Array.from({ length: last + 1 }, (_, i) => placeholder(`${i}`)),
    ),
  ),
)

/** Returns the roles with these names in an organization. */
export const rolesNamed = async (q: Queries, organization_id: OrganizationId, names: string[]) => {
  if (names.length === 0) return []
  const few = selectFewNamed[names.length - 1]
  return few ? few(q, { organization_id, ...names }) : selectNamed(q, organization_id, names)
}

type Derived = 'seq' | 'username_fold' | 'email_fold' | 'search_text'

/** Adds the derived columns, by which users are looked up, sorted and searched. */
const derived = (user: Omit<UserRow, Derived>): Omit<UserRow, 'seq'> => ({
  ...user,
  username_fold: foldIdentifier(user.username),
  email_fold: foldIdentifier(user.email),
  search_text: searchText(user),
})

const insertRow = prepared((q, { users }) => q.insert(users).values(placeholderRow(users, 'seq')))

/**
 * Stores a new user with roles. Rejects with a unique violation when the user name or the e-mail address is
 * taken in the organization.
 */
export const insertUser = async (
  tx: Transaction,
  user: Omit<UserRow, Derived | 'active_at' | 'passkey_declined_at'>,
  role_ids: RoleId[],
): Promise<void> => {
  await insertRow(tx, derived({ ...user, active_at: null, passkey_declined_at: null }))
  await addRoles(tx, user.id, role_ids)
  tx.changed('users')
}

/** Saves a user. Rejects with a unique violation when the user name or the address is taken. */
export const saveUser = async (tx: Transaction, { seq, ...user }: UserRow): Promise<void> => {
  await tx.update(tx.tables.users).set(derived(user)).where(eq(tx.tables.users.seq, seq))
  tx.changed('users')
}

/** Stores a password hash with its flags and times. */
export const setPassword = async (
  tx: Transaction,
  user_id: UserId,
  password: Pick<UserRow, 'password_hash' | 'password_temporary' | 'password_changed_at' | 'updated_at'>,
): Promise<void> => {
  await tx.update(tx.tables.users).set(password).where(eq(tx.tables.users.id, user_id))
}

/**
 * Replaces the hash `from` with the hash `to` of the same password. Changes nothing when the password has
 * changed in the meantime, because the old password must not become valid again.
 */
export const replacePasswordHash = async (
  tx: Transaction,
  id: UserId,
  from: string,
  to: string,
): Promise<void> => {
  const { users } = tx.tables
  await tx
    .update(users)
    .set({ password_hash: to })
    .where(and(eq(users.id, id), eq(users.password_hash, from)))
}

/** Stores the time of the last login (ms). */
export const setLastLogin = async (tx: Transaction, id: UserId, now: number): Promise<void> => {
  await tx.update(tx.tables.users).set({ last_login: now }).where(eq(tx.tables.users.id, id))
}

/** Stores the time (ms) at which the user declined the offer of a passkey. */
export const setPasskeyDeclined = async (tx: Transaction, id: UserId, now: number): Promise<void> => {
  await tx.update(tx.tables.users).set({ passkey_declined_at: now }).where(eq(tx.tables.users.id, id))
}

/**
 * Counts the user as active, once per hour and once per day (UTC). An `active_at` over an hour ahead of the
 * clock is ignored, because the clock was set back. Returns undefined when the user was already counted in
 * this hour.
 */
export const markActive = (
  tx: Transaction,
  { id, active_at }: { id: UserId; active_at: number | null },
  now: number,
): Promise<{ active_users: number; daily_users: number } | undefined> => {
  if (!isFirst(HOUR, active_at, now)) return Promise.resolve(undefined)
  const active = { active_users: 1, daily_users: Number(isFirst(DAY, active_at, now)) }
  const { users } = tx.tables
  return tx
    .update(users)
    .set({ active_at: now })
    .where(eq(users.id, id))
    .then(() => active)
}

const isFirst = (unit: number, before: number | null, now: number): boolean =>
  Math.floor((before ?? 0) / unit) < Math.floor(now / unit) || (before ?? 0) > now + HOUR

/** Cancels a pending change of the user's address. Returns the number of cancelled changes, 0 or 1. */
export const cancelPendingEmail = async (tx: Transaction, id: UserId): Promise<number> => {
  const { users } = tx.tables
  const cancelled = await tx
    .update(users)
    .set({ pending_email: null })
    .where(and(eq(users.id, id), isNotNull(users.pending_email)))
    .returning({ id: users.id })
  return cancelled.length
}

/**
 * Ends the user's first factors that wait for a second factor or a new passkey. A first factor is valid only
 * while `password_changed_at` is unchanged (`confirmProof`), so this function adds 1 ms to that time.
 */
export const endProofs = async (tx: Transaction, id: UserId): Promise<void> => {
  const { users: t } = tx.tables
  await tx
    .update(t)
    .set({ password_changed_at: sql`${t.password_changed_at} + 1` })
    .where(eq(t.id, id))
}

/** Returns the ids of up to `limit` users of an organization, even if the organization is deleted. */
export const listUserIds = async (
  q: Queries,
  organization_id: OrganizationId,
  limit: number,
): Promise<UserId[]> => {
  const { users } = q.tables
  const rows = await q
    .select({ id: users.id })
    .from(users)
    .where(eq(users.organization_id, organization_id))
    .limit(limit)
  return rows.map(({ id }) => id)
}

/** Removes users, their role assignments and their memberships. */
export const removeUsers = async (tx: Transaction, ids: UserId[]): Promise<void> => {
  await tx.delete(tx.tables.users).where(inArray(tx.tables.users.id, ids))
  tx.changed('users')
}
