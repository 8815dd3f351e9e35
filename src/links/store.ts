import { and, eq, gt } from 'drizzle-orm'
import type { SecretHash } from '#src/lib/secrets.ts'
import type { Queries, Transaction } from '#src/storage/store.ts'
import type { Tables } from '#src/storage/tables.ts'

export type Link = Tables['links']['$inferSelect']

export const insertLink = async (tx: Transaction, link: Link): Promise<void> => {
  await tx.insert(tx.tables.links).values(link)
}

interface LinkKey {
  link_hash: SecretHash
  kind: Link['kind']
  now: number
}

const matching = ({ links }: Tables, { link_hash, kind, now }: LinkKey) =>
  and(eq(links.link_hash, link_hash), eq(links.kind, kind), gt(links.expires_at, now))

export const findLink = async (q: Queries, key: LinkKey): Promise<Link | undefined> => {
  const [link] = await q.select().from(q.tables.links).where(matching(q.tables, key))
  return link
}

/** Consumes a link; true for exactly one caller. */
export const consumeLink = async (tx: Transaction, key: LinkKey): Promise<boolean> => {
  const { links } = tx.tables
  const rows = await tx.delete(links).where(matching(tx.tables, key)).returning({ kind: links.kind })
  return rows.length > 0
}

/** Deletes the other links for the first administrator, of whom there is one. */
export const removeSetUpLinks = async (tx: Transaction): Promise<void> => {
  const { links } = tx.tables
  await tx.delete(links).where(eq(links.kind, 'set_up'))
}
