import { Database } from 'bun:sqlite'
import { expect, test } from 'bun:test'
import { readFileSync } from 'node:fs'
import { eq } from 'drizzle-orm'
import { othersRun } from '#src/lib/turn.ts'
import { isUniqueViolation } from '#src/storage/errors.ts'
import { openSqlite } from '#src/storage/sqlite/store.ts'
import type { Queries, Topic, Transaction } from '#src/storage/store.ts'
import { freshStore, temporaryDatabase } from '#test/support/store.ts'

const put = async (tx: Transaction, name: string, value: unknown = name) => {
  await tx.insert(tx.tables.settings).values({ name, value, updated_at: 1 })
}

const names = async (q: Queries) => (await q.select().from(q.tables.settings)).map(row => row.name).sort()

/**
 * Counts the commits in the log. The header of the last frame of each commit has the size of the database.
 * https://www.sqlite.org/fileformat2.html#walformat
 */
const commitsIn = (path: string): number => {
  const log = readFileSync(`${path}-wal`)
  const frame = 24 + log.readUInt32BE(8)
  let commits = 0
  for (let at = 32; at + frame <= log.length; at += frame) if (log.readUInt32BE(at + 4) !== 0) commits++
  return commits
}

// contract.test.ts tests the rules of every engine.

test('concurrent writes share one commit', async () => {
  const store = await freshStore()
  await Promise.all(Array.from({ length: 40 }, (_, i) => store.write(tx => put(tx, `n${i}`))))
  expect(commitsIn(store.path)).toBe(1)
  expect(await store.read(names)).toHaveLength(40)
})

test('a write that comes one turn later shares the commit if the last commit had more writes', async () => {
  const store = await freshStore()
  let commits = 0
  store.onChange(() => void commits++)
  const write = () => store.write(async tx => tx.changed('roles'))
  const pair = async () => {
    await othersRun()
    const first = write()
    await othersRun()
    await Promise.all([first, write()])
  }
  await write()
  await pair()
  expect(commits).toBe(3)
  await Promise.all([write(), write(), write()])
  await pair()
  expect(commits).toBe(5)
})

test('a unique violation fails one statement: its body may continue', async () => {
  const store = await freshStore()
  await store.write(async tx => {
    await put(tx, 'a')
    const error = await put(tx, 'a').catch(error => error)
    expect(isUniqueViolation(error)).toBe(true)
    await put(tx, 'b')
  })
  expect(await store.read(names)).toEqual(['a', 'b'])
  expect(isUniqueViolation(new Error('other'))).toBe(false)
  expect(
    isUniqueViolation(new Error('query', { cause: Object.assign(new Error(), { code: '23505' }) })),
  ).toBe(true)
})

test('R-04 a full disk: every write of the batch is refused and rolled back, reads continue, and writes resume', async () => {
  const store = await openSqlite({ path: await temporaryDatabase(), max_pages: 120 })
  const writes = [
    store.write(tx => put(tx, 'small')),
    store.write(tx => put(tx, 'large', 'x'.repeat(2_000_000))),
    store.write(tx => put(tx, 'small too')),
  ]
  const refusal = { code: 'temporarily_unavailable', status: 503, headers: { 'retry-after': '1' } }
  for (const outcome of await Promise.allSettled(writes))
    expect(outcome).toMatchObject({ status: 'rejected', reason: refusal })
  expect(await store.read(names)).toEqual([])
  await store.write(tx => put(tx, 'later'))
  expect(await store.read(names)).toEqual(['later'])
  expect(await store.ready()).toBe(true)
  await store.close()
})

test('a body that continues after the transaction was lost writes nothing', async () => {
  const store = await openSqlite({ path: await temporaryDatabase(), max_pages: 120 })
  const write = store.write(async tx => {
    await put(tx, 'large', 'x'.repeat(2_000_000)).catch(() => {})
    await put(tx, 'alone')
  })
  await expect(write).rejects.toMatchObject({ code: 'temporarily_unavailable' })
  expect(await store.read(names)).toEqual([])
  await store.close()
})

test('a read cannot write, neither outside a transaction nor beside one', async () => {
  const store = await freshStore()
  const refused = 'A read has only SELECT statements.'
  const write = (q: Queries) => q.insert(q.tables.settings).values({ name: 'a', value: 1, updated_at: 1 })
  await expect(store.read(async q => void (await write(q)))).rejects.toThrow(refused)
  await store.write(async tx => {
    await put(tx, 'b')
    await expect(store.read(async q => void (await write(q)))).rejects.toThrow(refused)
    expect(await store.read(names)).toEqual([])
  })
  expect(await store.read(names)).toEqual(['b'])
})

test('topics are published once per commit, before its writers continue, and not for a body that threw', async () => {
  const store = await freshStore()
  const told: (Topic[] | undefined)[] = []
  store.onChange(topics => void told.push(topics && [...topics].sort()))
  await Promise.allSettled([
    store.write(async tx => tx.changed('roles')),
    store.write(async tx => {
      tx.changed('keys')
      throw new Error('no')
    }),
    store.write(async tx => tx.changed('clients')).then(() => expect(told).toEqual([['clients', 'roles']])),
    store.write(tx => put(tx, 'a')),
  ])
  await store.write(tx => put(tx, 'b'))
  expect(told).toEqual([['clients', 'roles']])
})

test('waits for a short write of another process', async () => {
  const store = await freshStore()
  using other = new Database(store.path)
  other.run('BEGIN IMMEDIATE')
  const write = store.write(tx => put(tx, 'a'))
  setTimeout(() => other.run('COMMIT'), 5)
  await write
  expect(await store.read(names)).toEqual(['a'])
})

test('RUN-28 the commit of another process is noticed, and the store’s own are not', async () => {
  const store = await freshStore()
  const told = Promise.withResolvers<unknown>()
  store.onChange(topics => told.resolve(topics ?? 'anything'))
  await store.write(tx => put(tx, 'ours'))
  using other = new Database(store.path)
  other.run("UPDATE settings SET value = '1'")
  expect(await told.promise).toBe('anything')
  const [row] = await store.read(q =>
    q.select().from(q.tables.settings).where(eq(q.tables.settings.name, 'ours')),
  )
  expect(row?.value).toBe(1)
})

test('a closed store refuses writes and leaves one complete file', async () => {
  const path = await temporaryDatabase()
  const store = await openSqlite({ path })
  const last = store.write(tx => put(tx, 'a'))
  await store.close()
  await last
  await expect(store.write(tx => put(tx, 'b'))).rejects.toMatchObject({ code: 'temporarily_unavailable' })
  expect(readFileSync(path).includes('a')).toBe(true)
  expect(await Bun.file(`${path}-wal`).exists()).toBe(false)
})
