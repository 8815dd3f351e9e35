import { SQL } from 'bun'
import { eq } from 'drizzle-orm'
import type { Store, Transaction } from '#src/storage/store.ts'
import { freshStore, openBeside } from '#test/support/store.ts'

export const put = async (tx: Transaction, name: string, value: unknown = name) => {
  await tx.insert(tx.tables.settings).values({ name, value, updated_at: 1 })
}

export const stored = async (store: Pick<Store, 'read'>, name: string): Promise<unknown> => {
  const [row] = await store.read(q =>
    q.select().from(q.tables.settings).where(eq(q.tables.settings.name, name)),
  )
  return row?.value
}

export const unavailable = { code: 'temporarily_unavailable', status: 503, headers: { 'retry-after': '1' } }

/** Runs statements on the server without a store. Returns the rows of the last statement. */
export const ask = async (url: string, ...statements: string[]) => {
  const sql = new SQL({ url, max: 1 })
  let answer: Record<string, unknown>[] = []
  for (const statement of statements) answer = await sql.unsafe(statement)
  await sql.close()
  return answer
}

export const killOthers =
  'SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()'

/** Resolves to the next notification of the store. */
export const nextOf = (store: Store): Promise<string[] | undefined> =>
  new Promise(resolve => store.onChange(topics => resolve(topics && [...topics])))

export const copies = async () => {
  const one = await freshStore()
  const other = await openBeside(one.path)
  return { one, other }
}
