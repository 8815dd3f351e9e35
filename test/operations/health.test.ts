import { expect, test } from 'bun:test'
import { X509Certificate } from 'node:crypto'
import { chmodSync, mkdtempSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { SQL } from 'bun'
import { settledSeq } from '#src/audit/stream-store.ts'
import { selfSigned } from '#src/dev/self-signed.ts'
import { DAY, MINUTE } from '#src/lib/duration.ts'
import { type Json, startApp } from '#test/support/app.ts'
import { callerOf } from '#test/support/callers.ts'
import { addOrganization } from '#test/support/people.ts'
import { temporaryPostgres } from '#test/support/postgres.ts'
import { isPostgres } from '#test/support/store.ts'

const findingOf = (body: Json, name: string): Json => body.data.find((each: Json) => each.name === name)

test('RUN-38 the checks of doctor are made by the server itself, and again after a while', async () => {
  const data_dir = mkdtempSync(join(tmpdir(), 'gatehouse-'))
  const app = await startApp({ data_dir })
  const { status, body } = await app.admin('GET', '/health')
  await app.events()
  expect(status).toBe(200)
  expect(body.data.map(({ name }: Json) => name)).toEqual([
    ...['files', 'modes', 'database', 'themes', 'disk', 'sockets', 'scheme', 'mail', 'webhooks', 'loop'],
  ])
  expect(findingOf(body, 'database')).toEqual({
    name: 'database',
    state: 'ok',
    text: 'the database opens with this master key',
  })
  expect(findingOf(body, 'mail')).toEqual({
    name: 'mail',
    state: 'warn',
    text: 'no mail can be sent: set smtp_url and mail_from',
  })
  expect(findingOf(body, 'modes').state).toBe('ok')

  chmodSync(data_dir, 0o755)
  expect(findingOf((await app.admin('GET', '/health')).body, 'modes').state).toBe('ok')
  app.clock.advance(MINUTE)
  const later = findingOf((await app.admin('GET', '/health')).body, 'modes')
  expect(later).toEqual({
    name: 'modes',
    state: 'warn',
    text: `other users can read ${data_dir}: run chmod go= on them`,
  })
  expect(await app.events()).toEqual([])
})

test('RUN-38 each file with a secret is named that its group or all users can read', async () => {
  const data_dir = mkdtempSync(join(tmpdir(), 'gatehouse-'))
  const app = await startApp({ data_dir })
  const found = async () => {
    app.clock.advance(MINUTE)
    return findingOf((await app.admin('GET', '/health')).body, 'modes').text
  }
  const secrets = ['gatehouse.db', 'master.key', 'admin-client.json'].map(name => join(data_dir, name))
  const safe = 'only the owner can read the data directory'
  for (const path of [data_dir, ...secrets]) {
    if (path !== data_dir) writeFileSync(path, '', { mode: 0o600 })
    expect(await found()).toBe(safe)
    for (const bit of [0o040, 0o004]) {
      chmodSync(path, 0o700 | bit)
      expect(await found()).toBe(`other users can read ${path}: run chmod go= on them`)
    }
    chmodSync(path, 0o700)
  }
})

test('RUN-38 a certificate is a warning two weeks before it expires, and a failure afterwards', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'gatehouse-'))
  const [tls_cert, tls_key] = [join(folder, 'cert.pem'), join(folder, 'key.pem')]
  const { cert, key } = await selfSigned('localhost')
  writeFileSync(tls_cert, cert)
  writeFileSync(tls_key, key)
  const expires_at = Date.parse(new X509Certificate(cert).validTo)
  const app = await startApp({ url: 'https://id.example.com', tls_cert, tls_key })
  app.clock.advance(expires_at - 14 * DAY - app.clock.now())
  const states = []
  for (const ms of [0, MINUTE, 14 * DAY - MINUTE, MINUTE]) {
    app.clock.advance(ms)
    const { body } = await app.admin('GET', '/health')
    states.push([findingOf(body, 'scheme').state, findingOf(body, 'files').state])
  }
  expect(states).toEqual([
    ['ok', 'ok'],
    ['warn', 'ok'],
    ['warn', 'ok'],
    ['fail', 'fail'],
  ])
})

if (isPostgres)
  test('RUN-38 a transaction of another database that holds the events back is found after a minute', async () => {
    const app = await startApp()
    const other = await temporaryPostgres(true)
    const sql = new SQL({ url: other.url, max: 1 })
    const webhooks = async () => {
      const finding = findingOf((await app.admin('GET', '/health')).body, 'webhooks')
      app.clock.advance(2 * MINUTE)
      return finding
    }
    await sql.unsafe('BEGIN; SELECT pg_current_xact_id()')
    await app.admin('POST', '/roles', { name: 'held', description: '', permissions: [] })
    const settled = await settledSeq(app.context.store)
    expect(await webhooks()).toMatchObject({ state: 'ok' })
    expect(await settledSeq(app.context.store)).toBe(settled)
    expect(await webhooks()).toMatchObject({
      state: 'warn',
      text: expect.stringMatching(
        /^webhooks and event streams wait, .* pg_prepared_xacts show this transaction$/,
      ),
    })
    await sql.unsafe('COMMIT')
    expect(await settledSeq(app.context.store)).toBeGreaterThan(settled)
    expect(await webhooks()).toMatchObject({ state: 'ok' })
    await sql.close()
    await other.drop()
  })

test('RUN-38 a clock that was set back is found at once, whichever of the two times was wrong', async () => {
  const app = await startApp()
  await app.admin('GET', '/health')
  app.clock.advance(10 * MINUTE)
  await app.admin('POST', '/roles', { name: 'later', description: '', permissions: [] })
  expect(findingOf((await app.admin('GET', '/health')).body, 'database').state).toBe('ok')
  app.clock.advance(-10 * MINUTE)
  expect(findingOf((await app.admin('GET', '/health')).body, 'database')).toEqual({
    name: 'database',
    state: 'warn',
    text: 'the latest event is from 2026-01-15T12:10:00.000Z: the clock is behind now, or was ahead at that time',
  })
})

test('RUN-38 a mail server that is out of reach is a failure with its reason', async () => {
  const app = await startApp({ smtp_url: 'smtp://127.0.0.1:1', mail_from: 'id@example.com' })
  const { body } = await app.admin('GET', '/health')
  expect(findingOf(body, 'mail')).toMatchObject({
    state: 'fail',
    text: expect.stringContaining('the mail server of smtp_url refuses the connection (connect ECONNREFUSED'),
  })
})

test('RUN-38 plain http on localhost is safe only while no other machine can connect', async () => {
  const schemeAt = async (host: string) =>
    findingOf((await (await startApp({ host })).admin('GET', '/health')).body, 'scheme')
  expect(await schemeAt('127.0.0.1')).toMatchObject({ state: 'ok' })
  expect(await schemeAt('0.0.0.0')).toEqual({
    name: 'scheme',
    state: 'warn',
    text: 'plain http, and other machines can connect to 0.0.0.0: set url to an https address',
  })
})

test('RUN-38 a proxy on this machine is passed by nobody only while no other machine can connect', async () => {
  const url = 'https://id.example.com'
  const schemeAt = async (host: string, ...trusted_proxies: string[]) =>
    findingOf((await (await startApp({ url, host, trusted_proxies })).admin('GET', '/health')).body, 'scheme')
  const safe = { name: 'scheme', state: 'ok', text: 'a trusted proxy terminates TLS' }
  expect(await schemeAt('127.0.0.1', '127.0.0.1', '::1')).toEqual(safe)
  expect(await schemeAt('::', '192.0.2.1')).toEqual(safe)
  expect(await schemeAt('::', '127.0.0.1', '::1')).toEqual({
    name: 'scheme',
    state: 'warn',
    text: 'a proxy on this machine terminates TLS, but other machines can connect to ::, over plain http: set host to 127.0.0.1',
  })
})

test('RUN-38 the limit of open files is not checked where the system does not show it', async () => {
  const platform = Object.getOwnPropertyDescriptor(process, 'platform') ?? {}
  const app = await startApp()
  Object.defineProperty(process, 'platform', { ...platform, value: 'darwin' })
  try {
    const { body } = await app.admin('GET', '/health')
    expect(findingOf(body, 'sockets')).toMatchObject({ state: 'skip' })
  } finally {
    Object.defineProperty(process, 'platform', platform)
  }
})

test('RUN-38 a server on PostgreSQL needs no data directory', async () => {
  const data_dir = join(mkdtempSync(join(tmpdir(), 'gatehouse-')), 'missing')
  const diskOf = async (config: object) =>
    findingOf((await (await startApp({ data_dir, ...config })).admin('GET', '/health')).body, 'disk')
  expect(await diskOf({ database_url: 'postgres://127.0.0.1/x' })).toEqual({
    name: 'disk',
    state: 'skip',
    text: 'the free space: there is no data directory',
  })
  expect(await diskOf({})).toMatchObject({ state: 'fail', text: `${data_dir} cannot be read (ENOENT)` })
})

test('RUN-38 administrators of a tenant learn nothing about the server', async () => {
  const app = await startApp()
  const { id } = await addOrganization(app, 'acme')
  const token = await callerOf(app, id, ['settings:read'])
  expect((await app.admin('GET', '/health', undefined, token)).status).toBe(403)
})
