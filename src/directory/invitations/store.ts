import { and, desc, eq, gt, isNull, lt, sql } from 'drizzle-orm'
import { beyond, byCreation, type Range } from '#src/directory/store.ts'
import type { InvitationId, OrganizationId, UserId } from '#src/lib/ids.ts'
import type { SecretHash } from '#src/lib/secrets.ts'
import { COUNT_LIMIT, countUpTo } from '#src/storage/counts.ts'
import type { Queries, Transaction } from '#src/storage/store.ts'
import type { Tables } from '#src/storage/tables.ts'

export type Invitation = Tables['invitations']['$inferSelect']

/** Stores a new invitation. */
export const insertInvitation = async (tx: Transaction, invitation: Invitation): Promise<void> => {
  await tx.insert(tx.tables.invitations).values(invitation)
}

/** Condition for invitations that are not withdrawn and not used up. */
const hasUses = ({ invitations: t }: Tables) => and(isNull(t.withdrawn_at), lt(t.uses, t.max_uses))

/** Condition for invitations that may still be accepted at `now` (ms). */
const isOpen = (tables: Tables, now: number) => and(hasUses(tables), gt(tables.invitations.expires_at, now))

/**
 * Condition for invitations. With `organization_id`, matches only invitations of that organization. The table
 * also has registrations, which people begin themselves. The condition does not match registrations.
 */
const matching = ({ invitations: t }: Tables, organization_id: OrganizationId | undefined) =>
  and(eq(t.is_registration, false), organization_id && eq(t.organization_id, organization_id))

/**
 * Returns an invitation by id, but no registration. With `within`, the invitation must belong to that
 * organization.
 */
export const findInvitation = async (
  q: Queries,
  id: string,
  within?: OrganizationId,
): Promise<Invitation | undefined> => {
  const { invitations: t } = q.tables
  const [found] = await q
    .select()
    .from(t)
    .where(and(eq(t.id, id as InvitationId), matching(q.tables, within)))
  return found
}

/** Returns the invitation or registration of a link, if it may still be accepted. */
export const findOpenInvitation = async (
  q: Queries,
  link_hash: SecretHash,
  now: number,
): Promise<Invitation | undefined> => {
  const { invitations: t } = q.tables
  const [found] = await q
    .select()
    .from(t)
    .where(and(eq(t.link_hash, link_hash), isOpen(q.tables, now)))
  return found
}

/** Returns the invitation or registration of a link, even if it has expired or is used up. */
export const findInvitationOfLink = async (
  q: Queries,
  link_hash: SecretHash,
): Promise<Invitation | undefined> => {
  const { invitations: t } = q.tables
  const [found] = await q.select().from(t).where(eq(t.link_hash, link_hash))
  return found
}

/**
 * Counts an acceptance of an invitation and stores who accepted it. Returns false when the invitation can no
 * longer be accepted. An invitation for one person gets the id of the user. Such an invitation is deleted
 * with the user, because it may contain the person's address.
 */
export const useInvitation = async (
  tx: Transaction,
  { id, link_hash }: Pick<Invitation, 'id' | 'link_hash'>,
  user_id: UserId,
  now: number,
): Promise<boolean> => {
  const { invitations: t, invitation_uses } = tx.tables
  if (link_hash === null) return false
  const used = await tx
    .update(t)
    .set({
      uses: sql`${t.uses} + 1`,
      user_id: sql`CASE WHEN ${t.max_uses} = 1 THEN ${user_id} ELSE ${t.user_id} END`,
    })
    .where(and(eq(t.id, id), eq(t.link_hash, link_hash), isOpen(tx.tables, now)))
    .returning({ id: t.id })
  if (used.length === 0) return false
  await tx.insert(invitation_uses).values({ invitation_id: id, user_id, accepted_at: now })
  return true
}

/**
 * Replaces the link of an invitation, even if the invitation has expired. The former link stops working.
 * Returns false when the invitation is used up or withdrawn, because such an invitation must not work again.
 */
export const replaceInvitationLink = async (
  tx: Transaction,
  id: InvitationId,
  link: Pick<Invitation, 'link_hash' | 'expires_at'>,
): Promise<boolean> => {
  const { invitations: t } = tx.tables
  const changed = await tx
    .update(t)
    .set(link)
    .where(and(eq(t.id, id), hasUses(tx.tables)))
    .returning({ id: t.id })
  return changed.length > 0
}

/** Withdraws an invitation. Returns false when it is already withdrawn or used up. */
export const endInvitation = async (tx: Transaction, id: InvitationId, now: number): Promise<boolean> => {
  const { invitations: t } = tx.tables
  const changed = await tx
    .update(t)
    .set({ withdrawn_at: now, link_hash: null })
    .where(and(eq(t.id, id), hasUses(tx.tables)))
    .returning({ id: t.id })
  return changed.length > 0
}

/** Lists up to `limit` users who have accepted an invitation. The latest acceptance comes first. */
export const listAccepted = (q: Queries, id: InvitationId, limit: number) => {
  const { invitation_uses: t } = q.tables
  return q
    .select({ user_id: t.user_id, accepted_at: t.accepted_at })
    .from(t)
    .where(eq(t.invitation_id, id))
    .orderBy(desc(t.accepted_at), desc(t.user_id))
    .limit(limit)
}

/** Returns a page of invitations, in the order of creation. */
export const listInvitations = (
  q: Queries,
  organization_id: OrganizationId | undefined,
  range: Range,
): Promise<Invitation[]> => {
  const { invitations: t } = q.tables
  return q
    .select()
    .from(t)
    .where(and(matching(q.tables, organization_id), beyond(range, t.created_at, t.id)))
    .orderBy(...byCreation(range.order, t.created_at, t.id))
    .limit(range.limit)
}

/** Counts the invitations of the list. The result 10,001 means more than 10,000. */
export const countInvitations = (
  q: Queries,
  organization_id: OrganizationId | undefined,
): Promise<number> => {
  const { invitations: t } = q.tables
  const found = q.select({ id: t.id }).from(t).where(matching(q.tables, organization_id))
  return countUpTo(q, found, COUNT_LIMIT + 1)
}
