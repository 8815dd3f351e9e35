import { hash } from 'node:crypto'
import { type SQL, sql } from 'drizzle-orm'
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

/**
 * Three private-use characters, one trigram: searching one organization skips the users of the others inside the
 * index. Organizations may share a code, so the rows found are still compared by `organization_id`.
 */
const organizationCode = (id: OrganizationId): string => {
  const digest = hash('sha256', id, 'buffer')
  return String.fromCharCode(...[0, 2, 4].map(i => 0xe000 + (digest.readUInt16BE(i) % 6400)))
}

/**
 * The value of `users.search_text`: one field a line so that no term spans two. The two line feeds at the end let a
 * trigram begin at each letter.
 */
export const searchText = (user: Searchable): string =>
  `${organizationCode(user.organization_id)}\n${fold([user.username, user.email, user.first_name, user.last_name].join('\n'))}\n\n`

/** The index knows trigrams: a shorter term is looked for among their beginnings. */
const TRIGRAM = 3

const quoted = (text: string): string => `"${text.replaceAll('"', '""')}"`

/**
 * Condition: users (rows with a `seq`) whose `search_text` contains `term`, by way of the full-text index: the cost
 * follows the number of those found.
 */
export const indexedSearch = (seq: SQL, term: string, organization_id: OrganizationId | undefined): SQL => {
  const text = fold(term)
  if ([...text].length < TRIGRAM)
    return sql`${seq} IN (SELECT doc FROM users_search_terms WHERE term >= ${text} AND term < ${`${text}\u{10ffff}`})`
  const match = organization_id
    ? `${quoted(organizationCode(organization_id))} AND ${quoted(text)}`
    : quoted(text)
  return sql`${seq} IN (SELECT rowid FROM users_search WHERE users_search MATCH ${match})`
}

/** The same condition looked up row by row: for common terms in the order of a list, and for small sets. */
export const containsTerm = ({ tables: { users } }: Queries, term: string): SQL =>
  sql`instr(${users.search_text}, ${fold(term)}) > 0`
