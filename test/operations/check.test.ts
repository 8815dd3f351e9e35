import { Database } from 'bun:sqlite'
import { expect, test } from 'bun:test'
import { copyFileSync, mkdtempSync, readFileSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { storedAfter } from '#src/audit/integrity-store.ts'
import type { Context } from '#src/context.ts'
import { checkEvents, checkKeys } from '#src/operations/check.ts'
import { backUp } from '#src/storage/backup.ts'
import { inspect } from '#src/storage/inspect.ts'
import { openSqlite } from '#src/storage/sqlite.ts'
import { startApp } from '#test/support/app.ts'
import { addUser } from '#test/support/people.ts'

const folder = mkdtempSync(join(tmpdir(), 'gatehouse-'))

/** An instance with some history, copied without leftovers of rows that moved. */
const withHistory = async () => {
  const app = await startApp()
  for (let i = 0; i < 20; i++) await addUser(app, `user-${i}`)
  const path = join(folder, `${crypto.randomUUID()}.db`)
  backUp(Reflect.get(app.context.store, 'path'), path)
  return { context: app.context, path }
}

/** What check says of the file: anything at all, an error of the engine included. */
const findingsOf = async (path: string, { master }: Pick<Context, 'master'>): Promise<string[]> => {
  try {
    {
      using db = new Database(path, { readonly: true })
      const { findings } = inspect(db)
      if (findings.length > 0) return findings
    }
    const store = await openSqlite({ path, migrate: false })
    try {
      const base = { store, master }
      return [...(await checkKeys(base)).findings, ...(await checkEvents(base)).findings]
    } finally {
      await store.close()
    }
  } catch (error) {
    return [String(error)]
  }
}

test('nothing is found where nothing is wrong', async () => {
  const { path, context } = await withHistory()
  expect(await findingsOf(path, context)).toEqual([])
  expect((await checkEvents(context)).count).toBeGreaterThan(20)
})

test('an event that somebody rewrote behind the server, trigger or not', async () => {
  const { path, context } = await withHistory()
  const [first] = await context.store.read(q => storedAfter(q, 0, 1))
  for (const change of [
    "actor_id = 'somebody'",
    'timestamp = timestamp + 1',
    "metadata = '{}'",
    'actor_email = NULL, actor_id = NULL',
  ]) {
    const copy = `${path}.changed`
    copyFileSync(path, copy)
    {
      using db = new Database(copy)
      db.run('DROP TRIGGER events_immutable')
      db.run(`UPDATE events SET ${change}, type = 'user.login' WHERE seq = ${first?.seq}`)
    }
    expect(await findingsOf(copy, context)).toEqual([`events: number ${first?.seq} is not what was recorded`])
  }
})

test('R-06 two hundred flipped bytes in structure, events and keys: each is found', async () => {
  const { path, context } = await withHistory()
  const whole = readFileSync(path)
  const [macs, keys] = ((): [string[], Uint8Array[]] => {
    using db = new Database(path, { readonly: true })
    const column = (query: string) => db.query(query).values().flat()
    return [
      column('SELECT mac FROM events') as string[],
      column('SELECT private_key FROM signing_keys') as Uint8Array[],
    ]
  })()
  const pages = whole.length / 4096 - 1
  // An event's row ends in its mac: before it stands what the event says. Unused space of an earlier page may have old copies.
  const places: ((n: number) => number)[] = [
    n => 4096 * (1 + ((n * 7) % pages)) + (n % 2),
    n => whole.lastIndexOf(macs[n % macs.length] ?? '') + 42 - ((n * 5) % 150),
    n => whole.indexOf(keys[n % keys.length] ?? '') + ((n * 11) % 100),
  ]
  const copy = `${path}.flipped`
  const missed: string[] = []
  for (let n = 0; n < 200; n++) {
    const offset = places[n % places.length]?.(n) ?? 0
    const flipped = Buffer.from(whole)
    flipped[offset] = (whole[offset] ?? 0) ^ (1 << (n % 8))
    writeFileSync(copy, flipped)
    if ((await findingsOf(copy, context)).length === 0) missed.push(`${n % 3} at ${offset}`)
  }
  expect(missed).toEqual([])
}, 60_000)
