/** Tests the removal of many expired rows while other writes arrive. */
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
import { fillExpired } from '#test/support/expired.ts'
import { addOrganization } from '#test/support/people.ts'
import { figure, LONG } from './faults.ts'
import { percentile } from './percentile.ts'

/**
 * Number of codes. The database also has a tenth as many expired sessions, and a tenth as many sessions of a
 * deleted organization.
 */
const ROWS = Number(process.env.ROWS ?? (LONG ? 3_000_000 : 20_000))

test(
  'R-20 expired rows, and those of a deleted organization, are removed in batches with other writes between',
  async () => {
    const path = join(mkdtempSync(join(tmpdir(), 'gatehouse-')), 'gatehouse.db')
    const app = await startApp({}, { store: await openSqlite({ path }) })
    const { id } = await addOrganization(app, 'gone')
    fillExpired(path, ROWS, id)
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
