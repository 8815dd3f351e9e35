import { afterAll, describe, expect, setDefaultTimeout, test } from 'bun:test'
import {
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  utimesSync,
  writeFileSync,
} from 'node:fs'
import { networkInterfaces, tmpdir } from 'node:os'
import { join } from 'node:path'
import { selfSigned } from '#src/dev/self-signed.ts'
import { tokenOf } from '#test/support/admin-calls.ts'
import type { Json } from '#test/support/app.ts'
import { openBrowser } from '#test/support/browser.ts'
import { gatehouse, type Running, SECRET, serveExecutable, stop } from '#test/support/executable.ts'
import { addClient, addUser, authorizeUrl, PASSWORD, signIn } from '#test/support/people.ts'
import { remote } from '#test/support/remote.ts'
import { until } from '#test/support/until.ts'

// Timeout in ms: each test starts a process, and the machine may be busy.
setDefaultTimeout(30_000)

const folders: string[] = []
afterAll(() => {
  for (const path of folders) rmSync(path, { recursive: true, force: true })
})
const folder = () => {
  const path = mkdtempSync(join(tmpdir(), 'gatehouse-'))
  folders.push(path)
  return path
}
const file = (name: string, content: string): string => {
  const path = join(folder(), name)
  writeFileSync(path, content)
  return path
}
const mode = (path: string) => (statSync(path).mode & 0o777).toString(8)
const lines = (server: Running): Json[] =>
  server
    .output()
    .split('\n')
    .filter(Boolean)
    .map(line => JSON.parse(line))
/** Waits until the server has printed the text. */
const printed = async (server: Running, text: string): Promise<string> => {
  await until(() => server.output().includes(text))
  return server.output()
}

/** Returns the log lines of the start, but not the lines about settings. */
const announced = (server: Running): Json[] => lines(server).filter(({ event }) => event !== 'config')

describe('a first start without settings', () => {
  test('RUN-09 creates keys, database and a private secret, logs JSON lines, and names the file, never the secret', async () => {
    await using server = await serveExecutable({ GATEHOUSE_ADMIN_CLIENT_SECRET: '' })
    const { data_dir, port } = server
    await printed(server, '"event":"set_up"')
    const [ready, client, set_up] = announced(server)
    expect(ready).toEqual({ event: 'ready', url: `http://localhost:${port}`, port, ms: expect.any(Number) })
    expect(client).toEqual({ event: 'admin_client', file: join(data_dir, 'admin-client.json') })
    expect(set_up).toEqual({
      event: 'set_up',
      url: expect.stringMatching(new RegExp(`^http://localhost:${port}/account/set-up\\?token=[\\w-]{43}$`)),
      minutes: 30,
    })
    expect(mode(data_dir)).toBe('700')
    for (const name of ['master.key', 'gatehouse.db', 'admin-client.json', 'server.json'])
      expect([name, mode(join(data_dir, name))]).toEqual([name, '600'])
    const written = JSON.parse(readFileSync(join(data_dir, 'admin-client.json'), 'utf8'))
    expect(await tokenOf(remote(server).call, written.client_secret)).not.toBe('')
    expect(server.output()).not.toContain(written.client_secret)
    const { body } = await remote(server, { secret: written.client_secret }).admin('GET', '/users')
    expect(body.data).toEqual([])
  })

  test('with a URL, listens on IPv4 and IPv6; an IPv4 caller is logged with an IPv4 address', async () => {
    const has_ipv6 = Object.values(networkInterfaces()).some(all =>
      all?.some(({ family }) => family === 'IPv6'),
    )
    await using server = await serveExecutable({ GATEHOUSE_URL: 'http://localhost:8080' })
    const hosts = ['127.0.0.1', ...(has_ipv6 ? ['[::1]'] : [])]
    for (const host of hosts) expect((await fetch(`http://${host}:${server.port}/readyz`)).status).toBe(200)
    await remote(server).admin('GET', '/users')
    const { body } = await remote(server).admin('GET', '/events?type=token.issued')
    expect(new Set(body.data.map(({ ip_address }: Json) => ip_address))).toEqual(new Set(['127.0.0.1']))
  })

  test('RUN-08 listens on loopback only', async () => {
    await using server = await serveExecutable()
    const tcp = readFileSync('/proc/net/tcp', 'utf8')
    const port = server.port.toString(16).toUpperCase().padStart(4, '0')
    expect(tcp).toContain(`0100007F:${port} `)
    expect(tcp).not.toContain(`00000000:${port} `)
  })
})

test('a later start finds its keys, clients and users, and does not print the secret again', async () => {
  const data_dir = folder()
  const first = await serveExecutable({ GATEHOUSE_ADMIN_CLIENT_SECRET: '' }, data_dir)
  const keys = await (await remote(first).call('/.well-known/jwks.json')).text()
  expect(await stop(first)).toBe(0)
  const { client_secret } = JSON.parse(readFileSync(join(data_dir, 'admin-client.json'), 'utf8'))
  await using second = await serveExecutable({ GATEHOUSE_ADMIN_CLIENT_SECRET: '' }, data_dir)
  await printed(second, '"event":"set_up"')
  expect(announced(second).map(line => line.event)).toEqual(['ready', 'set_up'])
  expect(await (await remote(second).call('/.well-known/jwks.json')).text()).toBe(keys)
  expect(await tokenOf(remote(second).call, client_secret)).not.toBe('')
})

test('RUN-11 the admin client’s secret from the settings is applied at each start', async () => {
  const data_dir = folder()
  const old = 'the-first-secret-of-the-admin-client'
  const first = await serveExecutable({ GATEHOUSE_ADMIN_CLIENT_SECRET: old }, data_dir)
  expect(await tokenOf(remote(first).call, old)).not.toBe('')
  await stop(first)
  expect(readdirSync(data_dir)).not.toContain('admin-client.json')
  const secret_file = file('secret', `${SECRET}\n`)
  await using second = await serveExecutable(
    { GATEHOUSE_ADMIN_CLIENT_SECRET: '', GATEHOUSE_ADMIN_CLIENT_SECRET_FILE: secret_file },
    data_dir,
  )
  expect(await tokenOf(remote(second).call, old)).toBe('')
  expect(await tokenOf(remote(second).call, SECRET)).not.toBe('')
})

test('RUN-12 the first admin user from the settings signs in, and no set-up link is printed', async () => {
  await using server = await serveExecutable({
    GATEHOUSE_ADMIN_USERNAME: 'root',
    GATEHOUSE_ADMIN_EMAIL: 'root@example.com',
    GATEHOUSE_ADMIN_PASSWORD_FILE: file('password', `${PASSWORD}\n`),
  })
  const app = remote(server)
  const { body } = await app.admin('GET', '/users')
  expect(body.data).toMatchObject([{ username: 'root', email_verified: true, roles: ['admin'] }])
  const browser = openBrowser(app)
  const page = await signIn(browser, await browser.follow(await browser.get('/account')), 'root')
  expect(page).toMatchObject({ status: 200, url: '/account' })
  expect(server.output()).not.toContain('set_up')
})

test('RUN-04 GATEHOUSE_CONFIG names a YAML settings file; the environment takes precedence', async () => {
  const config = file(
    'gatehouse.yaml',
    'url: https://id.example.com\nlog_level: silent\nport: 1\nhost: 127.0.0.1\n',
  )
  await using server = await serveExecutable({ GATEHOUSE_CONFIG: config })
  expect(server.url).toBe('https://id.example.com')
  expect(server.port).toBeGreaterThan(1)
  const discovery = await (await remote(server).call('/.well-known/openid-configuration')).json()
  expect(discovery).toMatchObject({ issuer: 'https://id.example.com' })
  expect(lines(server).filter(line => line.event === 'request')).toEqual([])

  const { code, stdout } = await gatehouse(['--config', config, 'config', 'print', '--redacted'], {
    GATEHOUSE_PORT: '9000',
    GATEHOUSE_ADMIN_CLIENT_SECRET: SECRET,
  })
  expect(code).toBe(0)
  expect(stdout).toMatch(/^port +9000 +environment$/m)
  expect(stdout).toMatch(new RegExp(`^url +https://id\\.example\\.com +${config}:1$`, 'm'))
  expect(stdout).toMatch(/^data_dir +\.\/data +default$/m)
  expect(stdout).not.toContain(SECRET)
})

describe('a start that is refused says why in one line', () => {
  test.each<[string, Record<string, string>, string, number?]>([
    [
      'RUN-05 an unknown name',
      { GATEHOUSE_COLOUR: 'red' },
      'GATEHOUSE_COLOUR: no such setting (environment).',
    ],
    ['a bad value', { GATEHOUSE_PORT: 'x' }, 'GATEHOUSE_PORT: "x" is not'],
    [
      'an address of another machine',
      { GATEHOUSE_HOST: '192.0.2.1' },
      'GATEHOUSE_HOST: 192.0.2.1 is not an address of this machine.',
    ],
    ['a missing file', { GATEHOUSE_CONFIG: '/nowhere.yaml' }, '/nowhere.yaml'],
    [
      'a database that cannot be reached',
      { GATEHOUSE_DATABASE_URL: 'postgres://u:secret@127.0.0.1:1/y' },
      'no server answers',
      75,
    ],
    [
      'a missing certificate',
      { GATEHOUSE_TLS_CERT: '/nowhere.pem', GATEHOUSE_TLS_KEY: '/nowhere.key' },
      '/nowhere',
    ],
  ])('%s', async (_, env, said, exit = 2) => {
    const { code, stdout, stderr } = await gatehouse(['serve'], {
      GATEHOUSE_DATA_DIR: folder(),
      GATEHOUSE_PORT: '0',
      ...env,
    })
    expect(code).toBe(exit)
    expect(stderr).toStartWith('gatehouse: ')
    expect(stderr).toContain(said)
    expect(stderr.trimEnd()).not.toContain('\n')
    expect(stderr).not.toContain('u:secret')
    expect(stdout).not.toContain('"ready"')
  })

  test('RUN-03 a second server on the same data directory or port', async () => {
    await using server = await serveExecutable()
    const port = String(server.port)
    const same = { GATEHOUSE_DATA_DIR: server.data_dir, GATEHOUSE_PORT: '0' }
    const second = await gatehouse(['serve'], same)
    expect(second).toMatchObject({
      code: 75,
      stderr: `gatehouse: ${server.data_dir} is in use by another Gatehouse server (${server.url}) or command. Stop it, or set both GATEHOUSE_DATA_DIR and GATEHOUSE_PORT: another port alone is not enough.\n`,
    })
    const third = await gatehouse(['serve'], { GATEHOUSE_DATA_DIR: folder(), GATEHOUSE_PORT: port })
    expect(third).toMatchObject({ code: 2, stderr: expect.stringContaining(`:${port} is in use`) })
    expect(await tokenOf(remote(server).call, SECRET)).not.toBe('')
  })

  test('a database that cannot be written to', async () => {
    const data_dir = folder()
    mkdirSync(join(data_dir, 'gatehouse.db'))
    writeFileSync(join(data_dir, 'master.key'), Buffer.alloc(32, 1).toString('base64'))
    expect(await gatehouse(['serve'], { GATEHOUSE_DATA_DIR: data_dir, GATEHOUSE_PORT: '0' })).toEqual({
      code: 78,
      stdout: '',
      stderr: `gatehouse: ${join(data_dir, 'gatehouse.db')}: cannot be written to (EISDIR).\n`,
    })
  })

  test('a master key that did not seal the database', async () => {
    const data_dir = folder()
    await stop(await serveExecutable({}, data_dir))
    const { code, stderr } = await gatehouse(['serve'], {
      GATEHOUSE_DATA_DIR: data_dir,
      GATEHOUSE_PORT: '0',
      GATEHOUSE_MASTER_KEY: Buffer.alloc(32, 1).toString('base64'),
    })
    expect(code).not.toBe(0)
    expect(stderr).toContain('The master key does not belong')
  })
})

test('a first start with a seed writes into the data directory only, and removes what a killed one left', async () => {
  const data_dir = folder()
  const ended = Bun.spawn(['true'])
  await ended.exited
  const killed = join(data_dir, `.rehearsal-${ended.pid}-killed`)
  mkdirSync(killed)
  utimesSync(killed, 1, 1)
  const seed = file('seed.yaml', 'roles: [{ name: editor, permissions: [] }]')
  await using server = await serveExecutable({ GATEHOUSE_SEED_FILE: seed, TMPDIR: '/nonexistent' }, data_dir)
  const { body } = await server.admin('GET', '/roles')
  expect(body.data.map(({ name }: Json) => name)).toContain('editor')
  expect(readdirSync(data_dir).filter(name => name.startsWith('.'))).toEqual([])
})

test('RUN-02 a container’s service link is ignored with a warning', async () => {
  await using server = await serveExecutable({ GATEHOUSE_SERVICE_HOST: '10.0.0.1' })
  expect(await printed(server, 'GATEHOUSE_SERVICE_HOST')).toContain('"level":40')
})

describe('cookies', () => {
  const names = async (url: string) => {
    await using server = await serveExecutable({ GATEHOUSE_URL: url, GATEHOUSE_HOST: '127.0.0.1' })
    const app = remote(server)
    await addUser(app, 'alice')
    await addClient(app, 'shop')
    const browser = openBrowser(app)
    const page = await browser.get(authorizeUrl('shop'))
    const [before = ''] = browser.received
    const answer = await browser.submit(page, { username: 'alice', password: PASSWORD }, '/oauth/login')
    expect(answer.location).toContain(`iss=${encodeURIComponent(url)}`)
    return { lines: [before, ...browser.received], output: server.output() }
  }

  test('RUN-06 follow the scheme of the public address, not of the connection', async () => {
    const { lines, output } = await names('https://id.example.com')
    expect(lines).toHaveLength(3)
    for (const line of lines) {
      expect(line).toMatch(/^__Host-gatehouse_\w+=[\w-]{43}; Path=\/; HttpOnly; SameSite=Lax; Secure/)
      expect(line).not.toMatch(/domain/i)
    }
    expect(output).not.toContain('plain http')
  })

  test.each([
    ['http://id.example.com', '_80'],
    ['http://localhost.example.com:8088', '_8088'],
  ])('RUN-10 on plain http have the port of %s in their name, and a warning is logged', async (url, port) => {
    const { lines, output } = await names(url)
    for (const line of lines) {
      expect(line).toMatch(new RegExp(`^gatehouse_[a-z]+${port}=`))
      expect(line).not.toContain('Secure')
    }
    expect(output).toContain('plain http on a public address')
  })
})

test('RUN-10 a warning is logged when an organization requires passkeys that browsers do not offer at the URL', async () => {
  const data_dir = folder()
  {
    await using server = await serveExecutable({}, data_dir)
    const settings = { passkey_required: true }
    expect((await remote(server).admin('PUT', '/organizations/default', { settings })).status).toBe(200)
    await stop(server)
  }
  await using moved = await serveExecutable({ GATEHOUSE_URL: 'http://id.example.com' }, data_dir)
  await printed(moved, 'nobody can sign in to default: passkeys are required')
})

test('RUN-01 TLS with a configured certificate and key', async () => {
  const { cert, key } = await selfSigned('localhost')
  await using server = await serveExecutable({
    GATEHOUSE_URL: 'https://localhost',
    GATEHOUSE_HOST: '127.0.0.1',
    GATEHOUSE_TLS_CERT: file('cert.pem', cert),
    GATEHOUSE_TLS_KEY: file('key.pem', key),
  })
  const app = remote(server, { scheme: 'https' })
  expect(await (await app.call('/.well-known/openid-configuration')).json()).toMatchObject({
    issuer: 'https://localhost',
  })
  expect((await app.admin('GET', '/users')).status).toBe(200)
  const answer = await gatehouse(['healthcheck', '--url', `https://127.0.0.1:${server.port}`])
  expect(answer.code).toBe(0)
})

describe('X-Forwarded-For', () => {
  const seenAs = async (env: Record<string, string>) => {
    await using server = await serveExecutable(env)
    const { call, admin } = remote(server)
    const form = { grant_type: 'client_credentials', client_id: 'gatehouse-admin', client_secret: SECRET }
    await call('/oauth/token', {
      method: 'POST',
      body: new URLSearchParams(form),
      headers: {
        'x-forwarded-for': '203.0.113.9, 198.51.100.7',
        'x-forwarded-proto': 'https',
        forwarded: 'for=203.0.113.1',
      },
    })
    const { body } = await admin('GET', '/events?type=token.issued&order=asc')
    return body.data[0].ip_address
  }

  test('RUN-07 is read from the right and only from a trusted proxy; Forwarded is never read', async () => {
    expect(await seenAs({})).toBe('127.0.0.1')
    expect(await seenAs({ GATEHOUSE_TRUSTED_PROXIES: '10.0.0.0/8' })).toBe('127.0.0.1')
    expect(await seenAs({ GATEHOUSE_TRUSTED_PROXIES: '127.0.0.1' })).toBe('198.51.100.7')
    expect(await seenAs({ GATEHOUSE_TRUSTED_PROXIES: '127.0.0.0/8, 198.51.100.0/24' })).toBe('203.0.113.9')
  })
})
