/** Tests POST /oauth/register with the requests that clients of the Model Context Protocol send. */
import { beforeEach, describe, expect, test } from 'bun:test'
import { noteUse } from '#src/directory/clients/dynamic-store.ts'
import { DAY, HOUR, MINUTE } from '#src/lib/duration.ts'
import { sweep } from '#src/operations/sweep.ts'
import { BASE, type Json, startApp } from '#test/support/app.ts'
import { post } from '#test/support/tokens.ts'

const app = await startApp()
const policy = (client_registration: string | null) =>
  app.admin('PUT', '/organizations/default', { settings: { client_registration } })
await policy('open')

let network = 0
const register = async (
  body: unknown,
  headers: Record<string, string> = {},
  ip = `192.0.2.${++network % 250}`,
) => {
  const answer = await app.call('/oauth/register', {
    method: 'POST',
    headers: { 'content-type': 'application/json', ...headers },
    body: typeof body === 'string' ? body : JSON.stringify(body),
    ip,
  })
  return { status: answer.status, headers: answer.headers, body: (await answer.json()) as Json }
}
const rows = () => app.context.store.read(async q => q.select().from(q.tables.dynamic_clients))

beforeEach(async () => void (await app.events()))

const common = { grant_types: ['authorization_code', 'refresh_token'], response_types: ['code'] }
/** Requests that these clients send, according to the source code of the clients. */
const clients: Record<string, Json> = {
  'TypeScript SDK, Inspector': {
    client_name: 'MCP Inspector',
    redirect_uris: ['http://localhost:6274/oauth/callback'],
    token_endpoint_auth_method: 'none',
    application_type: 'native',
    client_uri: 'https://github.com/modelcontextprotocol/inspector',
    scope: '',
    ...common,
  },
  'Inspector, command line': {
    client_name: 'MCP Inspector',
    redirect_uris: ['http://127.0.0.1:6276/oauth/callback'],
    token_endpoint_auth_method: 'none',
    scope: '',
    ...common,
  },
  'Claude Code': {
    client_name: 'Claude Code',
    redirect_uris: ['http://localhost:3118/callback'],
    token_endpoint_auth_method: 'none',
    ...common,
  },
  'Gemini CLI': {
    client_name: 'Gemini CLI MCP Client',
    redirect_uris: ['http://localhost:7777/oauth/callback'],
    token_endpoint_auth_method: 'none',
    scope: 'tools.read',
    ...common,
  },
  'mcp-remote': {
    client_name: 'MCP CLI Proxy',
    redirect_uris: ['http://localhost:17211/oauth/callback'],
    token_endpoint_auth_method: 'none',
    software_id: '2e6dc280-f3c3-4e01-99a7-8181dbd1d23d',
    software_version: '0.15.1',
    ...common,
  },
  'VS Code': {
    client_name: 'Visual Studio Code',
    redirect_uris: [
      'https://insiders.vscode.dev/redirect',
      'https://vscode.dev/redirect',
      'http://127.0.0.1/',
      'http://127.0.0.1:33418/',
    ],
    token_endpoint_auth_method: 'none',
    application_type: 'native',
    grant_types: [...common.grant_types, 'urn:ietf:params:oauth:grant-type:device_code'],
    response_types: ['code'],
  },
  Cursor: {
    client_name: 'Cursor',
    redirect_uris: ['cursor://anysphere.cursor-mcp/oauth/callback'],
    token_endpoint_auth_method: 'none',
    logo_uri: '',
    tos_uri: '',
    ...common,
  },
  'Claude.ai': {
    client_name: 'Claude',
    redirect_uris: ['https://claude.ai/api/mcp/auth_callback', 'https://claude.com/api/mcp/auth_callback'],
    token_endpoint_auth_method: 'none',
    scope: 'openid tools.read',
    ...common,
  },
}

describe('DCR-01 registration', () => {
  test.each(Object.entries(clients))('DCR-01 %s', async (_, metadata) => {
    const { status, headers, body } = await register(metadata)
    expect([status, headers.get('cache-control')]).toEqual([201, 'no-store'])
    expect(body).toEqual({
      client_id: expect.stringMatching(/^dcr_[\w-]{43}$/),
      client_id_issued_at: app.clock.now() / 1000,
      client_name: metadata.client_name,
      redirect_uris: metadata.redirect_uris,
      token_endpoint_auth_method: 'none',
      grant_types: common.grant_types,
      response_types: ['code'],
      ...(metadata.scope && { scope: metadata.scope }),
      ...(metadata.application_type && { application_type: metadata.application_type }),
    })
    expect(
      (await app.events()).map(({ type, target_id, organization_id, metadata: more }) => ({
        type,
        target_id,
        organization_id,
        more,
      })),
    ).toEqual([
      {
        type: 'client.registered',
        target_id: body.client_id,
        organization_id: 'org_default',
        more: { name: metadata.client_name, redirect_uris: metadata.redirect_uris },
      },
    ])
  })

  test('DCR-01 without a method there is a secret of URL-safe characters, which does not expire', async () => {
    const redirect_uris = ['https://agent.example/callback']
    const { body } = await register({ redirect_uris })
    expect(body).toEqual({
      client_id: expect.stringMatching(/^dcs_[\w-]{43}$/),
      client_id_issued_at: app.clock.now() / 1000,
      client_secret: expect.stringMatching(/^[\w-]{43}$/),
      client_secret_expires_at: 0,
      redirect_uris,
      token_endpoint_auth_method: 'client_secret_basic',
      grant_types: ['authorization_code'],
      response_types: ['code'],
    })
    expect((await register({ redirect_uris })).body.client_id).not.toBe(body.client_id)
    expect(JSON.stringify(await rows())).not.toContain(body.client_secret)
  })

  test('DCR-05 permissions, and scopes that no such client gets, are not registered', async () => {
    const scope = 'openid users:read admin * phone roles address tools.read'
    const { body } = await register({ ...clients.Cursor, scope })
    expect(body.scope).toBe('openid tools.read')
  })
})

const uri = (redirect_uri: unknown) => ({ ...clients.Cursor, redirect_uris: [redirect_uri] })
const refused: [string, unknown, string][] = [
  ['no URIs', { ...clients.Cursor, redirect_uris: [] }, 'invalid_redirect_uri'],
  ['none given', { client_name: 'x' }, 'invalid_redirect_uri'],
  [
    'eleven',
    { ...clients.Cursor, redirect_uris: Array.from({ length: 11 }, (_, i) => `https://a.example/${i}`) },
    'invalid_redirect_uri',
  ],
  ...[
    'javascript:alert(1)',
    'JavaScript:alert(1)',
    'data:text/html,x',
    'vbscript:x',
    'file:///etc/passwd',
    'blob:https://a.example/1',
    'about:blank',
    'ws://a.example/',
    'http://a.example/',
    'HTTP://a.example/',
    'http://localhost.evil.example/',
    'http://2130706433/',
    'https://a.example/#x',
    'https://*.example/',
    'https://user@a.example/',
    '/callback',
    '',
    `https://a.example/${'x'.repeat(2048)}`,
  ].map((each): [string, unknown, string] => [each.slice(0, 40), uri(each), 'invalid_redirect_uri']),
  ['a number', uri(1), 'invalid_client_metadata'],
  ['an array', [], 'invalid_client_metadata'],
  ['null', 'null', 'invalid_client_metadata'],
  ['broken JSON', '{', 'invalid_client_metadata'],
  ['deep JSON', '['.repeat(4000), 'invalid_client_metadata'],
  [
    'client_credentials',
    { ...clients.Cursor, grant_types: ['client_credentials'] },
    'invalid_client_metadata',
  ],
  ['token', { ...clients.Cursor, response_types: ['token'] }, 'invalid_client_metadata'],
  ['a key', { ...clients.Cursor, token_endpoint_auth_method: 'private_key_jwt' }, 'invalid_client_metadata'],
  ['a type', { ...clients.Cursor, application_type: 'tv' }, 'invalid_client_metadata'],
  ['a long name', { ...clients.Cursor, client_name: 'x'.repeat(129) }, 'invalid_client_metadata'],
  ['a name of two lines', { ...clients.Cursor, client_name: 'a\nb' }, 'invalid_client_metadata'],
  ['a reversed name', { ...clients.Cursor, client_name: 'a\u202eb' }, 'invalid_client_metadata'],
  ['a name that is null', { ...clients.Cursor, client_name: null }, 'invalid_client_metadata'],
]

test.each(refused)('DCR-02 refuses %s and stores nothing', async (_, body, error) => {
  const before = await rows()
  const answer = await register(body)
  expect([answer.status, answer.body.error]).toEqual([400, error])
  expect(await rows()).toEqual(before)
  expect(await app.events()).toEqual([])
})

test('DCR-02 a large body and another type are refused', async () => {
  const large = await register({ ...clients.Cursor, software_id: 'x'.repeat(17_000) })
  expect([large.status, large.body.error]).toEqual([413, 'payload_too_large'])
  const form = await register('redirect_uris=x', { 'content-type': 'application/x-www-form-urlencoded' })
  expect(form.status).toBe(415)
})

test('DCR-03 off by default, and discovery names it only where an organization lets clients in', async () => {
  const endpointOf = async (other: Pick<typeof app, 'call'>) =>
    (await (await other.call('/.well-known/oauth-authorization-server')).json()).registration_endpoint
  expect(await endpointOf(app)).toBe(`${BASE}/oauth/register`)
  await policy(null)
  expect(await endpointOf(app)).toBeUndefined()
  await app.events()
  const closed = await register(clients.Cursor)
  expect([closed.status, closed.body.error]).toEqual([403, 'access_denied'])
  expect(await app.events()).toEqual([])
  await policy('open')
  expect(await endpointOf(await startApp())).toBeUndefined()
})

describe('DCR-04 registrations stay few', () => {
  test('DCR-04 equal metadata of a public client is one client, also after it was removed', async () => {
    const metadata = { ...clients.Cursor, client_name: 'Equal' }
    const first = await register(metadata)
    app.clock.advance(MINUTE)
    await app.events()
    const again = await register({ ...metadata, software_version: '2' })
    expect([again.status, again.body]).toEqual([201, first.body])
    expect(await app.events()).toEqual([])
    app.clock.advance(HOUR)
    await sweep(app.context)
    expect(await rows()).toEqual([])
    expect((await register(metadata)).body.client_id).toBe(first.body.client_id)
  })

  test('DCR-04 a client that nobody has allowed is removed after an hour, not before', async () => {
    await register({ ...clients.Cursor, client_name: 'Unused' })
    const has = async () => (await rows()).some(({ name }) => name === 'Unused')
    app.clock.advance(HOUR - 1)
    await sweep(app.context)
    expect(await has()).toBe(true)
    app.clock.advance(1)
    await sweep(app.context)
    expect(await has()).toBe(false)
  })

  test('DCR-04 a client that registers again is kept for another hour, and earlier than that nothing is written', async () => {
    app.clock.advance(DAY)
    await sweep(app.context)
    const metadata = { ...clients.Cursor, client_name: 'Renewed' }
    const { body: first } = await register(metadata)
    app.clock.advance(HOUR / 2 - 1)
    await app.events()
    expect((await register(metadata)).body).toEqual(first)
    app.clock.advance(HOUR / 2)
    const again = await register(metadata)
    const client_id_issued_at = Math.floor(app.clock.now() / 1000)
    expect([again.status, again.body]).toEqual([201, { ...first, client_id_issued_at }])
    app.clock.advance(HOUR - 1)
    await sweep(app.context)
    expect(await rows()).toMatchObject([{ name: 'Renewed', used_at: null }])
    app.clock.advance(1)
    await sweep(app.context)
    expect([await rows(), await app.events()]).toEqual([[], []])
  })

  test('DCR-04 so is a client that was last used 90 days ago', async () => {
    const metadata = { ...clients.Cursor, client_name: 'Used' }
    const { client_id, ...more } = (await register(metadata)).body
    await app.context.store.write(tx => noteUse(tx, client_id, app.clock.now()))
    app.clock.advance(90 * DAY - 1)
    await app.events()
    expect((await register(metadata)).body).toEqual({ client_id, ...more })
    app.clock.advance(HOUR - 1)
    await sweep(app.context)
    expect(await rows()).toMatchObject([{ client_id }])
    expect(await app.events()).toEqual([])
    app.clock.advance(1)
    await sweep(app.context)
    expect(await rows()).toEqual([])
    expect(await app.events()).toMatchObject([{ type: 'client.forgotten', target_id: client_id }])
  })

  test('DCR-04 keeping a client is charged; a refusal shows the client as stored, and after its end 429', async () => {
    const [metadata, ip] = [uri('https://a.example/kept'), '198.51.100.9']
    const { body: first } = await register(metadata)
    const { client_id } = first
    app.clock.advance(HOUR - 1)
    const kept = async () => (await rows()).find(row => row.client_id === client_id)
    const before = await kept()
    for (let i = 0; i < 60; i++) await register(uri(`https://a.example/other/${i}`), {}, ip)
    await app.events()
    const again = await register(metadata, {}, ip)
    expect([again.status, again.body]).toEqual([201, first])
    app.clock.advance(1)
    expect((await register(metadata, {}, ip)).status).toBe(429)
    expect([await kept(), await app.events()]).toEqual([before, []])
    expect((await register(metadata)).status).toBe(201)
  })

  test('DCR-04 a flood from one network is refused, and all networks together are bounded', async () => {
    app.clock.advance(DAY)
    await sweep(app.context)
    const flood = async (ip: string, count: number) => {
      let served = 0
      for (let i = 0; i < count; i++)
        if ((await register(uri(`https://a.example/${ip}/${i}`), {}, ip)).status === 201) served++
      return served
    }
    expect(await flood('198.51.100.1', 70)).toBe(60)
    const late = await register(uri('https://a.example/late'), {}, '198.51.100.1')
    expect([late.status, late.headers.has('retry-after')]).toEqual([429, true])
    for (let i = 2; i < 24; i++) await flood(`198.51.${i}.1`, 60)
    expect((await rows()).length).toBeLessThanOrEqual(1000)
    app.clock.advance(HOUR)
    await sweep(app.context)
    expect(await rows()).toEqual([])
  })
})

test('DCR-10 any page reads answers to a public client, and no page reads answers with a secret', async () => {
  app.clock.advance(DAY)
  const origin = 'https://app.example'
  const allowed = ({ headers }: { headers: Headers }) => headers.get('access-control-allow-origin')
  expect(allowed(await register(clients.Cursor, { origin }))).toBe('*')
  expect(allowed(await register({}, { origin }))).toBe('*')
  expect(allowed(await register({ redirect_uris: ['https://a.example/'] }, { origin }))).toBeNull()
  const ask = (client_id: string) =>
    post(
      app,
      '/oauth/token',
      { grant_type: 'refresh_token', refresh_token: 'x', client_id },
      { headers: { origin } },
    )
  const forgotten = await ask(`dcr_${'x'.repeat(43)}`)
  expect([forgotten.status, forgotten.body.error, allowed(forgotten)]).toEqual([401, 'invalid_client', '*'])
  expect(forgotten.headers.has('access-control-allow-credentials')).toBe(false)
  expect(allowed(await ask(`dcs_${'x'.repeat(43)}`))).toBeNull()
})
