import { hash } from 'node:crypto'
import { and, eq, type SQL, sql } from 'drizzle-orm'
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
  /** Without the users of whom this begins with the term. */
  unless?: 'username' | 'email' | undefined
}

/**
 * Three characters that stand for the organization at the start of `users.search_text`. The index of SQLite (FTS5) knows
 * trigrams of the text and nothing else of a row, so this one trigram is what lets a search in one organization skip the users
 * of all others inside the index. The characters are of Unicode's private use area (U+E000 to U+F8FF, 6,400 of them) and are
 * taken from a hash of the id: they mean nothing elsewhere, so that a term of letters never matches them. Two organizations
 * may share a code: the rows that are found are compared by `organization_id` as well.
 */
const organizationCode = (id: OrganizationId): string => {
  const digest = hash('sha256', id, 'buffer')
  return String.fromCharCode(...[0, 2, 4].map(i => 0xe000 + (digest.readUInt16BE(i) % 6400)))
}

/** What each field begins with: characters that no field holds, so that no term spans two fields. */
const starts = { username: '\x01', email: '\x02', first_name: '\x03', last_name: '\x04' } as const

/**
 * The value of `users.search_text`: what search compares with. The two characters at the end let a trigram begin at
 * each letter.
 */
export const searchText = (user: Searchable): string => {
  const fields = Object.entries(starts).map(
    ([name, start]) => start + fold(user[name as keyof typeof starts]),
  )
  return `${organizationCode(user.organization_id)}${fields.join('')}\x05\x05`
}

/** The index knows trigrams: a shorter term is looked for among their beginnings. */
export const isIndexedTerm = (term: string): boolean => [...fold(term)].length >= 3

const quoted = (text: string): string => `"${text.replaceAll('"', '""')}"`

const matchOf = ({ term, organization_id, unless }: Search): string => {
  const text = fold(term)
  const code = organization_id && quoted(organizationCode(organization_id))
  return [
    [...(code ? [code] : []), quoted(text)].join(' AND '),
    ...(unless ? [quoted(starts[unless] + text)] : []),
  ].join(' NOT ')
}

const like = (text: string): string => `%${text.replace(/[%_\\]/g, '\\$&')}%`

/**
 * A table `matches` with the `seq` of each user whose `search_text` contains the term, by way of the index: its cost
 * follows the number taken from it. Indexed terms come in the order of `seq` if that is asked for. PostgreSQL knows
 * trigrams of letters and digits alone, and looks short terms up row by row.
 */
export const matchesOf = (q: Queries, search: Search): SQL => {
  const text = fold(search.term)
  if (q.engine === 'postgres') {
    const { users } = q.tables
    const own = search.organization_id && eq(users.organization_id, search.organization_id)
    const indexed = isIndexedTerm(text) ? sql`${users.search_text} LIKE ${like(text)}` : undefined
    return sql`(SELECT seq FROM ${users} WHERE ${and(own, indexed, containsTerm(q, search))}) AS matches`
  }
  const after = `${text}\u{10ffff}`
  return isIndexedTerm(text)
    ? sql`(SELECT rowid AS seq FROM users_search WHERE users_search MATCH ${matchOf(search)}) AS matches`
    : sql`(SELECT DISTINCT doc AS seq FROM users_search_terms WHERE term >= ${text} AND term < ${after}) AS matches`
}

export const matchSeq = sql<number>`matches.seq`

/** The same looked up row by row: the cost follows the number looked at. */
export const containsTerm = ({ engine, tables: { users } }: Queries, { term, unless }: Search): SQL => {
  const text = fold(term)
  const position = sql.raw(engine === 'postgres' ? 'strpos' : 'instr')
  const contains = sql`${position}(${users.search_text}, ${text}) > 0`
  return unless
    ? sql`${contains} AND ${position}(${users.search_text}, ${starts[unless] + text}) = 0`
    : contains
}
