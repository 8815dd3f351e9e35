/** Tests that an object is read, changed and sent back as a whole. */
import { beforeEach, expect, test } from 'bun:test'
import { iso } from '#src/lib/text.ts'
import { ADMIN_SECRET, type Json, startApp, type TestApp } from '#test/support/app.ts'
import { refused } from '#test/support/callers.ts'
import { addUser } from '#test/support/people.ts'
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

test('API-13 with If-Match, what the server itself has changed since the read is ignored', async () => {
  const token = await app.tokenOf('gatehouse-admin', ADMIN_SECRET)
  const put = async (path: string, body: Json, if_match: string) => {
    const headers = {
      authorization: `Bearer ${token}`,
      'content-type': 'application/json',
      'if-match': if_match,
    }
    const answer = await app.call(`/api/v1/admin${path}`, {
      method: 'PUT',
      headers,
      body: JSON.stringify(body),
    })
    return { status: answer.status, body: (await answer.json()) as Json }
  }
  const { org_id, user_id, role_id, group_id, webhook_id } = tenant
  const [user, role, group, hook] = [
    `/users/${user_id}`,
    `/roles/${role_id}`,
    `/groups/${group_id}`,
    `/webhooks/${webhook_id}`,
  ]
  const organization = `/organizations/${org_id}`
  const tagOf = async (path: string) => {
    const headers = { authorization: `Bearer ${token}` }
    return (await app.call(`/api/v1/admin${path}`, { headers })).headers.get('etag') ?? ''
  }
  const objects: [path: string, change: Json, maintained: string[]][] = [
    [user, { first_name: 'X' }, ['last_login', 'updated_at']],
    [role, { description: 'X' }, ['user_count']],
    [group, { description: 'X' }, ['member_count', 'updated_at']],
    [hook, { name: 'X' }, ['failing_since', 'failure', 'next_attempt_at']],
    [organization, { display_name: 'X' }, ['user_count']],
  ]
  const { data } = (await app.admin('GET', `/organizations?search=${tenant.slug}`)).body
  const reads = await Promise.all(
    objects.map(async ([path]) => (path === organization ? data[0] : (await app.admin('GET', path)).body)),
  )
  const tags = await Promise.all(objects.map(([path]) => tagOf(path)))

  app.clock.advance(1000)
  const other = await addUser(app, 'other', { organization_id: org_id })
  await app.admin('PUT', `/groups/${group_id}/members/${other.id}`)
  await app.admin('PUT', `/users/${other.id}`, { roles: ['user', reads[1].name] })
  const now = app.clock.now()
  await app.context.store.write(async tx => {
    const { users, webhooks } = tx.tables
    await tx.update(users).set({ last_login: now, updated_at: now })
    await tx.update(webhooks).set({ attempts: 1, failing_since: now, failure: 'down', next_attempt_at: now })
  })
  await app.events()
  for (const [i, [path, change, maintained]] of objects.entries()) {
    const sent = { ...reads[i], ...change }
    expect(refused(await app.admin('PUT', path, sent)).sort()).toEqual(maintained)
    expect((await put(path, sent, `"${'x'.repeat(43)}"`)).status).toBe(412)
    for (const id of ['id', 'created_at'])
      expect(refused(await put(path, { ...sent, [id]: 'x' }, tags[i] ?? ''))).toEqual([id])
    expect(await app.events()).toEqual([])
    const { body: before } = await app.admin('GET', path)
    const { status, body } = await put(path, sent, tags[i] ?? '')
    // The server tries the failed delivery of a changed webhook again at once.
    const restarted = path === hook && { failing_since: null, failure: null, next_attempt_at: null }
    const changed = { ...before, ...change, ...restarted, updated_at: iso(now) }
    expect([path, status, body]).toEqual([path, 200, changed])
    expect((await app.admin('GET', path)).body).toEqual(body)
    expect((await app.events()).map(({ metadata }) => metadata.fields)).toEqual([Object.keys(change)])
  }
})
