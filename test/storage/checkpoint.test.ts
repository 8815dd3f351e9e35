import { Database } from 'bun:sqlite'
import { expect, test } from 'bun:test'
import { statSync } from 'node:fs'
import type { Store } from '#src/storage/store.ts'
import { freshStore } from '#test/support/store.ts'

const MIB = 1 << 20

/** Writes `mib` MiB, eight writes at a time, and returns the largest size of the log. */
const fill = async (store: Store & { path: string }, mib: number, prefix: string): Promise<number> => {
  let largest = 0
  for (let i = 0; i < mib; i++) {
    const values = (n: number) => ({ name: `${prefix}.${i}.${n}`, value: 'x'.repeat(MIB / 8), updated_at: 1 })
    await Promise.all(
      Array.from({ length: 8 }, (_, n) => store.write(tx => tx.insert(tx.tables.settings).values(values(n)))),
    )
    largest = Math.max(largest, statSync(`${store.path}-wal`).size)
  }
  return largest
}

test('R-08 under constant writes the log stays below 64 MiB, and nothing is lost', async () => {
  const store = await freshStore()
  expect(await fill(store, 90, 'a')).toBeLessThan(64 * MIB)
  expect(await store.read(q => q.$count(q.tables.settings))).toBe(720)
})

test('a log kept by a long read of another process shrinks after the read', async () => {
  const store = await freshStore()
  using other = new Database(store.path)
  other.run('BEGIN')
  other.query('SELECT count(*) FROM settings').values()
  expect(await fill(store, 70, 'a')).toBeGreaterThan(64 * MIB)
  other.run('COMMIT')
  await fill(store, 45, 'b')
  await store.drained()
  await fill(store, 1, 'c')
  expect(statSync(`${store.path}-wal`).size).toBeLessThan(64 * MIB)
})

test('a caller that waits for idle finds a long log checkpointed, however few writes made it', async () => {
  const store = await freshStore()
  using other = new Database(store.path)
  const rest = (): number => {
    const [, log, copied] = other.query('PRAGMA wal_checkpoint(NOOP)').values()[0] as number[]
    return (log ?? 0) - (copied ?? 0)
  }
  for (let n = 0; n < 5; n++)
    await store.write(tx =>
      tx.insert(tx.tables.settings).values({ name: `${n}`, value: 'x'.repeat(8 * MIB), updated_at: 1 }),
    )
  expect(rest()).toBeGreaterThan(10_000)
  await store.drained()
  expect(rest()).toBe(0)
})
