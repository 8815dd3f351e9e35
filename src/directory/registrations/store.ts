import { and, eq } from 'drizzle-orm'
import { beyond, byCreation, type Range } from '#src/directory/store.ts'
import type { OrganizationId } from '#src/lib/ids.ts'
import { COUNT_LIMIT, countUpTo } from '#src/storage/counts.ts'
import type { Queries } from '#src/storage/store.ts'
import type { Tables } from '#src/storage/tables.ts'

const waiting = (q: Queries, organization_id: OrganizationId | undefined) => {
  const { waiting_users: t, users } = q.tables
  return {
    joined: and(eq(users.id, t.user_id), eq(users.organization_id, t.organization_id)),
    where: organization_id && eq(t.organization_id, organization_id),
  }
}

const columns = ({ waiting_users: t, users }: Tables) => ({
  user_id: t.user_id,
  organization_id: t.organization_id,
  username: users.username,
  email: users.email,
  email_verified: users.email_verified,
  first_name: users.first_name,
  last_name: users.last_name,
  created_at: t.created_at,
})

export type WaitingUser = Awaited<ReturnType<typeof listWaiting>>[number]

/** Returns a page of disabled users who wait for approval, in the order of registration. */
export const listWaiting = (q: Queries, organization_id: OrganizationId | undefined, range: Range) => {
  const { waiting_users: t, users } = q.tables
  const { joined, where } = waiting(q, organization_id)
  return q
    .select(columns(q.tables))
    .from(t)
    .innerJoin(users, joined)
    .where(and(where, beyond(range, t.created_at, t.user_id)))
    .orderBy(...byCreation(range.order, t.created_at, t.user_id))
    .limit(range.limit)
}

/** Counts the users who wait for approval. The result 10,001 means more than 10,000. */
export const countWaiting = (q: Queries, organization_id: OrganizationId | undefined): Promise<number> => {
  const { waiting_users: t, users } = q.tables
  const { joined, where } = waiting(q, organization_id)
  const found = q.select({ id: t.user_id }).from(t).innerJoin(users, joined).where(where)
  return countUpTo(q, found, COUNT_LIMIT + 1)
}

/** Returns the names of up to `limit` users who hold the role `admin` of the organization directly. */
export const administratorNames = async (
  q: Queries,
  organization_id: OrganizationId,
  limit: number,
): Promise<string[]> => {
  const { roles, user_roles, users } = q.tables
  const found = await q
    .select({ username: users.username })
    .from(roles)
    .innerJoin(user_roles, eq(user_roles.role_id, roles.id))
    .innerJoin(users, eq(users.id, user_roles.user_id))
    .where(and(eq(roles.organization_id, organization_id), eq(roles.name, 'admin')))
    .limit(limit)
  return found.map(({ username }) => username)
}
