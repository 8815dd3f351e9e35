import { and, desc, eq, gt, inArray, notInArray, sql } from 'drizzle-orm'
import type { UserId } from '#src/lib/ids.ts'
import type { SecretHash } from '#src/lib/secrets.ts'
import { preparedForStart, type Queries, type Transaction } from '#src/storage/store.ts'
import type { Tables } from '#src/storage/tables.ts'

export type Link = Tables['links']['$inferSelect']

const { placeholder } = sql

const insert = preparedForStart('insert link', (q, { links }) =>
  q.insert(links).values({
    link_hash: placeholder('link_hash'),
    kind: placeholder('kind'),
    user_id: placeholder('user_id'),
    email: placeholder('email'),
    permissions: placeholder('permissions'),
    organization_id: placeholder('organization_id'),
    created_at: placeholder('created_at'),
    expires_at: placeholder('expires_at'),
  }),
)

/** Stores a single-use link. */
export const insertLink = async (tx: Transaction, link: Link): Promise<void> => {
  await insert(tx, link)
}

interface LinkKey {
  link_hash: SecretHash
  kind: Link['kind']
  now: number
}

const matching = ({ links }: Tables, { link_hash, kind, now }: LinkKey) =>
  and(eq(links.link_hash, link_hash), eq(links.kind, kind), gt(links.expires_at, now))

/** Returns an unexpired link by its hash and kind. */
export const findLink = async (q: Queries, key: LinkKey): Promise<Link | undefined> => {
  const [link] = await q.select().from(q.tables.links).where(matching(q.tables, key))
  return link
}

/** Deletes a link. Returns true if the link was valid. Only one of several concurrent calls returns true. */
export const consumeLink = async (tx: Transaction, key: LinkKey): Promise<boolean> => {
  const { links } = tx.tables
  const rows = await tx.delete(links).where(matching(tx.tables, key)).returning({ kind: links.kind })
  return rows.length > 0
}

/** The kinds of links that sign a user in. */
const signInKinds: Link['kind'][] = ['sign_in', 'reset_password']

/** Deletes an unexpired sign-in link and returns it. Only one of several concurrent calls gets the link. */
export const consumeSignInLink = async (
  tx: Transaction,
  link_hash: SecretHash,
  now: number,
): Promise<Pick<Link, 'kind' | 'permissions'> | undefined> => {
  const { links } = tx.tables
  const [link] = await tx
    .delete(links)
    .where(and(eq(links.link_hash, link_hash), inArray(links.kind, signInKinds), gt(links.expires_at, now)))
    .returning({ kind: links.kind, permissions: links.permissions })
  return link
}

/** Deletes the oldest sign-in links of a user until `keep` remain. Links of reset mails stay valid. */
export const trimSignInLinks = async (tx: Transaction, user_id: UserId, keep: number): Promise<void> => {
  const { links } = tx.tables
  const own = and(eq(links.user_id, user_id), eq(links.kind, 'sign_in'))
  const newest = tx
    .select({ link_hash: links.link_hash })
    .from(links)
    .where(own)
    .orderBy(desc(links.created_at), links.link_hash)
    .limit(keep)
  await tx.delete(links).where(and(own, notInArray(links.link_hash, newest)))
}

/** Deletes a user's sign-in links and returns the number of deleted links. */
export const removeSignInLinks = async (tx: Transaction, user_id: UserId): Promise<number> => {
  const { links } = tx.tables
  const removed = await tx
    .delete(links)
    .where(and(eq(links.user_id, user_id), inArray(links.kind, signInKinds)))
    .returning({ kind: links.kind })
  return removed.length
}

/**
 * Deletes all links for the set-up of the first administrator. Runs when the first administrator is created,
 * because each remaining link could create another administrator.
 */
export const removeSetUpLinks = async (tx: Transaction): Promise<void> => {
  const { links } = tx.tables
  await tx.delete(links).where(eq(links.kind, 'set_up'))
}
