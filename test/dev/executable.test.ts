import { afterAll, describe, expect, test } from 'bun:test'
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, statSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Json } from '#test/support/app.ts'
import { startDev } from '#test/support/development.ts'
import { gatehouse } from '#test/support/executable.ts'
import { claimsOf } from '#test/support/tokens.ts'

const folder = mkdtempSync(join(tmpdir(), 'gatehouse-test-'))
afterAll(() => rmSync(folder, { recursive: true, force: true }))

const file = async (name: string, content: unknown): Promise<string> => {
  const path = join(folder, name)
  await Bun.write(path, typeof content === 'string' ? content : JSON.stringify(content))
  return path
}

describe('dev 1: gatehouse dev', () => {
  test('RUN-18 needs no settings, is seeded, and leaves nothing behind', async () => {
    const server = await startDev()
    const { ready } = server
    expect(ready).toMatchObject({
      event: 'ready',
      url: `http://localhost:${ready.port}`,
      client_id: 'dev-service',
    })
    const discovery: Json = await (await fetch(`${ready.url}/.well-known/openid-configuration`)).json()
    expect([discovery.issuer, discovery.token_endpoint]).toEqual([ready.url, `${ready.url}/oauth/token`])
    const users: Json = await (
      await fetch(`${ready.url}/dev/users`, { headers: { authorization: `Bearer ${ready.control_token}` } })
    ).json()
    expect(users.data.map(({ username, roles }: Json) => [username, roles])).toEqual([
      ['alice', ['user']],
      ['admin', ['admin', 'user']],
    ])
    expect(existsSync(ready.data_dir)).toBe(true)
    server.kill('SIGTERM')
    expect(await server.exited).toBe(0)
    expect(existsSync(ready.data_dir)).toBe(false)
  })

  test('RUN-18 leaves nothing behind either when the signal comes several times', async () => {
    const server = await startDev()
    let isOver = false
    void server.exited.then(() => {
      isOver = true
    })
    while (!isOver) {
      server.kill('SIGTERM')
      await Bun.sleep(0)
    }
    expect([await server.exited, existsSync(server.ready.data_dir)]).toEqual([0, false])
  })

  test('on a terminal it prints issuer, clients, users, and a curl line that works as printed', async () => {
    await using server = await startDev([], { terminal: true })
    const text = server.output()
    const plain = Bun.stripANSI(text)
    expect(text).not.toBe(plain)
    const column = (name: string) =>
      plain
        .split('\n')
        .find(line => line.includes(name))
        ?.indexOf('Gatehouse-dev-1')
    expect(column('alice')).toBe(column('admin ') ?? -1)
    for (const name of ['Issuer', 'dev-web', 'dev-service', 'dev-secret', 'gatehouse-admin'])
      expect(plain).toContain(name)
    const line = /curl .*/.exec(plain)?.[0] ?? ''
    const answer = await Bun.$`sh -c ${line}`.json()
    expect(claimsOf(answer.access_token).sub).toBe('dev-service')
    const command = /gatehouse token .*/.exec(plain)?.[0].trim().split(' ').slice(1) ?? []
    const { stdout } = await gatehouse(command)
    expect(claimsOf(stdout).preferred_username).toBe('alice')
  })

  test('on a terminal it says that the data in --data-dir stays, whatever the name of the directory', async () => {
    const data_dir = join(folder, 'gatehouse-dev-kept')
    await using server = await startDev(['--data-dir', data_dir], { terminal: true })
    expect(Bun.stripANSI(server.output())).toContain(`Its data stays in ${data_dir}.`)
  })

  test('on a terminal the command for a token names the organization of the first user', async () => {
    const seed = await file('acme.json', {
      organizations: [{ slug: 'acme', name: 'Acme' }],
      users: [{ username: 'amy', email: 'amy@acme.example', organization: 'acme' }],
    })
    await using server = await startDev(['--seed', seed], { terminal: true })
    const command = /gatehouse (token .*)/.exec(Bun.stripANSI(server.output()))?.[1]?.trim() ?? ''
    expect(command).toStartWith('token --user amy --organization acme --data-dir ')
    const { stdout } = await gatehouse(command.split(' '))
    expect(claimsOf(stdout)).toMatchObject({ email: 'amy@acme.example', sid: expect.any(String) })
  })

  test('a port in use and a wrong setting are reported in one line each', async () => {
    await using server = await startDev()
    const { code, stderr } = await gatehouse(['dev', '--port', String(server.ready.port)])
    expect([code, stderr.trim()]).toEqual([
      2,
      `gatehouse: 127.0.0.1:${server.ready.port} is in use by another program: choose another --port, or 0 for any.`,
    ])
    expect((await gatehouse(['dev', '--port', 'x'])).stderr).toContain('a whole number from 0 to 65535')
  })
})

test.each([
  ['info', {}],
  ['warn', { GATEHOUSE_LOG_LEVEL: 'warn' }],
])('the log of `dev` has the level %s with %o', async (level, env) => {
  await using server = await startDev([], { env })
  await fetch(`${server.ready.url}/readyz`)
  await fetch(`${server.ready.url}/readyz`, { headers: { host: 'other.localhost' } })
  const log = await server.untilOutput(/"event":"host"/)
  expect(log.includes('"path":"/readyz"')).toBe(level === 'info')
})

describe('dev 4: ready', () => {
  test('the ready file and readyz appear once every endpoint answers', async () => {
    const ready_file = join(folder, 'ready.json')
    await using server = await startDev(['--ready-file', ready_file])
    expect(JSON.parse(readFileSync(ready_file, 'utf8'))).toEqual(server.ready)
    expect(statSync(ready_file).mode & 0o777).toBe(0o600)
    // A start that fails leaves no line of an earlier start.
    const again = ['dev', '--port', String(server.ready.port), '--ready-file', ready_file]
    expect((await gatehouse(again)).code).toBe(2)
    expect(existsSync(ready_file)).toBe(false)
    expect((await gatehouse(['healthcheck', '--url', server.ready.url])).code).toBe(0)
    expect((await gatehouse(['healthcheck', '--url', 'http://127.0.0.1:9'])).code).toBe(1)
    const keys: Json = await (await fetch(`${server.ready.url}/.well-known/jwks.json`)).json()
    expect(keys.keys.map(({ alg }: Json) => alg).sort()).toEqual(['ES256', 'RS256'])
  })
})

test('commands on the data directory of a development server find the server', async () => {
  const GATEHOUSE_DATA_DIR = join(folder, 'found')
  await using server = await startDev(['--data-dir', GATEHOUSE_DATA_DIR])
  const { url, port } = server.ready
  const run = async (...args: string[]) => {
    const { code, stdout, stderr } = await gatehouse(args, { GATEHOUSE_DATA_DIR })
    expect([code, stderr]).toEqual([0, ''])
    return stdout
  }
  const link = (await run('user', 'link', 'alice')).trim()
  expect([link.startsWith(url), (await fetch(link)).status]).toEqual([true, 200])
  const redirect = 'http://localhost:3000/callback'
  expect(await run('client', 'create', 'shop', '--kind', 'web', '--redirect', redirect)).toContain(url)
  expect(await run('healthcheck')).toBe('')
  expect(await run('doctor')).toMatch(new RegExp(`^ok +address +${url}`, 'm'))
  const second = await gatehouse(['dev', '--port', '0', '--data-dir', GATEHOUSE_DATA_DIR])
  expect([second.code, second.stderr]).toEqual([
    75,
    expect.stringContaining(`is in use by another Gatehouse server (http://localhost:${port})`),
  ])
})

describe('dev 13: the issuer is fixed', () => {
  test('whatever Host says; the internal address is for back-channel endpoints; a mismatch is logged once', async () => {
    await using server = await startDev([
      '--url',
      'http://gatehouse.test:8080',
      '--internal-url',
      'http://gatehouse:8080',
      '--public-issuer',
    ])
    const { local_url } = server.ready
    const headers = { host: 'gatehouse:8080' }
    const path = '/.well-known/openid-configuration'
    const discovery: Json = await (await fetch(`${local_url}${path}`, { headers })).json()
    expect(discovery).toMatchObject({
      issuer: 'http://gatehouse.test:8080',
      authorization_endpoint: 'http://gatehouse.test:8080/oauth/authorize',
      token_endpoint: 'http://gatehouse:8080/oauth/token',
      jwks_uri: 'http://gatehouse:8080/.well-known/jwks.json',
    })
    await fetch(`${local_url}/readyz`)
    const warnings = (await server.untilOutput(/"event":"host"/))
      .split('\n')
      .filter(line => line.includes('"event":"host"'))
    expect(warnings).toHaveLength(1)
    expect(warnings[0]).toContain('start the server with --url')
  })

  test('dev 15: an issuer on another machine needs a second flag', async () => {
    const { code, stderr } = await gatehouse(['dev', '--port', '0', '--url', 'https://id.example.com'])
    expect([code, stderr]).toEqual([2, expect.stringContaining('--public-issuer')])
  })

  test('GATEHOUSE_URL is the issuer without --url, and an empty one counts as unset', async () => {
    const issuer = async (GATEHOUSE_URL: string) => {
      await using server = await startDev([], { env: { GATEHOUSE_URL } })
      return server.ready.url.replace(server.ready.port, 'PORT')
    }
    expect([await issuer(''), await issuer('http://localhost:9000')]).toEqual([
      'http://localhost:PORT',
      'http://localhost:9000',
    ])
    const { stderr } = await gatehouse(['exec', '--', 'true'], { GATEHOUSE_URL: 'https://id.example.com' })
    expect(stderr).toContain(
      'issuer https://id.example.com (url, --url or GATEHOUSE_URL) is not one of localhost, 127.0.0.1, [::1]',
    )
  })
})

test('dev 15: --tls serves https with a certificate that can be trusted', async () => {
  await using server = await startDev(['--tls'])
  const { url, ca_file, port } = server.ready
  expect(url).toBe(`https://localhost:${port}`)
  const answer = await Bun.$`curl -s --cacert ${ca_file} ${url}/.well-known/openid-configuration`.json()
  expect(answer.issuer).toBe(url)
  expect((await Bun.$`curl -s ${url}/readyz`.nothrow()).exitCode).not.toBe(0)
})

test('dev 6: --dev-host opens the controls to other machines, --host does not', async () => {
  const address = Object.values((await import('node:os')).networkInterfaces())
    .flatMap(all => all ?? [])
    .find(({ internal, family }) => !internal && family === 'IPv4')?.address
  const status = async (option: string): Promise<number[]> => {
    await using server = await startDev([option, '0.0.0.0'])
    const { port, control_token, password, client_secret, admin_client_secret } = server.ready
    for (const printed of [password, client_secret, admin_client_secret, control_token])
      expect(printed).toMatch(/^[\w-]{16,43}$/)
    const headers = { authorization: `Bearer ${control_token}` }
    return await Promise.all(
      ['127.0.0.1', address ?? '127.0.0.1'].map(
        async host => (await fetch(`http://${host}:${port}/dev/clock`, { headers })).status,
      ),
    )
  }
  expect(await status('--dev-host')).toEqual([200, 200])
  expect(await status('--host')).toEqual(address ? [200, 404] : [200, 200])
})

test('H-50 --dev-host with a name adds a host and opens nothing to other machines', async () => {
  await using server = await startDev(['--dev-host', 'app.test', '--dev-host', 'api.test'])
  const { port, local_url, url } = server.ready
  expect([local_url, url]).toEqual([`http://127.0.0.1:${port}`, `http://localhost:${port}`])
  const statuses = await Promise.all(
    ['app.test', `api.test:${port}`, 'evil.test'].map(
      async host => (await fetch(`${local_url}/healthz`, { headers: { host } })).status,
    ),
  )
  expect(statuses).toEqual([200, 200, 421])
  expect((await gatehouse(['dev', '--help'])).stdout).toContain('--dev-host <host...>')
})

test('dev 11: --key signs with a key from a file', async () => {
  const { privateKey } = await crypto.subtle.generateKey({ name: 'ECDSA', namedCurve: 'P-256' }, true, [
    'sign',
  ])
  const jwk = await file('key.json', {
    ...(await crypto.subtle.exportKey('jwk', privateKey)),
    kid: 'from-a-file',
  })
  const { d: _, ...open } = await crypto.subtle.exportKey('jwk', privateKey)
  const refused = await gatehouse(['exec', '--key', await file('public.json', open), '--', 'true'])
  expect([refused.code, refused.stderr]).toEqual([
    2,
    expect.stringMatching(/^gatehouse: --key: \S+ is not a readable private RSA or EC key \(JWK\)\.\n$/),
  ])
  await using server = await startDev(['--key', jwk])
  const keys: Json = await (await fetch(`${server.ready.url}/.well-known/jwks.json`)).json()
  expect(keys.keys.map(({ kid }: Json) => kid)).toContain('from-a-file')
})

describe('dev 5: plan, apply, export, and a file at each start', () => {
  const seed = {
    organizations: [{ slug: 'acme', name: 'Acme' }],
    users: [
      { username: 'alice', email: 'alice@example.com', organization: 'acme', password: 'Correct-horse-7' },
    ],
  }

  test('plan previews, apply changes, a second plan is empty; also beside a running server', async () => {
    const env = { GATEHOUSE_DATA_DIR: join(folder, 'applied') }
    const path = await file('seed.yaml', seed)
    expect((await gatehouse(['plan', path], env)).stderr).toContain('there is no instance here')
    expect((await gatehouse(['apply', path], env)).stdout).toBe(
      '+ organization acme\n+ user acme/alice\n2 created, 0 changed, 0 deleted.\n',
    )
    expect((await gatehouse(['plan', path], env)).stdout).toBe(
      'No changes: the instance has every value in the file.\n',
    )
    const { serveExecutable } = await import('#test/support/executable.ts')
    await using server = await serveExecutable({}, env.GATEHOUSE_DATA_DIR)
    const changed = await file('changed.yaml', {
      ...seed,
      organizations: [{ slug: 'acme', name: 'Acme Corp' }],
      users: [],
    })
    expect((await gatehouse(['plan', changed, '--prune'], env)).stdout).toBe(
      '- user acme/alice\n~ organization acme: name\n0 to create, 1 to change, 1 to delete.\n',
    )
    expect((await gatehouse(['apply', changed, '--prune'], env)).code).toBe(0)
    expect((await server.admin('GET', '/organizations/acme')).body.name).toBe('Acme Corp')
    const exported = join(folder, 'export.yaml')
    await gatehouse(['export', exported, '--secrets'], env)
    expect(statSync(exported).mode & 0o777).toBe(0o600)
    expect((await gatehouse(['plan', exported], env)).stdout).toBe(
      'No changes: the instance has every value in the file.\n',
    )
  })

  test('serve applies the seed of its settings at each start, and refuses to start with a wrong seed', async () => {
    const { serveExecutable } = await import('#test/support/executable.ts')
    const data_dir = join(folder, 'served')
    mkdirSync(data_dir)
    const path = await file('served.yaml', seed)
    for (const name of ['Acme', 'Acme Corp']) {
      await file('served.yaml', { ...seed, organizations: [{ slug: 'acme', name }] })
      await using server = await serveExecutable({ GATEHOUSE_SEED_FILE: path }, data_dir)
      expect((await server.admin('GET', '/organizations/acme')).body.name).toBe(name)
    }
    await file('served.yaml', { users: [{ username: 'bob', email: 'bob@example.com', roles: ['ghost'] }] })
    const { code, stderr } = await gatehouse(['serve'], {
      GATEHOUSE_SEED_FILE: path,
      GATEHOUSE_DATA_DIR: data_dir,
      GATEHOUSE_PORT: '0',
    })
    expect([code, stderr]).toEqual([2, expect.stringContaining('no role ghost')])
  })

  test('the JSON Schema is published', async () => {
    const { stdout } = await gatehouse(['openapi', '--seed-schema'])
    expect(JSON.parse(stdout)).toMatchObject({ type: 'object', additionalProperties: false })
  })
})
