import { totalsQueries } from '#src/storage/sqlite/inspect.ts'
import { copiedTables } from '#src/storage/transfer/copy.ts'
import { inPostgres } from '#src/storage/transfer/postgres.ts'

/**
 * Counts the rows of all tables in one snapshot, and recounts the totals that triggers maintain. PostgreSQL
 * itself keeps references and indexes consistent, so they are not checked.
 *
 * @param stall time in ms for which a table may stay locked
 * @throws StorageError when the database cannot be reached, is locked or has no instance of this version
 */
export const inspectPostgres = (
  url: string,
  stall?: number,
): Promise<{ findings: string[]; rows: Record<string, number> }> =>
  inPostgres(url, { migrate: false, mode: 'READ ONLY', stall }, async connection => {
    const count = async (query: string): Promise<number> => {
      const [[total]] = await connection.unsafe(query).values()
      return Number(total)
    }
    const rows: Record<string, number> = {}
    for (const { name } of copiedTables) rows[name] = await count(`SELECT count(*) FROM "${name}"`)
    const findings: string[] = []
    for (const { query, finding } of totalsQueries) if ((await count(query)) !== 0) findings.push(finding)
    return { findings, rows }
  })
