import { eq, sql } from 'drizzle-orm'
import { prepared, type Queries, type Transaction } from './store.ts'

const select = prepared((q, { settings }) =>
  q
    .select({ value: settings.value })
    .from(settings)
    .where(eq(settings.name, sql.placeholder('name'))),
)

/** Returns the value stored by `putSetting`; undefined when the name has no value. */
export const getSetting = async <T>(q: Queries, name: string): Promise<T | undefined> =>
  (await select(q, { name }))[0]?.value as T | undefined

/** Stores a setting of the server as JSON and replaces its earlier value. `now` is in milliseconds. */
export const putSetting = async (
  tx: Transaction,
  name: string,
  value: unknown,
  now: number,
): Promise<void> => {
  const { settings } = tx.tables
  const row = { value, updated_at: now }
  await tx
    .insert(settings)
    .values({ name, ...row })
    .onConflictDoUpdate({ target: settings.name, set: row })
  tx.changed('settings')
}

/** Removes a stored setting of the server. */
export const removeSetting = async (tx: Transaction, name: string): Promise<void> => {
  const { settings } = tx.tables
  await tx.delete(settings).where(eq(settings.name, name))
  tx.changed('settings')
}
