import type { Database } from 'bun:sqlite'
import { identifier, indexFindings } from './index-check.ts'
import { requireOurs } from './migrate.ts'
import { MAX_FINDINGS, schemaFindings } from './schema-check.ts'

const rowsOf = (table: string, condition = 'true'): string =>
  `SELECT organization_id, count(*) FROM ${table} WHERE ${condition} AND organization_id IN (SELECT id FROM organizations)
   GROUP BY organization_id`

/**
 * The totals that triggers maintain, each with the query that recounts it. The queries run on both engines.
 * They do not count remaining rows of a deleted organization.
 */
const counted = {
  users: rowsOf('users'),
  roles: rowsOf('roles'),
  groups: rowsOf('groups'),
  clients: rowsOf('clients'),
  events: rowsOf('events'),
  sessions: rowsOf('sessions', 'ended_at IS NULL'),
  organizations: "SELECT '', count(*) FROM organizations HAVING count(*) > 0",
}

/**
 * Returns the query for a count that triggers maintain in each row of `table`. The query compares the count
 * with the number of `rows` that refer to the row.
 */
const columnQuery = (table: string, column: string, rows: string, reference: string) => ({
  query: `SELECT count(*) FROM ${table} WHERE ${column} <> (SELECT count(*) FROM ${rows} WHERE ${reference} = ${table}.id)`,
  finding: `totals: ${column} in ${table} differs from the rows in ${rows}`,
})

/** Each `query` returns 0 when the totals are correct. `finding` is reported for any other result. */
export const totalsQueries = Object.entries(counted)
  .map(([kind, query]) => {
    const kept = `SELECT organization_id, total FROM counters WHERE kind = '${kind}' AND total <> 0`
    return {
      query: `SELECT (SELECT count(*) FROM (${kept} EXCEPT ${query}) AS more)
      + (SELECT count(*) FROM (${query} EXCEPT ${kept}) AS fewer)`,
      finding: `totals: the number of ${kind} differs from the stored total`,
    }
  })
  .concat(
    columnQuery('organizations', 'user_count', 'users', 'organization_id'),
    columnQuery('roles', 'user_count', 'user_roles', 'role_id'),
    columnQuery('groups', 'member_count', 'group_members', 'group_id'),
  )

/** True when SQLite reports a damaged file. An error of a full or read-only disk is no damage. */
export const isDamage = (error: unknown): boolean =>
  /^SQLITE_(CORRUPT|NOTADB|IOERR_(READ|SHORT_READ|CORRUPTFS|DATA)$)/.test(
    String(Reflect.get(Object(error), 'code')),
  )

/**
 * Checks every page and row of a database. Returns the findings and the number of rows per table. Each
 * finding is one line.
 *
 * @param onProgress called with a description of the next part that is read
 * @throws StorageError when the file is not a Gatehouse database of this or an older version
 */
export const inspect = (
  db: Database,
  onProgress: (text: string) => void = () => {},
): { findings: string[]; rows: Record<string, number> } => {
  const findings: string[] = []
  const rows: Record<string, number> = {}
  const runCheck = (what: string, ask: () => void): void => {
    try {
      ask()
    } catch (error) {
      if (!isDamage(error)) throw error
      findings.push(`${what}: ${(error as Error).message}`)
    }
  }
  runCheck('header', () => requireOurs(db))
  if (findings.length > 0) return { findings, rows }
  runCheck('schema', () => {
    findings.push(...schemaFindings(db))
  })
  if (findings.length > 0) return { findings, rows }
  runCheck('structure', () => {
    onProgress('reading each page')
    for (const [text] of db.query(`PRAGMA quick_check(${MAX_FINDINGS})`).values())
      if (text !== 'ok') findings.push(`structure: ${text}`)
  })
  // The check ends here. A scan of the rows would fail at a damaged page, and its error would say less than
  // these findings.
  if (findings.length > 0) return { findings, rows }
  runCheck('tables', () => {
    const names = db.query("SELECT name FROM sqlite_schema WHERE type = 'table'").values()
    for (const [name] of names)
      if (!/^sqlite_|_search/.test(String(name)))
        rows[String(name)] = Number(
          db.query(`SELECT count(*) FROM ${identifier(String(name))}`).values()[0]?.[0],
        )
  })
  runCheck('indexes', () => {
    findings.push(...indexFindings(db, rows, onProgress))
  })
  runCheck('references', () => {
    onProgress('reading references and totals')
    for (const [table, row, parent] of db.query('PRAGMA foreign_key_check').values().slice(0, MAX_FINDINGS))
      findings.push(`references: row ${row} of ${table} refers to a missing row of ${parent}`)
  })
  runCheck('totals', () => {
    const same = db.transaction(() => {
      for (const { query, finding } of totalsQueries)
        if (db.query(query).values()[0]?.[0] !== 0) findings.push(finding)
    })
    same()
  })
  // A transfer does not copy `migrations`, so the counts agree with those of PostgreSQL.
  const { migrations: _, ...copied } = rows
  return { findings: findings.slice(0, MAX_FINDINGS), rows: copied }
}
