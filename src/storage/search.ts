import { hash } from 'node:crypto'
import { and, type Column, eq, type SQL, sql } from 'drizzle-orm'
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

/** A search in one organization or in all organizations. */
export interface Search {
  term: string
  organization_id?: OrganizationId | undefined
  /** Excludes users for whom this field begins with the term. */
  unless?: 'username' | 'email' | undefined
}

/**
 * Returns the three characters that represent the organization at the start of `users.search_text`. SQLite's
 * index (FTS5) contains only trigrams of the text. This trigram lets a search in one organization skip the
 * users of all other organizations inside the index.
 *
 * The characters are from Unicode's private use area (U+E000 to U+F8FF, 6,400 of them) and derived from a
 * hash of the id, so no term of letters matches them. Two organizations may share a code; results are
 * therefore also compared by `organization_id`.
 */
const organizationCode = (id: OrganizationId): string => {
  const digest = hash('sha256', id, 'buffer')
  return String.fromCharCode(...[0, 2, 4].map(i => 0xe000 + (digest.readUInt16BE(i) % 6400)))
}

/** Character before each field in `search_text`. No value contains one, so no term spans two fields. */
const starts = { username: '\x01', email: '\x02', first_name: '\x03', last_name: '\x04' } as const

/**
 * Returns the value of `users.search_text`. It ends with two extra characters, so that a trigram begins at
 * each letter, including the last.
 */
export const searchText = (user: Searchable): string => {
  const fields = Object.entries(starts).map(
    ([name, start]) => start + fold(user[name as keyof typeof starts]),
  )
  return `${organizationCode(user.organization_id)}${fields.join('')}\x05\x05`
}

/**
 * True for a term of at least three characters, which the trigram index can find. For a shorter term SQLite
 * looks for trigrams that begin with it, and PostgreSQL scans the rows.
 */
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
 * Returns a table `matches` with the `seq` of each user whose `search_text` contains the term. The query
 * reads the index, so its cost depends on the number of entries read. PostgreSQL indexes only trigrams of
 * letters and digits; for shorter terms it scans the rows.
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

/** The `seq` of a row of `matches`. */
export const matchSeq = sql<number>`matches.seq`

/**
 * Returns the condition of `matchesOf` in a form that is evaluated for each row, so its cost depends on the
 * number of rows examined.
 */
export const containsTerm = ({ engine, tables: { users } }: Queries, { term, unless }: Search): SQL => {
  const text = fold(term)
  const position = sql.raw(engine === 'postgres' ? 'strpos' : 'instr')
  const contains = sql`${position}(${users.search_text}, ${text}) > 0`
  return unless
    ? sql`${contains} AND ${position}(${users.search_text}, ${starts[unless] + text}) = 0`
    : contains
}

/**
 * Returns the condition that a column contains the term, in upper or lower case. The condition reads each
 * row, so it is for tables of objects that administrators make. The pattern has both cases of each letter,
 * because SQLite's `lower` and LIKE know only ASCII letters.
 */
export const containsText = ({ engine }: Queries, column: Column, term: string): SQL => {
  const special = engine === 'postgres' ? /[\\^$.*+?()[\]{}|]/ : /[*?[]/
  const quoted = engine === 'postgres' ? '\\$&' : '[$&]'
  const pattern = Array.from(term, character => {
    const cases = new Set([character, character.toLowerCase(), character.toUpperCase()])
    const forms = [...cases].filter(form => [...form].length === 1)
    return forms.length > 1 ? `[${forms.join('')}]` : character.replace(special, quoted)
  }).join('')
  return engine === 'postgres' ? sql`${column} ~ ${pattern}` : sql`${column} GLOB ${`*${pattern}*`}`
}
