/** The settings and commands, at the executable. */
import { afterAll, describe, expect, setDefaultTimeout, test } from 'bun:test'
import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs'
import { networkInterfaces, tmpdir } from 'node:os'
import { join } from 'node:path'
import { selfSigned } from '#src/dev/self-signed.ts'
import { VERSION } from '#src/lib/version.ts'
import { tokenOf } from '#test/support/admin-calls.ts'
import type { Json } from '#test/support/app.ts'
import { openBrowser } from '#test/support/browser.ts'
import { gatehouse, type Running, SECRET, serveExecutable, stop } from '#test/support/executable.ts'
import { addClient, addUser, authorizeUrl, PASSWORD, signIn } from '#test/support/people.ts'
import { remote } from '#test/support/remote.ts'
import { openSocket } from '#test/support/socket.ts'
import { until } from '#test/support/until.ts'

// Each starts a process, and others may be busy beside it.
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
/** Waits for what the server is about to print. */
const printed = async (server: Running, text: string): Promise<string> => {
  await until(() => server.output().includes(text))
  return server.output()
}

/** Returns the log lines of the start without those about settings. */
const announced = (server: Running): Json[] => lines(server).filter(({ event }) => event !== 'config')

describe('a first start without settings', () => {
  test('RUN-09 makes keys, database and a private secret, says so in JSON lines, and names the file, never the secret', async () => {
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
    for (const name of ['master.key', 'gatehouse.db', 'admin-client.json'])
      expect([name, mode(join(data_dir, name))]).toEqual([name, '600'])
    const written = JSON.parse(readFileSync(join(data_dir, 'admin-client.json'), 'utf8'))
    expect(await tokenOf(remote(server).call, written.client_secret)).not.toBe('')
    expect(server.output()).not.toContain(written.client_secret)
    const { body } = await remote(server, { secret: written.client_secret }).admin('GET', '/users')
    expect(body.data).toEqual([])
  })

  test('with a URL, listens on all addresses of both kinds; a caller by IPv4 has an IPv4 address', async () => {
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

  test('RUN-08 listens on this machine alone', async () => {
    await using server = await serveExecutable()
    const tcp = readFileSync('/proc/net/tcp', 'utf8')
    const port = server.port.toString(16).toUpperCase().padStart(4, '0')
    expect(tcp).toContain(`0100007F:${port} `)
    expect(tcp).not.toContain(`00000000:${port} `)
  })
})

test('a later start finds its keys, its clients and its users, and prints no secret again', async () => {
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

test('RUN-11 the admin client’s secret of the settings is applied at each start', async () => {
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

test('RUN-12 the first admin user of the settings logs in, and no set-up link is printed', async () => {
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

test('RUN-04 a settings file in YAML, by GATEHOUSE_CONFIG; the environment beats it', async () => {
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
  test.each<[string, Record<string, string>, string]>([
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
    ],
    [
      'a missing certificate',
      { GATEHOUSE_TLS_CERT: '/nowhere.pem', GATEHOUSE_TLS_KEY: '/nowhere.key' },
      '/nowhere',
    ],
  ])('%s', async (_, env, said) => {
    const { code, stdout, stderr } = await gatehouse(['serve'], {
      GATEHOUSE_DATA_DIR: folder(),
      GATEHOUSE_PORT: '0',
      ...env,
    })
    expect(code).not.toBe(0)
    expect(stderr).toStartWith('gatehouse: ')
    expect(stderr).toContain(said)
    expect(stderr.trimEnd()).not.toContain('\n')
    expect(stderr).not.toContain('u:secret')
    expect(stdout).not.toContain('"ready"')
  })

  test('RUN-03 a second server on the same data directory, or the same port', async () => {
    await using server = await serveExecutable()
    const port = String(server.port)
    const same = { GATEHOUSE_DATA_DIR: server.data_dir, GATEHOUSE_PORT: '0' }
    const second = await gatehouse(['serve'], same)
    expect(second).toMatchObject({
      code: 75,
      stderr: expect.stringContaining('is in use by another Gatehouse'),
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
      stderr: `gatehouse: ${join(data_dir, 'gatehouse.db')}: can't be written to (EISDIR).\n`,
    })
  })

  test('another master key than the one that sealed the database', async () => {
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

test('RUN-02 a container’s service link is passed over with a warning', async () => {
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

  test('RUN-06 follow the scheme of the public address, not of the socket', async () => {
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
    ['http://id.example.com:8088', '_8088'],
  ])('RUN-10 on plain http carry the port of %s, and a warning is logged', async (url, port) => {
    const { lines, output } = await names(url)
    for (const line of lines) {
      expect(line).toMatch(new RegExp(`^gatehouse_[a-z]+${port}=`))
      expect(line).not.toContain('Secure')
    }
    expect(output).toContain('plain http on a public address')
  })
})

test('RUN-01 TLS with a certificate and key of our own', async () => {
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

  test('RUN-07 is read from the right when the proxy is trusted, from nobody else, and Forwarded never', async () => {
    expect(await seenAs({})).toBe('127.0.0.1')
    expect(await seenAs({ GATEHOUSE_TRUSTED_PROXIES: '10.0.0.0/8' })).toBe('127.0.0.1')
    expect(await seenAs({ GATEHOUSE_TRUSTED_PROXIES: '127.0.0.1' })).toBe('198.51.100.7')
    expect(await seenAs({ GATEHOUSE_TRUSTED_PROXIES: '127.0.0.0/8, 198.51.100.0/24' })).toBe('203.0.113.9')
  })
})

describe('commands beside a running server', () => {
  test('RUN-13 user link: the first admin’s set-up link, and a link for a user; the server honours both at once', async () => {
    await using server = await serveExecutable()
    const env = { GATEHOUSE_DATA_DIR: server.data_dir, GATEHOUSE_URL: server.url }
    const app = remote(server)
    const browser = openBrowser(app)

    const set_up = await gatehouse(['user', 'link'], env)
    expect(set_up.stdout).toStartWith(`${server.url}/account/set-up?token=`)
    const page = await browser.get(set_up.stdout.trim().slice(server.url.length))
    const person = { username: 'root', email: 'root@example.com', first_name: 'R', last_name: 'T' }
    await browser.submit(page, { ...person, password: PASSWORD, password_repeat: PASSWORD })
    expect((await app.admin('GET', '/users')).body.data).toMatchObject([
      { username: 'root', roles: ['admin'] },
    ])

    await addUser(app, 'alice')
    const link = await gatehouse(['user', 'link', 'ALICE@example.com'], env)
    expect(link).toMatchObject({ code: 0, stderr: '' })
    const shown = await browser.get(link.stdout.trim().slice(server.url.length))
    expect(shown.status).toBe(200)
    expect(shown.html).toContain('alice')

    for (const args of [['nobody'], ['alice', '--organization', 'nowhere']]) {
      const unknown = await gatehouse(['user', 'link', ...args], env)
      expect(unknown).toMatchObject({ code: 1, stdout: '', stderr: expect.stringMatching(/^gatehouse: no /) })
    }
    expect(server.output()).not.toContain(link.stdout.trim())
  })

  test('healthcheck answers by its exit code', async () => {
    await using server = await serveExecutable()
    expect((await gatehouse(['healthcheck'], { GATEHOUSE_PORT: String(server.port) })).code).toBe(0)
    await stop(server)
    expect((await gatehouse(['healthcheck'], { GATEHOUSE_PORT: String(server.port) })).code).toBe(1)
  })
})

describe('commands without a server', () => {
  test('those that need an instance make none', async () => {
    const data_dir = join(folder(), 'none')
    for (const args of [
      ['user', 'link'],
      ['user', 'unlock', 'alice'],
      ['check'],
      ['keys', 'list'],
      ['export'],
    ]) {
      const { code, stdout, stderr } = await gatehouse(args, { GATEHOUSE_DATA_DIR: data_dir })
      expect([args, code, stdout, stderr]).toEqual([
        args,
        78,
        '',
        expect.stringContaining(`gatehouse: ${data_dir}: there is no instance here.`),
      ])
    }
    expect(existsSync(data_dir)).toBe(false)
  })

  test('RUN-14 version, help and mistakes', async () => {
    expect(await gatehouse(['version'])).toEqual({ code: 0, stdout: `${VERSION}\n`, stderr: '' })
    const help = await gatehouse(['help'])
    expect(help.code).toBe(0)
    for (const word of ['serve', 'user', 'healthcheck', 'openapi', 'config', 'version', 'GATEHOUSE_DATA_DIR'])
      expect(help.stdout).toContain(word)
    expect((await gatehouse(['serv'])).code).toBe(2)
    expect((await gatehouse(['serve', '--fast'])).code).toBe(2)
  })

  test('openapi prints the very document that the server serves', async () => {
    await using server = await serveExecutable()
    const served = await (await remote(server).call('/api/v1/openapi.json')).json()
    const { stdout } = await gatehouse(['openapi'], { GATEHOUSE_URL: server.url })
    expect(JSON.parse(stdout)).toEqual(served)
  })
})

describe('R-14 SIGTERM', () => {
  /** Stops a server amid its work; gives the ms that passed until it was gone. */
  const stopAmidWork = async (): Promise<number> => {
    const server = await serveExecutable({ GATEHOUSE_LOG_LEVEL: 'warn' })
    const { call } = remote(server)
    const token = await tokenOf(call, SECRET)
    const user = (n: string) => ({
      username: `user-${n}`,
      email: `user-${n}@example.com`,
      first_name: '',
      last_name: '',
      password: PASSWORD,
    })
    // Each hashes a password: some wait in the queue when the signal comes.
    const inFlight = Array.from({ length: 4 }, (_, i) =>
      call('/api/v1/admin/users', {
        method: 'POST',
        headers: { authorization: `Bearer ${token}`, 'content-type': 'application/json' },
        body: JSON.stringify(user(String(i))),
      }),
    )
    // And one that nobody ever finishes.
    const idle = await openSocket(server.port)
    idle.write('GET /healthz HTTP/1.1\r\nHost: x\r\n')
    await Promise.race(inFlight)
    const asked = performance.now()
    server.signal('SIGTERM')
    const answers = await Promise.all(inFlight)
    const made = await Promise.all(answers.map(answer => answer.json() as Promise<Json>))
    expect(made.map(({ username }) => username).sort()).toEqual(inFlight.map((_, i) => `user-${i}`))
    expect(await server.exited).toBe(0)
    const took = performance.now() - asked
    idle.destroy()
    await expect(call('/healthz')).rejects.toThrow()

    await using again = await serveExecutable({}, server.data_dir)
    expect((await remote(again).admin('GET', '/users')).body.pagination.total).toBe(4)
    return took
  }

  test('R-14 under load: what is in flight is answered, and the process is gone with 0 within 2 s', async () => {
    // A second and a half of it is what the last ones are given, and other work takes time, too: once in three will do.
    let took = await stopAmidWork()
    for (let again = 0; again < 2 && took >= 2_000; again++) took = await stopAmidWork()
    expect(took).toBeLessThan(2_000)
  })

  test('R-14 SIGKILL leaves a data directory that the next start opens', async () => {
    const first = await serveExecutable()
    await remote(first).admin('POST', '/organizations', { name: 'Acme', slug: 'acme' })
    first.signal('SIGKILL')
    await first.exited
    await using second = await serveExecutable({}, first.data_dir)
    expect((await remote(second).admin('GET', '/organizations/acme')).status).toBe(200)
  })
})
