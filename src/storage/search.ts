import { type SQL, sql } from 'drizzle-orm'
import { fold } from '#src/lib/text.ts'
import type { Queries } from './store.ts'

interface Searchable {
  username: string
  email: string
  first_name: string
  last_name: string
}

/** The value of `users.search_text`: what search compares with, one field a line so that no term spans two. */
export const searchText = (user: Searchable): string =>
  fold([user.username, user.email, user.first_name, user.last_name].join('\n'))

/** The index knows trigrams: a shorter term is looked for row by row. */
export const INDEXED_TERM_LENGTH = 3

/** Users whose `search_text` contains `term`, found through the full-text index: for rare terms. */
export const foundBySearch = ({ tables: { users } }: Queries, term: string): SQL =>
  sql`${users.seq} IN (SELECT rowid FROM users_search WHERE users_search MATCH ${`"${fold(term).replaceAll('"', '""')}"`})`

/** The same condition looked up row by row: for common or short terms, and for small organizations. */
export const containsTerm = ({ tables: { users } }: Queries, term: string): SQL =>
  sql`instr(${users.search_text}, ${fold(term)}) > 0`
