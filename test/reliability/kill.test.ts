import { Database } from 'bun:sqlite'
import { expect, test } from 'bun:test'
import { join } from 'node:path'
import { openSqlite } from '#src/storage/sqlite/store.ts'
import { temporaryDatabase } from '#test/support/store.ts'
import { figure, LONG } from './faults.ts'

const ROUNDS = Number(process.env.KILLS ?? (LONG ? 1_000 : 20))

const writer = join(import.meta.dir, 'writer.ts')

/**
 * Runs the writer until it has acknowledged `writes` writes. Then kills the writer, and returns all
 * acknowledged writes.
 */
const runAndKill = async (path: string, round: number, writes: number): Promise<string[]> => {
  const child = Bun.spawn(['bun', writer, path, String(round)], { stdout: 'pipe', stderr: 'inherit' })
  let said = ''
  const decoder = new TextDecoder()
  for await (const chunk of child.stdout) {
    said += decoder.decode(chunk, { stream: true })
    if (said.split('\n').length > writes) child.kill('SIGKILL')
  }
  await child.exited
  // The last line is empty or incomplete, so it acknowledges nothing.
  return said.split('\n').slice(0, -1)
}

test(
  'R-01 killed at random moments: no acknowledged write is lost, and no other is half there',
  async () => {
    const path = await temporaryDatabase()
    const acknowledged: string[] = []
    for (let round = 0; round < ROUNDS; round++) {
      acknowledged.push(...(await runAndKill(path, round, 1 + ((round * 37) % 120))))
      const store = await openSqlite({ path })
      const rows = await store.read(q => q.select({ name: q.tables.settings.name }).from(q.tables.settings))
      const stored = new Set(rows.map(row => row.name))
      expect(acknowledged.filter(name => !stored.has(name))).toEqual([])
      const half = [...stored].filter(
        name => !stored.has(name.endsWith('.twin') ? name.slice(0, -5) : `${name}.twin`),
      )
      expect(half).toEqual([])
      await store.close()
      using db = new Database(path)
      expect(db.query('PRAGMA integrity_check').values()).toEqual([['ok']])
    }
    expect(acknowledged.length).toBeGreaterThan(50 * ROUNDS)
    figure('R-01', `${ROUNDS} kills, ${acknowledged.length} acknowledged writes: none lost, none by half`)
  },
  60_000 + 3_000 * ROUNDS,
)
