/** Tests backups of a large database, and of a database under concurrent writes. */
import { Database } from 'bun:sqlite'
import { afterAll, expect, test } from 'bun:test'
import { copyFileSync, mkdirSync, mkdtempSync, rmSync, statSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fill } from '#test/bench/fill.ts'
import { EXECUTABLE, SECRET, serveExecutable } from '#test/support/executable.ts'
import { remote } from '#test/support/remote.ts'
import { figure, LONG } from './faults.ts'
import { percentile } from './percentile.ts'

const root = mkdtempSync(join(tmpdir(), 'gatehouse-backup-'))
afterAll(() => rmSync(root, { recursive: true, force: true }))
const folder = (name: string): string => {
  const path = join(root, name)
  mkdirSync(path)
  return path
}
const database = (data_dir: string): string => join(data_dir, 'gatehouse.db')

/** Returns the data directory of a stopped server with `users` users and four events for each. */
const filled = async (name: string, users: number): Promise<string> => {
  const data_dir = folder(name)
  const server = await serveExecutable({}, data_dir)
  server.signal('SIGTERM')
  await server.exited
  fill(database(data_dir), users, users * 4)
  return data_dir
}
/** Runs a command that must succeed. Returns its elapsed time and its CPU time in seconds. */
const timed = async (args: string[], data_dir: string): Promise<{ passed: number; worked: number }> => {
  const began = performance.now()
  const child = Bun.spawn([EXECUTABLE, ...args], {
    env: { GATEHOUSE_DATA_DIR: data_dir },
    stdout: 'ignore',
    stderr: 'pipe',
  })
  const said = await new Response(child.stderr).text()
  expect([await child.exited, said]).toEqual([0, ''])
  return {
    passed: (performance.now() - began) / 1_000,
    worked: Number(child.resourceUsage()?.cpuTime.total) / 1e6,
  }
}

test(
  'R-10 a large database is backed up and restored within a minute per gigabyte',
  async () => {
    const users = LONG ? 250_000 : 4_000
    const data_dir = await filled('large', users)
    const gigabytes = statSync(database(data_dir)).size / 1e9
    const file = join(root, 'large.db')
    const backup = await timed(['backup', file], data_dir)
    const other = folder('restored')
    copyFileSync(join(data_dir, 'master.key'), join(other, 'master.key'))
    const restore = await timed(['restore', file], other)
    await using server = await serveExecutable({}, other)
    const { body } = await server.admin('GET', '/users')
    expect(body.pagination.total).toBe(users)
    // On a busy machine the elapsed time includes the work of other processes. This test therefore limits
    // only CPU time.
    expect(restore.worked).toBeLessThan(60 * Math.max(gigabytes, 0.1))
    const told = ({ passed, worked }: typeof restore) =>
      `${passed.toFixed(1)} s (${worked.toFixed(1)} s of processor)`
    figure(
      'R-10',
      `${gigabytes.toFixed(2)} GB: backed up and verified in ${told(backup)}, restored and verified in ${told(restore)}`,
    )
  },
  LONG ? 900_000 : 60_000,
)

const form = { grant_type: 'client_credentials', client_id: 'gatehouse-admin', client_secret: SECRET }
const recorded = (path: string): number => {
  using db = new Database(path, { readonly: true })
  return Number(
    db.query("SELECT count(*) FROM events WHERE type = 'token.issued' AND mac <> ''").values()[0]?.[0],
  )
}

test(
  'R-13 each backup beside a writing server opens, is complete, and has every write that was answered before the backup began',
  async () => {
    const backups = LONG ? 100 : 3
    const data_dir = await filled('busy', LONG ? 25_000 : 2_000)
    await using server = await serveExecutable({ GATEHOUSE_LOG_LEVEL: 'warn' }, data_dir)
    const { call } = remote(server)
    let answered = 0
    let times: number[] = []
    let over = false
    const write = async (): Promise<void> => {
      while (!over) {
        const began = performance.now()
        const { status } = await call('/oauth/token', { method: 'POST', body: new URLSearchParams(form) })
        expect(status).toBe(200)
        answered++
        times.push(performance.now() - began)
        await Bun.sleep(20)
      }
    }
    const writers = Promise.all(Array.from({ length: 8 }, write))
    await Bun.sleep(LONG ? 20_000 : 500)
    const alone = percentile(times, 0.99)
    times = []
    let took = 0
    for (let n = 0; n < backups; n++) {
      const file = join(root, `busy-${n}.db`)
      const before = answered
      took += (await timed(['backup', file], data_dir)).passed
      const other = folder(`busy-${n}`)
      copyFileSync(join(data_dir, 'master.key'), join(other, 'master.key'))
      await timed(['restore', file], other)
      expect(recorded(database(other))).toBeGreaterThanOrEqual(before)
      rmSync(other, { recursive: true })
      rmSync(file)
    }
    const beside = percentile(times, 0.99)
    over = true
    await writers
    figure(
      'R-13',
      `${backups} backups of ${Math.round(statSync(database(data_dir)).size / 1e6)} MB, ${(took / backups).toFixed(1)} s each: all whole; p99 of writes ${alone.toFixed(1)} ms without, ${beside.toFixed(1)} ms beside them`,
    )
  },
  LONG ? 1_200_000 : 60_000,
)
