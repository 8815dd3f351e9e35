import { Database, type SQLQueryBindings } from 'bun:sqlite'
import { expect, test } from 'bun:test'
import { DEFAULT_ORGANIZATION } from '#src/lib/ids.ts'
import { searchText } from '#src/storage/search.ts'
import { openSqlite } from '#src/storage/sqlite/store.ts'
import { temporaryDatabase } from '#test/support/store.ts'
import { userRow } from './rows.ts'

const USERS = 4_500
/**
 * Largest number of pages that one write may change: the rows and indexes of a user, and one step of a merge.
 */
const PAGES = 150
/** Largest number of parts that the index may have at any time. Each search reads all parts. */
const PARTS = 35

test('the search index stays merged while users are added, renamed and deleted, and no write merges much', async () => {
  const path = await temporaryDatabase()
  const store = await openSqlite({ path, durable: false })
  await store.write(tx => tx.insert(tx.tables.users).values(userRow(DEFAULT_ORGANIZATION, 'first')))
  await store.close()

  using db = new Database(path)
  db.run('PRAGMA synchronous = OFF')
  db.run('PRAGMA wal_autocheckpoint = 0')
  // The upper bits of a key are the id of a segment: https://www.sqlite.org/fts5.html#the_inverted_index
  const parts = db.prepare('SELECT count(DISTINCT id >> 37) FROM users_search_data WHERE id > 10')
  const log = db.prepare('PRAGMA wal_checkpoint(NOOP)')
  /**
   * Writes once for each name. Returns the largest number of pages that a write changed, and the largest
   * number of parts.
   */
  const most = (names: string[], write: (name: string) => void) => {
    let [pages, count, before] = [0, 0, Number(log.values()[0]?.[1])]
    for (const [i, name] of names.entries()) {
      write(name)
      const now = Number(log.values()[0]?.[1])
      pages = Math.max(pages, now - before)
      if (i % 15 === 0) count = Math.max(count, Number(parts.values()[0]?.[0]))
      before = now
    }
    db.run('PRAGMA wal_checkpoint(TRUNCATE)')
    return { pages, count }
  }
  const found = (term: string) =>
    db.query('SELECT count(*) FROM users_search WHERE search_text MATCH ?').values(`"${term}"`)[0]?.[0]

  const [first] = db.query<Record<string, SQLQueryBindings>, []>('SELECT * FROM users').all()
  if (!first) throw new Error('The first user is missing.')
  const { seq: _, ...columns } = first
  const keys = Object.keys(columns)
  const insert = db.prepare(`INSERT INTO users (${keys}) VALUES (${keys.map(() => '?')})`)
  const rename = db.prepare('UPDATE users SET search_text = ?2 WHERE id = ?1')
  const remove = db.prepare('DELETE FROM users WHERE id = ?')
  const names = Array.from({ length: USERS }, (_, i) => `${(i * 7919).toString(36)}.user${i}`)
  const user = (username: string, first_name = '') => {
    const email = `${username}@example.com`
    const text = { organization_id: DEFAULT_ORGANIZATION, username, email, first_name, last_name: '' }
    return {
      ...columns,
      ...{ id: username, username, username_fold: username, email, email_fold: email },
      search_text: searchText(text),
    }
  }
  for (const [write, left] of [
    [name => insert.run(...Object.values(user(name))), 0],
    [name => rename.run(name, user(name, 'Zoë').search_text), USERS],
    [name => remove.run(name), 0],
  ] as [(name: string) => void, number][]) {
    const { pages, count } = most(names, write)
    expect(pages).toBeLessThanOrEqual(PAGES)
    expect(count).toBeLessThanOrEqual(PARTS)
    expect(found('zoë')).toBe(left)
  }
  db.run("INSERT INTO users_search (users_search, rank) VALUES ('integrity-check', 1)")
})
