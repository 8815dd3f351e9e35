// Writes the rows of the default seed to src/dev/default-rows.json. With --check the script changes nothing;
// it compares the rows with the file.

import { Database } from 'bun:sqlite'
import { join } from 'node:path'
import { defaultSeed } from '#src/dev/default-seed.ts'
import { start } from '#src/testing/start.ts'

export const FILE = join(import.meta.dir, '../src/dev/default-rows.json')
/** Tables that are filled by triggers, by migrations or at the start of a server. */
const OTHERS = /^(?:migrations|counters|statistics|signing_keys|events|users_search\w*|sqlite_\w+)$/
/** Columns that triggers maintain. */
const COUNTS = ['user_count', 'member_count']

type Row = Record<string, unknown>

/**
 * Returns the content of the file. Starts a server that applies the default seed, and reads the rows from its
 * database.
 */
export const seedRows = async (): Promise<object> => {
  const { now } = Date
  // Each reading of the clock gives a later time, so that all runs order the times in the same way.
  let tick = now()
  Date.now = () => ++tick
  // A server that starts with a seed applies the seed. It does not load the rows of the file.
  const server = await start({ seed: { ...defaultSeed } })
  Date.now = now
  using db = new Database(join(server.data_dir, 'gatehouse.db'), { readonly: true })
  const names = db.query("SELECT name FROM sqlite_schema WHERE type = 'table'").values().flat() as string[]
  const rowsOf = (name: string) => db.query(`SELECT * FROM "${name}"`).all() as Row[]
  const filled = names
    .filter(name => !OTHERS.test(name))
    .map(name => [name, rowsOf(name).filter(({ name }) => name !== 'instance_key')] as const)
    .filter(([, rows]) => rows.length > 0)
  const times = new Set(
    filled.flatMap(([, rows]) =>
      rows.flatMap(row =>
        Object.entries(row)
          .filter(isTime)
          .map(([, at]) => at),
      ),
    ),
  )
  const ranks = new Map([...times].sort().map((at, rank) => [at, rank + 1 - times.size]))
  const defaultsOf = (name: string) => {
    const columns = db.query(`PRAGMA table_info("${name}")`).all() as { name: string; dflt_value: string }[]
    return db.query(`SELECT ${columns.map(each => `${each.dflt_value} AS "${each.name}"`)}`).get() as Row
  }
  /**
   * Leaves out columns that have their default value, so that a new column with a default does not change the
   * file.
   */
  const relative = (row: Row, defaults: Row): Row =>
    Object.fromEntries(
      Object.entries(row)
        .map(
          ([column, value]) => [column, COUNTS.includes(column) ? 0 : (ranks.get(value) ?? value)] as const,
        )
        .filter(([column, value]) => value !== defaults[column]),
    )
  const rows = Object.fromEntries(
    filled.map(([name, all]) => [name, all.map(row => relative(row, defaultsOf(name)))]),
  )
  const events = rowsOf('events').map(({ type, target_id, target_type, organization_id, metadata }) => ({
    type,
    target_id,
    target_type,
    organization_id,
    metadata: JSON.parse(String(metadata)),
  }))
  await server.stop()
  return { rows, events }
}

const isTime = ([column, value]: [string, unknown]): boolean =>
  column.endsWith('_at') && typeof value === 'number'

if (import.meta.main) {
  const rows = await seedRows()
  if (!process.argv.includes('--check')) await Bun.write(FILE, JSON.stringify(rows))
  else if (!Bun.deepEquals(rows, await Bun.file(FILE).json())) {
    console.error(`${FILE} is out of date: run \`bun run seed:generate\`.`)
    process.exit(1)
  }
  process.exit(0)
}
