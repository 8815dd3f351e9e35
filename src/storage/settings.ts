import { eq, sql } from 'drizzle-orm'
import { preparedForStart, type Queries, type Transaction } from './store.ts'

const select = preparedForStart('setting', (q, { settings }) =>
  q
    .select({ value: settings.value })
    .from(settings)
    .where(eq(settings.name, sql.placeholder('name'))),
)

/** Returns the value that `putSetting` has stored. Returns undefined when the name has no value. */
export const getSetting = async <T>(q: Queries, name: string): Promise<T | undefined> =>
  (await select(q, { name }))[0]?.value as T | undefined

const put = preparedForStart('put setting', (q, { settings }) => {
  const row = { value: sql.placeholder('value'), updated_at: sql.placeholder('now') }
  const set = { value: sql`excluded.value`, updated_at: sql`excluded.updated_at` }
  return q
    .insert(settings)
    .values({ name: sql.placeholder('name'), ...row })
    .onConflictDoUpdate({ target: settings.name, set })
})

/** Stores a setting of the server as JSON and replaces its earlier value. `now` is in milliseconds. */
export const putSetting = async (
  tx: Transaction,
  name: string,
  value: unknown,
  now: number,
): Promise<void> => {
  await put(tx, { name, value, now })
  tx.changed('settings')
}

/** Removes a stored setting of the server. */
export const removeSetting = async (tx: Transaction, name: string): Promise<void> => {
  const { settings } = tx.tables
  await tx.delete(settings).where(eq(settings.name, name))
  tx.changed('settings')
}
