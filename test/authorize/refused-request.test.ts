import { beforeEach, expect, test } from 'bun:test'
import { DAY, HOUR } from '#src/lib/duration.ts'
import { openLogger, silentLog } from '#src/lib/log.ts'
import { start as startServer } from '#src/testing/start.ts'
import { type Json, startApp } from '#test/support/app.ts'
import { openBrowser } from '#test/support/browser.ts'
import { addClient, authorizeUrl, REDIRECT } from '#test/support/people.ts'

const logged: Json[] = []
const log = openLogger('info', line => void logged.push(JSON.parse(line)))
const app = await startApp({}, { log })
await addClient(app, 'web', { redirect_uris: [REDIRECT, 'http://localhost:3000/cb'] })

const ask = (more: Record<string, string | undefined>, client_id = 'web', ip = '192.0.2.10') =>
  openBrowser(app, { ip }).get(authorizeUrl(client_id, more))

/**
 * Returns the log lines about refused requests since the last call of this function. Leaves out level and
 * time.
 */
const refusals = () =>
  logged
    .splice(0)
    .filter(({ event }) => event === 'authorization_refused')
    .map(({ level: _, time: __, ...line }) => line)

beforeEach(async () => {
  app.clock.advance(24 * HOUR)
  logged.splice(0)
  await app.events()
})

test.each([
  ['redirect_uri_not_registered', { redirect_uri: 'https://app.example/call?code=s3cret#frag' }, 'web'],
  ['redirect_uri_invalid', { redirect_uri: undefined }, 'web'],
  ['unknown_client', { redirect_uri: 'https://eve:s3cret@app.example/call' }, 'nobody'],
])('AUT-35 %s is logged with the request id', async (reason, more, client_id) => {
  const page = await ask(more, client_id)
  expect(page.status).toBe(400)
  const redirect_uri = more.redirect_uri === undefined ? '' : 'https://app.example/call'
  const request_id = page.headers.get('x-request-id')
  expect(refusals()).toEqual([
    { event: 'authorization_refused', request_id, reason, client_id, redirect_uri },
  ])
  expect(page.html).not.toContain('registered:')
})

test('AUT-35 an unparsable request is logged without its content', async () => {
  const browser = openBrowser(app)
  await browser.get(`${authorizeUrl('web')}${'&x=1'.repeat(101)}`)
  await browser.get(`${authorizeUrl('web')}&client_id=web`)
  await browser.get('/oauth/authorize')
  expect(refusals().map(({ reason, client_id }) => [reason, client_id])).toEqual([
    ['malformed', ''],
    ['client_id_invalid', ''],
    ['client_id_invalid', ''],
  ])
  expect(await app.events()).toEqual([])
})

test('AUT-35 control characters and long values cannot forge log lines', async () => {
  await ask({ redirect_uri: `https://app.example/\n\u202e"${'é'.repeat(500)}` }, `who\r\n${'x'.repeat(500)}`)
  const [{ client_id, redirect_uri }] = refusals()
  expect([client_id.length, redirect_uri.length]).toEqual([200, 200])
  expect(client_id).toStartWith('who%0D%0Axxx')
  expect(redirect_uri).toStartWith('https://app.example/%0A%E2%80%AE"%C3%A9')
})

test('AUT-36 one event an hour for each client, reason and URI counts the refusals since the last', async () => {
  const event = (redirect_uri: string, count: number) => ({
    type: 'client.request_refused',
    actor_id: null,
    target_id: 'web',
    target_type: 'client',
    organization_id: 'org_default',
    metadata: { reason: 'redirect_uri_not_registered', redirect_uri, count },
  })
  for (let i = 0; i < 3; i++) await ask({ redirect_uri: `https://a.example/?attempt=${i}` })
  await ask({ redirect_uri: 'https://b.example/' })
  await ask({ redirect_uri: 'https://b.example/' }, 'nobody')
  expect(await app.events()).toEqual([event('https://a.example/', 1), event('https://b.example/', 1)])
  app.clock.advance(HOUR - 1)
  await ask({ redirect_uri: 'https://a.example/' })
  expect(await app.events()).toEqual([])
  app.clock.advance(1)
  await ask({ redirect_uri: 'https://a.example/' })
  expect(await app.events()).toEqual([event('https://a.example/', 4)])
})

test('AUT-36 an event that was stored while the clock was fast delays no later event', async () => {
  const counts = async () => (await app.events()).map(({ metadata }) => metadata.count)
  app.clock.advance(30 * DAY)
  await ask({ redirect_uri: 'https://c.example/' })
  expect(await counts()).toEqual([1])
  app.clock.advance(-30 * DAY)
  for (let i = 0; i < 3; i++) await ask({ redirect_uri: 'https://c.example/' })
  expect(await counts()).toEqual([1])
  app.clock.advance(HOUR)
  await ask({ redirect_uri: 'https://c.example/' })
  expect(await counts()).toEqual([3])
})

test('AUT-37 a client gets at most twenty events an hour, however many URIs are named', async () => {
  for (let i = 0; i < 40; i++) await ask({ redirect_uri: `https://${i}.example/` }, 'web', `198.51.100.${i}`)
  expect(await app.events()).toHaveLength(20)
  expect(refusals()).toHaveLength(40)
})

test('AUT-37 a network logs a burst of sixty lines and still gets the page; other networks log theirs', async () => {
  for (let i = 0; i < 70; i++) expect((await ask({}, 'nobody')).status).toBe(400)
  expect(refusals()).toHaveLength(60)
  await ask({}, 'nobody', '203.0.113.9')
  expect(refusals()).toHaveLength(1)
})

test('development mode shows the requested address and the registered ones', async () => {
  const server = await startServer({ log: silentLog })
  const url = new URL(`${server.url}${authorizeUrl('dev-web', { redirect_uri: 'http://localhost:9/<b>' })}`)
  const html = await (await fetch(url, { headers: { accept: 'text/html' } })).text()
  await server.stop()
  expect(html).toContain('redirect_uri_not_registered')
  expect(html).toContain('http://localhost:9/&lt;b&gt;')
})

test('AUT-38 allowed scopes are told in the log, and to the client in development mode alone', async () => {
  const page = await ask({ scope: 'openid s3cret' })
  expect(await app.events()).toEqual([])
  const { searchParams } = new URL(page.location ?? '')
  expect(searchParams.get('error')).toBe('invalid_scope')
  expect(searchParams.get('error_description')).toBe('The requested scope is malformed or not allowed.')
  expect(refusals()).toEqual([
    {
      event: 'authorization_refused',
      request_id: page.headers.get('x-request-id'),
      reason: 'invalid_scope',
      client_id: 'web',
      allowed: (await app.admin('GET', '/clients/web')).body.scopes,
    },
  ])
  const server = await startServer({})
  const redirect_uri = 'http://localhost:3000/callback'
  const url = `${server.url}${authorizeUrl('dev-web', { scope: 'openid s3cret', redirect_uri })}`
  const { headers } = await fetch(url, { redirect: 'manual' })
  expect(new URL(headers.get('location') ?? '').searchParams.get('error_description')).toBe(
    'A requested scope is not allowed. Allowed: openid profile email admin read write.',
  )
  await server.stop()
})
