import { afterAll, describe, expect, setDefaultTimeout, test } from 'bun:test'
import { existsSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { VERSION } from '#src/lib/version.ts'
import { tokenOf } from '#test/support/admin-calls.ts'
import type { Json } from '#test/support/app.ts'
import { openBrowser } from '#test/support/browser.ts'
import { gatehouse, SECRET, serveExecutable, stop } from '#test/support/executable.ts'
import { addUser, PASSWORD } from '#test/support/people.ts'
import { remote } from '#test/support/remote.ts'
import { openSocket } from '#test/support/socket.ts'
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

describe('commands beside a running server', () => {
  test('RUN-13 user link makes the first administrator’s set-up link and a user’s link; the server accepts both at once', async () => {
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

    for (const [args, message] of [
      [['nobody'], /^gatehouse: the organization "default" has no such user/],
      [['alice', '--organization', 'nowhere'], /^gatehouse: no /],
    ] as const) {
      const unknown = await gatehouse(['user', 'link', ...args], env)
      expect(unknown).toMatchObject({ code: 1, stdout: '', stderr: expect.stringMatching(message) })
    }
    expect(server.output()).not.toContain(link.stdout.trim())
  })

  test('healthcheck reports by its exit code', async () => {
    await using server = await serveExecutable()
    const own = { GATEHOUSE_DATA_DIR: server.data_dir }
    for (const port of ['0', String(server.port)])
      expect((await gatehouse(['healthcheck'], { ...own, GATEHOUSE_PORT: port })).code).toBe(0)
    await stop(server)
    expect((await gatehouse(['healthcheck'], { GATEHOUSE_PORT: String(server.port) })).code).toBe(1)
  })
})

test('exec leaves the value of no_proxy that excludes all hosts to its command', async () => {
  const command = ['exec', '--', 'sh', '-c', 'echo "$no_proxy"']
  const shown = async (no_proxy: string) => (await gatehouse(command, { no_proxy })).stdout.trim()
  expect(await shown('*')).toBe('*')
  expect(await shown('id.example.com')).toBe('id.example.com,localhost,127.0.0.1,[::1]')
})

test('a proxy of the environment gets no request to this machine', async () => {
  const asked: string[] = []
  using proxy = Bun.serve({ port: 0, fetch: ({ url }) => Response.json({ asked: asked.push(url) }) })
  await using server = await serveExecutable()
  const env = { HTTP_PROXY: proxy.url.href, NO_PROXY: 'id.example.com', GATEHOUSE_DATA_DIR: server.data_dir }
  expect(await gatehouse(['healthcheck'], env)).toMatchObject({ code: 0 })
  expect((await gatehouse(['doctor'], env)).stdout).toContain(`ok    address   ${server.url} answers`)
  await stop(server)
  expect(await gatehouse(['healthcheck'], { ...env, no_proxy: 'id.example.com' })).toMatchObject({ code: 1 })
  expect(asked).toEqual([])
})

test('a proxy of the environment gets no request to another address of this machine, and no metrics token', async () => {
  const asked: string[] = []
  using proxy = Bun.serve({ port: 0, fetch: ({ url }) => Response.json({ asked: asked.push(url) }) })
  const env = {
    HTTP_PROXY: proxy.url.href,
    GATEHOUSE_URL: 'https://id.example.test',
    GATEHOUSE_HOST: '127.0.0.2',
    GATEHOUSE_TRUSTED_PROXIES: '127.0.0.0/8',
    GATEHOUSE_METRICS_TOKEN: 'scrape-me-secret',
  }
  await using server = await serveExecutable(env)
  const own = { ...env, GATEHOUSE_DATA_DIR: server.data_dir }
  expect(await gatehouse(['healthcheck'], own)).toMatchObject({ code: 0 })
  expect((await gatehouse(['doctor'], own)).stdout).toMatch(/^ok {4}loop /m)
  expect(asked).toEqual([])
})

test('healthcheck asks for /readyz, whether or not the url ends with a slash', async () => {
  await using server = Bun.serve({ port: 0, fetch: () => new Response(null, { status: 503 }) })
  const origin = `http://localhost:${server.port}`
  for (const url of [origin, `${origin}/`])
    expect(await gatehouse(['healthcheck', '--url', url])).toEqual({
      code: 1,
      stdout: '',
      stderr: `gatehouse: not ready: ${origin}/readyz answered 503\n`,
    })
})

describe('commands without a server', () => {
  test('commands that need an instance create none', async () => {
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

  test('RUN-14 version, help and usage errors', async () => {
    expect(await gatehouse(['version'])).toEqual({
      code: 0,
      stdout: expect.stringMatching(new RegExp(`^${VERSION} \\([0-9a-f]{12}, Bun ${Bun.version}\\)\n$`)),
      stderr: '',
    })
    const help = await gatehouse(['help'])
    expect(help.code).toBe(0)
    for (const word of ['serve', 'user', 'healthcheck', 'openapi', 'config', 'version', 'GATEHOUSE_DATA_DIR'])
      expect(help.stdout).toContain(word)
    expect((await gatehouse(['serv'])).code).toBe(2)
    expect((await gatehouse(['serve', '--fast'])).code).toBe(2)
  })

  test('openapi prints the document that the server serves', async () => {
    await using server = await serveExecutable()
    const served = await (await remote(server).call('/api/v1/openapi.json')).json()
    const { stdout } = await gatehouse(['openapi'], { GATEHOUSE_URL: server.url })
    expect(JSON.parse(stdout)).toEqual(served)
  })
})

describe('R-14 SIGTERM', () => {
  /**
   * Stops a server while it works. Returns the milliseconds until the process ended. The server waits up to
   * 1.5 s for requests in flight. Returns Infinity if a busy machine needed longer for them.
   */
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
    // Each request hashes a password. Some requests are still in the queue when the signal comes.
    const inFlight = Array.from({ length: 4 }, (_, i) =>
      call('/api/v1/admin/users', {
        method: 'POST',
        headers: { authorization: `Bearer ${token}`, 'content-type': 'application/json' },
        body: JSON.stringify(user(String(i))),
      }),
    )
    // Opens one request that never ends.
    const idle = await openSocket(server.port)
    idle.write('GET /healthz HTTP/1.1\r\nHost: x\r\n')
    await Promise.race(inFlight)
    const asked = performance.now()
    server.signal('SIGTERM')
    const outcomes = await Promise.allSettled(inFlight)
    if (performance.now() - asked > 1_500) {
      idle.destroy()
      await server.exited
      return Number.POSITIVE_INFINITY
    }
    const answers = outcomes.map(outcome => {
      if (outcome.status === 'rejected') throw outcome.reason
      return outcome.value
    })
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

  test('R-14 under load: requests in flight are answered, and the process exits with 0 within 2 s', async () => {
    // After 1.5 s the server has 0.5 s until the limit. A busy machine can take longer, so only one attempt
    // has to succeed. A server that always takes longer meets the timeout.
    while ((await stopAmidWork()) >= 2_000);
  })

  test('R-14 a second signal, as systemd and a supervisor send it to a worker, cuts no request off', async () => {
    await using server = await serveExecutable()
    const socket = await openSocket(server.port)
    let answer = ''
    const closed = new Promise(resolve => socket.on('close', resolve))
    socket.on('data', chunk => {
      answer += chunk
    })
    const body = 'grant_type=client_credentials'
    const head = [
      'POST /oauth/token HTTP/1.1',
      'Host: x',
      'Connection: close',
      'Content-Type: application/x-www-form-urlencoded',
      `Content-Length: ${body.length}`,
      'Expect: 100-continue',
    ]
    socket.write(`${head.join('\r\n')}\r\n\r\n`)
    await until(() => answer.includes('100 Continue'))
    server.signal('SIGTERM')
    await until(() =>
      openSocket(server.port).then(
        other => {
          other.destroy()
          return false
        },
        () => true,
      ),
    )
    server.signal('SIGTERM')
    socket.write(body)
    await closed
    expect(answer).toContain('HTTP/1.1 400 Bad Request')
    expect(await server.exited).toBe(0)
    expect(server.output()).toContain('"event":"stopped"')
  })

  test('R-14 after SIGKILL the next start opens the data directory', async () => {
    const first = await serveExecutable()
    await remote(first).admin('POST', '/organizations', { name: 'Acme', slug: 'acme' })
    first.signal('SIGKILL')
    await first.exited
    await using second = await serveExecutable({}, first.data_dir)
    expect((await remote(second).admin('GET', '/organizations/acme')).status).toBe(200)
  })
})
