import { hash } from 'node:crypto'
import { and, asc, desc, gt, lt, type SQL, sql } from 'drizzle-orm'
import type { OrganizationId } from '#src/lib/ids.ts'
import { fold } from '#src/lib/text.ts'
import type { Queries } from './store.ts'

interface Searchable {
  organization_id: OrganizationId
  username: string
  email: string
  first_name: string
  last_name: string
}

/** What is looked for, in one organization or in all. */
export interface Search {
  term: string
  organization_id?: OrganizationId | undefined
}

/**
 * Three private-use characters, one trigram: searching one organization skips the users of the others inside the
 * index. Organizations may share a code, so the rows found are still compared by `organization_id`.
 */
const organizationCode = (id: OrganizationId): string => {
  const digest = hash('sha256', id, 'buffer')
  return String.fromCharCode(...[0, 2, 4].map(i => 0xe000 + (digest.readUInt16BE(i) % 6400)))
}

/**
 * The value of `users.search_text`: what search compares with, one field a line so that no term spans two. The two
 * line feeds at the end let a trigram begin at each letter.
 */
export const searchText = (user: Searchable): string =>
  `${organizationCode(user.organization_id)}\n${fold([user.username, user.email, user.first_name, user.last_name].join('\n'))}\n\n`

/** The index knows trigrams: a shorter term is looked for among their beginnings. */
export const isIndexedTerm = (term: string): boolean => [...fold(term)].length >= 3

const quoted = (text: string): string => `"${text.replaceAll('"', '""')}"`

const matchOf = ({ term, organization_id }: Search): string =>
  [...(organization_id ? [organizationCode(organization_id)] : []), fold(term)].map(quoted).join(' AND ')

/** Users whose `search_text` contains the term, by way of the index: the cost follows the number found. */
export const foundBySearch = ({ tables: { users } }: Queries, search: Search): SQL => {
  const text = fold(search.term)
  return isIndexedTerm(text)
    ? sql`${users.seq} IN (SELECT rowid FROM users_search WHERE users_search MATCH ${matchOf(search)})`
    : sql`${users.seq} IN (SELECT doc FROM users_search_terms WHERE term >= ${text} AND term < ${`${text}\u{10ffff}`})`
}

/** The same looked up row by row: the cost follows the number looked at. */
export const containsTerm = ({ tables: { users } }: Queries, { term }: Search): SQL =>
  sql`instr(${users.search_text}, ${fold(term)}) > 0`

/** Users found in the order of their creation, which is the index's own: common terms need no more than the page. */
export const foundInOrder = (
  q: Queries,
  search: Search,
  { order, after }: { order: 'asc' | 'desc'; after: number | undefined },
  where: SQL | undefined,
  limit: number,
) => {
  const { users } = q.tables
  const rowid = sql<number>`users_search.rowid`
  return q
    .select({ seq: users.seq })
    .from(sql`users_search`)
    .crossJoin(users)
    .where(
      and(
        sql`users_search MATCH ${matchOf(search)}`,
        sql`${users.seq} = ${rowid}`,
        after === undefined ? undefined : (order === 'asc' ? gt : lt)(rowid, after),
        where,
      ),
    )
    .orderBy(order === 'asc' ? asc(rowid) : desc(rowid))
    .limit(limit)
}
