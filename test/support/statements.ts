import { Database } from 'bun:sqlite'
import { SQL } from 'bun'
import { PgDeleteBase, PgDialect, PgInsertBase, PgSelectBase, PgUpdateBase } from 'drizzle-orm/pg-core'
import { PgCountBuilder } from 'drizzle-orm/pg-core/query-builders/count'
import type { Json } from './app.ts'
import { isPostgres } from './store.ts'

/** Passes the text of every statement that a store runs to `hear`, until the returned function is called. */
export const hearStatements = (hear: (text: string) => void): (() => void) =>
  isPostgres ? hearPostgres(hear) : hearSqlite(hear)

const hearSqlite = (hear: (text: string) => void): (() => void) => {
  const prepare: Json = Database.prototype.prepare
  Database.prototype.prepare = function (this: Database, text: string, ...more: Json[]) {
    const statement = prepare.call(this, text, ...more)
    for (const name of ['all', 'values', 'run']) {
      const execute = statement[name].bind(statement)
      statement[name] = (...values: Json[]) => {
        if (!text.startsWith('PRAGMA')) hear(text)
        return execute(...values)
      }
    }
    return statement
  }
  return () => {
    Database.prototype.prepare = prepare
  }
}

const hearPostgres = (hear: (text: string) => void): (() => void) => {
  const builders: Json[] = [PgSelectBase, PgInsertBase, PgUpdateBase, PgDeleteBase].map(of => of.prototype)
  const originals = builders.map(prototype => prototype._prepare)
  builders.forEach((prototype, i) => {
    prototype._prepare = function (this: Json, ...args: Json[]) {
      const { sql } = this.toSQL()
      const prepared = originals[i].apply(this, args)
      const { execute } = prepared
      prepared.execute = (...values: Json[]) => {
        hear(sql)
        return execute(...values)
      }
      return prepared
    }
  })
  const counts: Json = PgCountBuilder.prototype
  const { then } = counts
  // biome-ignore lint/suspicious/noThenProperty: drizzle's own method, replaced by one that calls it
  counts.then = function (this: Json, ...args: Json[]) {
    hear(new PgDialect().sqlToQuery(this.sql).sql)
    return then.apply(this, args)
  }
  return () => {
    builders.forEach((prototype, i) => {
      prototype._prepare = originals[i]
    })
    // biome-ignore lint/suspicious/noThenProperty: see above
    counts.then = then
  }
}

interface Plan {
  text: string
  /** The plan as the engine describes it, outermost step first. */
  steps: { isOutermost: boolean; detail: string }[]
}

/**
 * Returns the engine's plans of these statements. The plans do not depend on parameters. If PostgreSQL
 * expects few rows, it may sort the rows instead of reading them in the order of an index. PostgreSQL's plan
 * for thousands of rows shows that an index can be used. It does not show which index is used for a million
 * rows.
 */
export const plansOf = async (path: string, texts: string[]): Promise<Plan[]> => {
  if (!isPostgres) {
    using db = new Database(path, { readonly: true })
    return texts.map(text => ({
      text,
      steps: db
        .query<{ parent: number; detail: string }, []>(`EXPLAIN QUERY PLAN ${text}`)
        .all()
        .map(({ parent, detail }) => ({ isOutermost: parent === 0, detail })),
    }))
  }
  const sql = new SQL({ url: path, max: 1 })
  await sql.unsafe("SET enable_seqscan = off; SET plan_cache_mode = 'force_generic_plan'")
  const plans: Plan[] = []
  for (const text of texts) {
    const parameters = new Set(text.match(/\$\d+/g)).size
    const values = parameters > 0 ? `(${Array(parameters).fill('NULL').join()})` : ''
    await sql.unsafe(`PREPARE asked AS ${text}`)
    const rows: Json[] = await sql.unsafe(`EXPLAIN (COSTS OFF) EXECUTE asked${values}`)
    await sql.unsafe('DEALLOCATE asked')
    plans.push({ text, steps: rows.map(row => ({ isOutermost: false, detail: row['QUERY PLAN'].trim() })) })
  }
  await sql.close()
  return plans
}
