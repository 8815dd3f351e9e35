/** Tests which client gets which logouts. The application is a real server. */
import { Database } from 'bun:sqlite'
import { afterAll, beforeEach, expect, test } from 'bun:test'
import { NEVER } from '#src/delivery/queue.ts'
import { outboundFetch } from '#src/http/outbound.ts'
import { DAY, HOUR, MINUTE } from '#src/lib/duration.ts'
import type { OrganizationId } from '#src/lib/ids.ts'
import { permissions } from '#src/lib/permission.ts'
import { purge } from '#src/operations/purge.ts'
import { deliverLogouts } from '#src/sessions/logout-delivery.ts'
import { migrate, sqliteMigrations } from '#src/storage/sqlite/migrate.ts'
import { type Json, START, startApp, type TestApp } from '#test/support/app.ts'
import { callerOf } from '#test/support/callers.ts'
import { addClient, addOrganization, addUser } from '#test/support/people.ts'
import { claimsOf, grantTokens } from '#test/support/tokens.ts'

/** Paths of the calls, with the session that they name. */
let received: [path: string, sid: string][]
/** Paths at which the application answers 503. */
let down: string[]
const application = Bun.serve({
  port: 0,
  hostname: '127.0.0.1',
  async fetch(request) {
    const { pathname } = new URL(request.url)
    const token = new URLSearchParams(await request.text()).get('logout_token') ?? ''
    received.push([pathname, claimsOf(token).sid])
    return new Response(null, { status: down.includes(pathname) ? 503 : 200 })
  },
})
afterAll(() => application.stop(true))
const host = `127.0.0.1:${application.port}`

let app: TestApp
let acme: OrganizationId
let other: OrganizationId
let ada: Json

beforeEach(async () => {
  received = []
  down = []
  const outbound_allow = [`acme=${host}`]
  app = await startApp({ outbound_allow }, { fetch: outboundFetch({ outbound_allow }) })
  acme = (await addOrganization(app, 'acme')).id
  other = (await addOrganization(app, 'other')).id
  ada = await addUser(app, 'ada', { organization_id: acme })
})

/** Registers the client `shop`, a second after the last registration. */
const addShop = (path: string, organization_id = acme) => {
  app.clock.advance(1000)
  return addClient(app, 'shop', { organization_id, backchannel_logout_uri: `http://${host}${path}` })
}

/** Begins a session of the user at the client, and returns its `sid`. */
const begin = async (shop: Json, user = ada): Promise<string> =>
  claimsOf((await grantTokens(app, shop, user)).id_token).sid

const remove = async (path: string) => expect((await app.admin('DELETE', path)).status).toBe(204)
const deliver = () => deliverLogouts(app.context)
const stored = () =>
  app.context.store.read(q => {
    const { logouts } = q.tables
    const { organization_id, uri, session_id, done_at, attempts } = logouts
    return q
      .select({ organization_id, uri, session_id, done_at, attempts })
      .from(logouts)
      .orderBy(logouts.number)
  })

for (const backchannel_logout_uri of ['https://other.example/', null])
  test(`BCL-20 a client gets no logout of a tenant's client whose id it has: ${backchannel_logout_uri}`, async () => {
    down = ['/shop']
    const sid = await begin(await addShop('/shop'))
    await remove('/clients/shop')
    await deliver()
    expect(received).toEqual([['/shop', sid]])
    const before = await stored()
    expect(before).toEqual([
      {
        organization_id: acme,
        uri: `http://${host}/shop`,
        session_id: `sess_${sid}`,
        done_at: null,
        attempts: 1,
      },
    ])

    await addShop('/thief', other)
    const thief = await callerOf(app, other, [...permissions])
    await app.events()
    const list = await app.admin('GET', '/clients/shop/logouts', undefined, thief)
    expect([list.status, list.body.data, list.body.pagination.total]).toEqual([200, [], 0])
    const { status } = await app.admin('PUT', '/clients/shop', { backchannel_logout_uri }, thief)
    expect(status).toBe(200)
    expect((await app.events()).map(({ type }) => type)).toEqual(['client.updated'])
    expect(await stored()).toEqual(before)

    received = []
    down = []
    app.clock.advance(MINUTE)
    await deliver()
    expect(received).toEqual([['/shop', sid]])
  })

test('BCL-20 a client that is registered again does not wait for the logouts of the earlier one', async () => {
  down = ['/old']
  const first = await begin(await addShop('/old'))
  await remove('/clients/shop')
  const second = await begin(await addShop('/new'))
  expect((await app.admin('DELETE', `/users/${ada.id}/sessions`)).status).toBe(200)
  await deliver()
  expect(received.toSorted()).toEqual([
    ['/new', second],
    ['/old', first],
  ])
  const { data } = (await app.admin('GET', '/clients/shop/logouts')).body
  expect(data.map(({ session_id, status }: Json) => [session_id, status])).toEqual([
    [`sess_${second}`, 'delivered'],
  ])
  received = []
  app.clock.advance(HOUR)
  await deliver()
  expect(received).toEqual([['/old', first]])
})

/** Ends a session of the tenant, then deletes the tenant, which ends another session. */
const endTenant = async (): Promise<string[]> => {
  down = ['/shop']
  const shop = await addShop('/shop')
  const sids = [await begin(shop)]
  expect((await app.admin('DELETE', `/users/${ada.id}/sessions`)).status).toBe(200)
  sids.push(await begin(shop))
  await deliver()
  await remove(`/organizations/${acme}`)
  await purge(app.context)
  received = []
  down = []
  app.clock.advance(MINUTE)
  return sids
}

test('BCL-21 the logouts of a deleted tenant still reach the hosts that the setting allows for its slug', async () => {
  const sids = await endTenant()
  await deliver()
  expect(received).toEqual(sids.map(sid => ['/shop', sid]))
})

test('BCL-21 they reach none of these hosts once another tenant has the slug', async () => {
  await endTenant()
  expect((await app.admin('PUT', `/organizations/${other}`, { slug: 'acme' })).status).toBe(200)
  await deliver()
  expect(received).toEqual([])
  expect((await stored()).map(({ attempts }) => attempts)).toEqual([2, 0])
})

test('BCL-20 an upgrade gives stored logouts to the present client only if they are younger than it', () => {
  using db = new Database(':memory:')
  const added = '0029_logout_clients.sql'
  const before = Object.entries(sqliteMigrations).filter(([name]) => name < added)
  migrate(db, Object.fromEntries(before))
  db.run('PRAGMA foreign_keys = OFF')
  const put = (table: string, row: Record<string, string | number>) => {
    const required = db
      .query<{ name: string; type: string }, [string]>(
        'SELECT name, type FROM pragma_table_info(?) WHERE "notnull" AND dflt_value IS NULL AND NOT pk',
      )
      .all(table)
      .map(({ name, type }) => [name, type === 'INTEGER' ? 0 : 'x'] as const)
    const columns = Object.entries({ ...Object.fromEntries(required), ...row })
    const names = columns.map(([name]) => `"${name}"`).join()
    db.run(
      `INSERT INTO ${table} (${names}) VALUES (${columns.map(() => '?').join()})`,
      columns.map(([, value]) => value),
    )
  }
  put('organizations', { id: 'org_a', slug: 'acme' })
  put('clients', { client_id: 'shop', organization_id: 'org_a', created_at: START })
  const logout = (organization_id: string, created_at: number, next_attempt_at: number) =>
    put('logouts', { client_id: 'shop', organization_id, created_at, next_attempt_at })
  logout('org_a', START - DAY, START + HOUR)
  logout('org_a', START + DAY, NEVER)
  logout('org_b', START + DAY, NEVER)
  logout('org_a', START + DAY, NEVER)
  migrate(db)
  const query = 'SELECT client_created_at, slug, next_attempt_at FROM logouts ORDER BY number'
  expect(db.query(query).values()).toEqual([
    [0, 'acme', START + HOUR],
    [START, 'acme', START + DAY],
    [0, '', NEVER],
    [START, 'acme', NEVER],
  ])
})
