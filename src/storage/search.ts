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
  /** One or more words. Each word must occur in one of the fields, so that a full name finds the user. */
  term: string
  organization_id?: OrganizationId | undefined
  /**
   * Excludes users for whom this field begins with the term. If `unless` is set, the term must be a single
   * word.
   */
  unless?: 'username' | 'email' | undefined
}

/** A part of the search index: the entries with a `seq` above `after`, up to and including `upTo`. */
export interface IndexPart {
  after?: number | undefined
  upTo?: number | undefined
}

const lengthOf = (word: string): number => [...word].length

/**
 * Returns the words of a term, folded for the comparison. Each word occurs once. The word with the most
 * characters comes first. Characters are counted as in the search index: one that JavaScript stores in two
 * code units, such as an emoji, counts once.
 */
const wordsOf = (term: string): string[] => {
  const words = fold(term).split(/\s+/).filter(Boolean)
  return [...new Set(words)].sort((one, other) => lengthOf(other) - lengthOf(one))
}

/**
 * Returns the three characters that represent the organization at the start of `users.search_text`. SQLite's
 * index (FTS5) contains only trigrams of the text. The three characters are such a trigram, so a search in
 * one organization can skip the users of all other organizations in the index.
 *
 * The characters are derived from a hash of the id. They are from Unicode's private use area (U+E000 to
 * U+F8FF, 6,400 characters), so no term of letters matches them. Two organizations can have the same
 * characters. The caller therefore also compares `organization_id`.
 */
const organizationCode = (id: OrganizationId): string => {
  const digest = hash('sha256', id, 'buffer')
  return String.fromCharCode(...[0, 2, 4].map(i => 0xe000 + (digest.readUInt16BE(i) % 6400)))
}

/**
 * The character that precedes each field in `search_text`. No value contains such a character, so no term can
 * match the end of a field and the start of the next.
 */
const starts = { username: '\x01', email: '\x02', first_name: '\x03', last_name: '\x04' } as const

/**
 * Returns the value of `users.search_text`. The value ends with two extra characters, so that a trigram
 * begins at each letter, even at the last.
 */
export const searchText = (user: Searchable): string => {
  const fields = Object.entries(starts).map(
    ([name, start]) => start + fold(user[name as keyof typeof starts]),
  )
  return `${organizationCode(user.organization_id)}${fields.join('')}\x05\x05`
}

const isIndexedWord = (word: string): boolean => lengthOf(word) >= 3

/**
 * True for a term with a word of at least three characters. A trigram index finds only such words. Each row
 * that the index finds is then compared with the shorter words. For a term that has only shorter words,
 * SQLite looks for trigrams that begin with the longest word, and PostgreSQL scans the rows.
 */
export const isIndexedTerm = (term: string): boolean => wordsOf(term).some(isIndexedWord)

/** True for a term with a word of fewer than three characters. Each found row is compared with the term. */
export const isComparedTerm = (term: string): boolean => !wordsOf(term).every(isIndexedWord)

/** Returns the longest word of a term. */
export const longestWord = (term: string): string => wordsOf(term)[0] ?? ''

const quoted = (text: string): string => `"${text.replaceAll('"', '""')}"`

const matchOf = ({ term, organization_id, unless }: Search): string => {
  const words = wordsOf(term).filter(isIndexedWord)
  const code = organization_id ? [organizationCode(organization_id)] : []
  return [
    [...code, ...words].map(quoted).join(' AND '),
    ...(unless ? [quoted(starts[unless] + fold(term))] : []),
  ].join(' NOT ')
}

const like = (text: string): string => `%${text.replace(/[%_\\]/g, '\\$&')}%`

const within = (seq: SQL, { after, upTo }: IndexPart): SQL =>
  sql.join([
    ...(after === undefined ? [] : [sql` AND ${seq} > ${after}`]),
    ...(upTo === undefined ? [] : [sql` AND ${seq} <= ${upTo}`]),
  ])

/** Returns the rows of SQLite's search index that contain the term's words of at least three characters. */
export const indexRows = (search: Search, span: IndexPart = {}): SQL =>
  sql`SELECT rowid AS seq FROM users_search WHERE users_search MATCH ${matchOf(search)}${within(sql`rowid`, span)}`

/** Returns the entries of SQLite's search index that begin with the text. A user can have several entries. */
export const entriesOf = (text: string): SQL =>
  sql`SELECT doc AS seq FROM users_search_terms WHERE term >= ${text} AND term < ${`${text}\u{10ffff}`}`

/**
 * Returns a table `matches` with the `seq` of each user whose `search_text` contains the term. The query
 * reads the index, so its time depends on the number of entries that it reads. PostgreSQL indexes only
 * trigrams of letters and digits. For a term without three consecutive letters or digits, PostgreSQL scans
 * the rows of the table.
 */
export const matchesOf = (q: Queries, search: Search, span: IndexPart = {}): SQL => {
  const { users } = q.tables
  const words = wordsOf(search.term)
  const indexed = words.filter(isIndexedWord)
  if (q.engine === 'postgres') {
    const own = search.organization_id && eq(users.organization_id, search.organization_id)
    const likely = indexed.map(word => sql`${users.search_text} LIKE ${like(word)}`)
    return sql`(SELECT seq FROM ${users} WHERE ${and(own, ...likely, containsTerm(q, search))}${within(sql`seq`, span)}) AS matches`
  }
  const [longest = ''] = words
  const rows =
    indexed.length > 0
      ? indexRows(search, span)
      : sql`SELECT DISTINCT seq FROM (${entriesOf(longest)}) AS entries`
  // Only the other words must still be compared: `rows` contain all words of at least three characters or, if
  // the term has no such word, its longest word.
  const others = words.slice(Math.max(indexed.length, 1))
  if (others.length === 0) return sql`(${rows}) AS matches`
  const compared = containsTerm(q, { term: others.join(' ') })
  return sql`(SELECT rows.seq FROM (${rows}) AS rows CROSS JOIN ${users} WHERE ${users.seq} = rows.seq AND ${compared}) AS matches`
}

/** The `seq` of a row of `matches`. */
export const matchSeq = sql<number>`matches.seq`

/**
 * Returns the condition that `search_text` contains the term, in a form that is evaluated for each row. The
 * time thus depends on the number of examined rows. The organization of the search is not compared.
 */
export const containsTerm = ({ engine, tables: { users } }: Queries, { term, unless }: Search): SQL => {
  const position = sql.raw(engine === 'postgres' ? 'strpos' : 'instr')
  const contains = sql.join(
    wordsOf(term).map(word => sql`${position}(${users.search_text}, ${word}) > 0`),
    sql` AND `,
  )
  return unless
    ? sql`${contains} AND ${position}(${users.search_text}, ${starts[unless] + fold(term)}) = 0`
    : contains
}

/**
 * Returns the condition that a column contains the term, in upper or lower case. The condition is evaluated
 * for each row, so use it only for objects that administrators make, because these are few. The pattern has
 * both cases of each letter, because SQLite's `lower` and LIKE fold only ASCII letters. SQLite finds an ASCII
 * term without a pattern, because GLOB takes quadratic time for a long term in a similar text.
 */
export const containsText = ({ engine }: Queries, column: Column, term: string): SQL => {
  if (engine === 'sqlite' && /^\p{ASCII}*$/u.test(term))
    return sql`instr(lower(${column}), ${term.toLowerCase()}) > 0`
  const special = engine === 'postgres' ? /[\\^$.*+?()[\]{}|]/ : /[*?[]/
  const quoted = engine === 'postgres' ? '\\$&' : '[$&]'
  const pattern = Array.from(term, character => {
    const upper = character.toUpperCase()
    // The Greek sigma has another small letter at the end of a word.
    const cases = new Set([character, character.toLowerCase(), upper, ...(upper === 'Σ' ? 'σς' : '')])
    const forms = [...cases].filter(form => [...form].length === 1)
    return forms.length > 1 ? `[${forms.join('')}]` : character.replace(special, quoted)
  }).join('')
  return engine === 'postgres' ? sql`${column} ~ ${pattern}` : sql`${column} GLOB ${`*${pattern}*`}`
}
