import { generateSQLiteDrizzleJson, generateSQLiteMigration } from 'drizzle-kit/api'
import { sqliteTables } from './src/storage/sqlite-tables.ts'

/**
 * tables.ts as SQL: what drizzle-kit makes of it, and STRICT, which it does not know. Tables that only pair two keys keep
 * their rows in the primary key (WITHOUT ROWID): one tree less to write at each insert.
 */
export const sqliteMigration = async (): Promise<string> => {
  const empty = await generateSQLiteDrizzleJson({})
  const statements = await generateSQLiteMigration(empty, await generateSQLiteDrizzleJson(sqliteTables))
  const lines = statements.map(statement => {
    const options = /\tPRIMARY KEY\(/.test(statement) ? 'STRICT, WITHOUT ROWID' : 'STRICT'
    return statement
      .trim()
      .replace(/^CREATE TABLE.*\)(?=;$)/s, `\n$& ${options}`)
      .replaceAll('\t', '  ')
      .replaceAll(' ON UPDATE no action', '')
  })
  return `-- Made from src/storage/tables.ts by \`bun run db:generate\`.\n${lines.join('\n')}\n`
}

// Until the first release there is one migration of the tables, made anew after each change of them. A released one
// never changes (databases that have it would be refused): from then on write the difference to the released tables,
// the first argument of generateSQLiteMigration, into the next number.
if (import.meta.main) await Bun.write('migrations/sqlite/0000_tables.sql', await sqliteMigration())
