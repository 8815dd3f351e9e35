/** Tests that an object is read, changed and sent back as a whole. */
import { beforeEach, expect, test } from 'bun:test'
import { type Json, startApp, type TestApp } from '#test/support/app.ts'
import { addTenant, pathOf, type Tenant } from '#test/support/routes.ts'

let app: TestApp
let tenant: Tenant
beforeEach(async () => {
  app = await startApp()
  tenant = await addTenant(app)
})

const paths = () =>
  app.routes
    .filter(({ method, path }) => method === 'PUT' && !path.includes('/members/'))
    .map(route => pathOf(route, tenant))

/** The same time as Python, Go (RFC3339Nano) and a library with a local offset write it. */
const spellings: ((time: string) => string)[] = [
  time => time.replace(/(\.\d+)Z$/, '$1000+00:00'),
  time => time.replace(/\.?0*Z$/, 'Z'),
  time => new Date(Date.parse(time) + 3_600_000).toISOString().replace('Z', '+01:00'),
]

const spelled = (read: Json, spell: (time: string) => string): Json =>
  Object.fromEntries(
    Object.entries(read).map(([name, value]) => [
      name,
      typeof value === 'string' && /^\d{4}-\d\d-\d\dT.*Z$/.test(value) ? spell(value) : value,
    ]),
  )

test('API-13 an object may be sent back whose times are written differently; another time is 422', async () => {
  await app.context.store.write(tx =>
    tx.update(tx.tables.users).set({ last_login: app.clock.now() - 160, updated_at: app.clock.now() + 7 }),
  )
  for (const path of paths()) {
    const { body: read } = await app.admin('GET', path)
    await app.events()
    for (const spell of spellings) {
      const { status, body } = await app.admin('PUT', path, spelled(read, spell))
      expect([path, status, body]).toEqual([path, 200, read])
    }
    expect(await app.events()).toEqual([])
    if (read.created_at === undefined) continue
    for (const created_at of ['2026-01-15T12:00:00.001Z', 'x', '']) {
      const { body } = await app.admin('PUT', path, { created_at })
      expect([path, created_at, body.details?.[0]]).toMatchObject([
        path,
        created_at,
        { field: 'created_at', code: 'read_only' },
      ])
    }
  }
})
