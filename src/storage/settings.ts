import { eq } from 'drizzle-orm'
import type { Queries, Transaction } from './store.ts'

/** Returns the value stored by `putSetting`; undefined when the name has no value. */
export const getSetting = async <T>(q: Queries, name: string): Promise<T | undefined> => {
  const [row] = await q.rows('SELECT value FROM settings WHERE name = $1', name)
  return row && JSON.parse(String(row[0]))
}

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
