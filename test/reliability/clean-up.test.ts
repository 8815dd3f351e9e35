/** Tests a file full of expired rows, with writes while they are removed. */
import { Database } from 'bun:sqlite'
import { expect, test } from 'bun:test'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { eq } from 'drizzle-orm'
import { purge } from '#src/operations/purge.ts'
import { sweep } from '#src/operations/sweep.ts'
import { DELETE_BATCH } from '#src/storage/batches.ts'
import { openSqlite } from '#src/storage/sqlite/store.ts'
import { startApp } from '#test/support/app.ts'
import { addOrganization } from '#test/support/people.ts'
import { figure, LONG } from './faults.ts'
import { percentile } from './percentile.ts'

/**
 * Number of codes. There are a tenth as many expired sessions, and a tenth as many sessions of a deleted
 * organization.
 */
const ROWS = Number(process.env.ROWS ?? (LONG ? 3_000_000 : 20_000))

const numbers = `WITH RECURSIVE numbers (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM numbers LIMIT ?1)`

const fill = (path: string, gone: string): void => {
  const db = new Database(path)
  db.run('PRAGMA busy_timeout = 5000')
  db.run('PRAGMA synchronous = OFF')
  db.prepare(
    `${numbers} INSERT INTO authorization_codes (code_hash, expires_at) SELECT hex(randomblob(22)), n FROM numbers`,
  ).run(ROWS)
  const sessions = db.prepare(
    `${numbers} INSERT INTO sessions (id, user_id, client_id, organization_id, login_id, scope, ip_address, user_agent,
      started_at, last_active_at, expires_at, due_at)
    SELECT printf('sess_%s_%012d', ?2, n), 'usr_' || (n % 1000), 'shop', ?2, 'login_' || n, 'openid', '192.0.2.1',
      'Mozilla/5.0', n, n, ?3, ?3 FROM numbers`,
  )
  sessions.run(ROWS / 10, 'org_default', ROWS)
  sessions.run(ROWS / 10, gone, 8e15)
  db.close()
}

test(
  'R-20 expired rows, and those of a deleted organization, are removed in batches with other writes between',
  async () => {
    const path = join(mkdtempSync(join(tmpdir(), 'gatehouse-')), 'gatehouse.db')
    const app = await startApp({}, { store: await openSqlite({ path }) })
    const { id } = await addOrganization(app, 'gone')
    fill(path, id)
    expect((await app.admin('DELETE', `/organizations/${id}`)).status).toBe(204)
    const times: number[] = []
    let clearing = true
    const began = performance.now()
    const clear = async () => {
      await sweep(app.context)
      await purge(app.context)
    }
    const cleared = clear().finally(() => {
      clearing = false
    })
    while (clearing) {
      const asked = performance.now()
      const role = { name: `role-${times.length}`, description: '', permissions: [] }
      expect((await app.admin('POST', '/roles', role)).status).toBe(201)
      times.push(performance.now() - asked)
    }
    await cleared
    const seconds = (performance.now() - began) / 1_000
    const tables = ['authorization_codes', 'sessions', 'purges'] as const
    const left = await app.context.store.read(q => Promise.all(tables.map(name => q.$count(q.tables[name]))))
    expect(left).toEqual([0, 0, 0])
    const expired = await app.context.store.read(q =>
      q.$count(q.tables.events, eq(q.tables.events.type, 'session.expired')),
    )
    expect(expired).toBe(ROWS / 10)
    expect(times.length).toBeGreaterThan(ROWS / 10 / DELETE_BATCH)
    await app.context.store.close()
    rmSync(dirname(path), { recursive: true })
    figure(
      'R-20',
      `${ROWS} codes, ${ROWS / 10} sessions that ran out and ${ROWS / 10} of a deleted organization were gone in ${seconds.toFixed(1)} s; ` +
        `${times.length} writes meanwhile: p50 ${percentile(times, 0.5).toFixed(1)} ms, p99 ${percentile(times, 0.99).toFixed(0)} ms, longest ${Math.max(...times).toFixed(0)} ms`,
    )
  },
  LONG ? 3_600_000 : 30_000,
)
