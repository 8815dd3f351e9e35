import { expect, test } from 'bun:test'
import { addCounts, readCounts } from '#src/audit/statistics-store.ts'
import { HOUR } from '#src/lib/duration.ts'
import { DEFAULT_ORGANIZATION } from '#src/lib/ids.ts'
import type { Transaction } from '#src/storage/store.ts'
import { START } from '#test/support/app.ts'
import { hearStatements } from '#test/support/statements.ts'
import { freshStore } from '#test/support/store.ts'

const logIn = (tx: Transaction): void => addCounts(tx, DEFAULT_ORGANIZATION, START, { logins: 1 })

const loginsIn = async (store: Awaited<ReturnType<typeof freshStore>>): Promise<number> => {
  const [row] = await store.read(q => readCounts(q, DEFAULT_ORGANIZATION, [START, START], HOUR))
  return row?.logins ?? 0
}

test('STA-04 the counts of a write are one statement', async () => {
  const heard: string[] = []
  const stop = hearStatements(text => heard.push(text))
  const store = await freshStore()
  heard.length = 0
  await store.write(async tx => {
    logIn(tx)
    addCounts(tx, DEFAULT_ORGANIZATION, START, { tokens: 2 })
    logIn(tx)
  })
  stop()
  expect(heard.filter(text => /insert into "statistics"/i.test(text))).toHaveLength(1)
  const [row] = await store.read(q => readCounts(q, DEFAULT_ORGANIZATION, [START, START], HOUR))
  expect(row).toMatchObject({ logins: 2, tokens: 2, failed_logins: 0 })
})

test('STA-04 writes that commit together count each of their own', async () => {
  const store = await freshStore()
  await Promise.all(Array.from({ length: 20 }, () => store.write(async tx => logIn(tx))))
  expect(await loginsIn(store)).toBe(20)
})

test('STA-04 a write or part of a write that fails, and a rehearsal, count nothing', async () => {
  const store = await freshStore()
  const failing = async (tx: Transaction): Promise<void> => {
    logIn(tx)
    throw new Error('refused')
  }
  const together = [
    store.write(failing),
    store.write(async tx => logIn(tx)),
    store.rehearse(async tx => logIn(tx), 'all'),
  ]
  expect((await Promise.allSettled(together)).map(({ status }) => status)).toEqual([
    'rejected',
    'fulfilled',
    'fulfilled',
  ])
  await store.write(async tx => {
    logIn(tx)
    await tx.nested(() => failing(tx)).catch(() => {})
  })
  expect(await loginsIn(store)).toBe(2)
})
