/**
 * Tests the commands that change registered applications, and which server a command uses when no URL is
 * given.
 */
import { afterAll, beforeAll, expect, test } from 'bun:test'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Json } from '#test/support/app.ts'
import { gatehouse, type Running, serveExecutable } from '#test/support/executable.ts'
import { addUser } from '#test/support/people.ts'
import { remote } from '#test/support/remote.ts'

const folder = mkdtempSync(join(tmpdir(), 'gatehouse-'))
let server: Running & AsyncDisposable
let env: Record<string, string>

beforeAll(async () => {
  server = await serveExecutable()
  env = { GATEHOUSE_DATA_DIR: server.data_dir, GATEHOUSE_URL: server.url }
  await server.admin('POST', '/organizations', { name: 'Acme', slug: 'acme' })
}, 30_000)
afterAll(async () => {
  await server[Symbol.asyncDispose]()
  rmSync(folder, { recursive: true })
})

const client = (...args: string[]) => gatehouse(['client', ...args], env)
const createClient = (...args: string[]) => client('create', ...args)

test('RUN-31 DCR-13 client list --dynamic prints clients that registered themselves', async () => {
  await server.admin('PUT', '/organizations/default', { settings: { client_registration: 'open' } })
  const redirect_uris = ['https://agent.example/callback']
  const answer = await remote(server).call('/oauth/register', {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ client_name: 'Agent', redirect_uris, token_endpoint_auth_method: 'none' }),
  })
  const { client_id } = (await answer.json()) as Json
  const { stdout } = await client('list', '--dynamic')
  expect(stdout).toMatch(/^CLIENT ID +NAME +LAST USED +REDIRECT URL\n/)
  expect(stdout.split('\n')[1]).toMatch(/^dcr_[\w-]{43} +Agent +never +https:\/\/agent\.example\/callback$/)
  const listed = JSON.parse((await client('list', '--dynamic', '--json')).stdout)
  expect(listed).toMatchObject({ client_id, source: 'registration', redirect_uris, last_used_at: null })
  expect((await client('list', '--dynamic', '--organization', 'acme', '--json')).stdout).toBe('')
})

test('RUN-29 client create warns that the scope admin makes a service an administrator', async () => {
  const { code, stderr } = await createClient('root', '--kind', 'service', '--scope', 'jobs:run', 'admin')
  expect([code, stderr]).toEqual([
    0,
    'gatehouse: the scope "admin" gives root every permission of an administrator; if you meant a scope of your own service, give it another name\n',
  ])
  const web = ['--kind', 'web', '--redirect', 'https://web.example/cb', '--scope', 'openid', 'admin']
  expect(await createClient('site', ...web)).toMatchObject({ code: 0, stderr: '' })
  for (const name of ['root', 'site']) await client('delete', name)
})

test('RUN-31 client list, secret and delete', async () => {
  await createClient(
    'listed',
    '--kind',
    'web',
    '--redirect',
    'https://listed.example/cb',
    '--organization',
    'acme',
  )
  const { stdout, stderr } = await client('list', '--organization', 'acme')
  const lines = stdout.trim().split('\n')
  expect(lines[0]).toMatch(/^CLIENT ID +KIND +ORGANIZATION +REDIRECT URL$/)
  expect(lines).toContainEqual(expect.stringMatching(/^listed +web +acme +https:\/\/listed\.example\/cb$/))
  expect([stderr, stdout.includes('gatehouse-admin')]).toEqual(['', false])
  const all = (await client('list', '--json')).stdout.trim().split('\n')
  expect(all.map(line => JSON.parse(line).client_id)).toEqual(
    expect.arrayContaining(['gatehouse-admin', 'listed']),
  )
  const secret = await client('secret', 'listed')
  expect(secret.stdout).toMatch(/^[\w-]{43}\n$/)
  const answer = await remote(server).call('/oauth/token', {
    method: 'POST',
    headers: { authorization: `Basic ${btoa(`listed:${secret.stdout.trim()}`)}` },
    body: new URLSearchParams({
      grant_type: 'authorization_code',
      code: 'x',
      redirect_uri: 'x',
      code_verifier: 'x'.repeat(43),
    }),
  })
  expect(((await answer.json()) as Json).error).toBe('invalid_grant')
  expect((await client('delete', 'listed')).code).toBe(0)
  expect((await server.admin('GET', '/clients/listed')).status).toBe(404)
  const { data } = (await server.admin('GET', '/events?target_id=listed')).body
  expect(data.map(({ type }: Json) => type)).toEqual([
    'client.deleted',
    'client.secret_regenerated',
    'client.created',
  ])
  for (const command of ['secret', 'delete'])
    expect(await client(command, 'listed')).toEqual({
      code: 1,
      stdout: '',
      stderr: 'gatehouse: no such client: `gatehouse client list` prints all clients\n',
    })
  await createClient('open', '--kind', 'spa', '--redirect', 'https://open.example/cb')
  expect(await client('secret', 'open')).toMatchObject({
    code: 1,
    stderr: expect.stringContaining('has no secret'),
  })
}, 60_000)

test('RUN-32 commands without a URL and a port mean the server that was started last', async () => {
  const data_dir = mkdtempSync(join(folder, 'moved-'))
  {
    await using _ = await serveExecutable({}, data_dir)
  }
  const own = { GATEHOUSE_DATA_DIR: data_dir }
  {
    await using second = await serveExecutable({}, data_dir)
    await addUser(remote(second), 'alice')
    const service = await gatehouse(['client', 'create', 'job', '--kind', 'service', '--json'], own)
    expect([JSON.parse(service.stdout).issuer, service.stderr]).toEqual([second.url, ''])
    const token = await gatehouse(['token', '--user', 'alice', '--client', 'gatehouse-admin'], own)
    expect(
      await remote(second)
        .call('/oauth/userinfo', { headers: { authorization: `Bearer ${token.stdout.trim()}` } })
        .then(answer => answer.status),
    ).toBe(403)
    expect(await gatehouse(['healthcheck'], own)).toMatchObject({ code: 0 })
    expect((await gatehouse(['doctor'], own)).stdout).toContain(`${second.url} answers`)
  }
  expect(await gatehouse(['healthcheck'], own)).toMatchObject({ code: 1 })
  const late = await gatehouse(['client', 'create', 'late', '--kind', 'service'], own)
  expect([late.code, late.stderr]).toEqual([
    0,
    expect.stringMatching(/^gatehouse: no server answers at .*GATEHOUSE_URL/),
  ])
}, 60_000)

test('RUN-33 user list prints the users of an organization, and finds by a part of a name', async () => {
  const app = remote(server)
  for (const name of ['zoe', 'zora', 'yan']) await addUser(app, name)
  const list = async (...args: string[]) =>
    (await gatehouse(['user', 'list', ...args], env)).stdout.trim().split('\n')
  const [titles, ...lines] = await list('--organization', 'default')
  expect(titles).toMatch(/^USERNAME +EMAIL +ROLES +ENABLED +ID$/)
  expect(lines.map(line => line.split(/ +/)[0])).toEqual(['zoe', 'zora', 'yan'])
  expect((await list('--search', 'zo', '--json')).map(line => JSON.parse(line).username)).toEqual([
    'zoe',
    'zora',
  ])
  expect(await list('--organization', 'acme')).toHaveLength(1)
}, 30_000)
