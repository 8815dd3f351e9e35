import { afterAll, describe, expect, test } from 'bun:test'
import { existsSync, mkdtempSync, rmSync, symlinkSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join, relative } from 'node:path'
import { createVerifier } from '#src/resource-server/index.ts'
import { startGatehouse } from '#src/testing/index.ts'
import type { Json } from '#test/support/app.ts'
import { closeChromium, openPage, testInChromium } from '#test/support/chromium.ts'
import { startDev } from '#test/support/development.ts'
import { EXECUTABLE, gatehouse } from '#test/support/executable.ts'
import { freePort } from '#test/support/free-port.ts'

const folder = import.meta.dir
const tools = mkdtempSync(join(tmpdir(), 'gatehouse-tools-'))
symlinkSync(EXECUTABLE, join(tools, 'gatehouse'))
const PATH = `${tools}:${process.env.PATH}`
afterAll(async () => {
  rmSync(tools, { recursive: true, force: true })
  await closeChromium()
})

interface Ended {
  code: number
  output: string
}

const run = async (command: string[], env: Record<string, string> = {}): Promise<Ended> => {
  const child = Bun.spawn(command, { cwd: folder, env: { PATH, ...env }, stdout: 'pipe', stderr: 'pipe' })
  const texts = await Promise.all([new Response(child.stdout).text(), new Response(child.stderr).text()])
  return { code: await child.exited, output: texts.join('') }
}

/** Starts a program and waits until it prints `listening on <address>`. */
const listening = async (program: string, env: Record<string, string>) => {
  const child = Bun.spawn(['bun', program], { cwd: folder, env: { PATH, PORT: '0', ...env }, stdout: 'pipe' })
  let output = ''
  for await (const chunk of child.stdout) {
    output += new TextDecoder().decode(chunk)
    if (/listening on \S+\n/.test(output)) break
  }
  const url = (/listening on (\S+?)\/?\n/.exec(output) ?? [])[1] ?? ''
  return {
    url,
    [Symbol.asyncDispose]: async () => {
      child.kill()
      await child.exited
    },
  }
}

test.each(['elysia-api.ts', 'express-api.ts'])(
  '%s is tested end to end with `gatehouse exec` and nothing else',
  async program => {
    const { code, output } = await run(['gatehouse', 'exec', '--', './end-to-end.sh', 'bun', program], {
      PORT: `${freePort()}`,
    })
    expect(output.split('\n').filter(line => line.startsWith('ok '))).toHaveLength(19)
    expect(code).toBe(0)
  },
  60_000,
)

test('the CI job runs, and fails when a check fails', async () => {
  const { code, output } = await run(['./ci-job.sh'], { PORT: `${freePort()}` })
  expect([code, output.match(/^ok alice reads$/gm)]).toEqual([0, ['ok alice reads', 'ok alice reads']])
  const broken = [
    'gatehouse',
    'exec',
    '--',
    './end-to-end.sh',
    'bun',
    '-e',
    'Bun.serve({ port: process.env.PORT, fetch: () => new Response() })',
  ]
  const failed = await run(broken, { PORT: `${freePort()}` })
  expect([failed.code, failed.output]).toEqual([
    1,
    expect.stringContaining('no token: expected 401, found 200'),
  ])
}, 60_000)

test.each([
  ['README.md', /\| a service that calls an API \| `([^`]+)` \|/],
  ['service-to-service.ts', /`(gatehouse exec [^`]+)`/],
])(
  'the command of %s for a service that calls an API runs',
  async (file, row) => {
    const [, command = ''] = row.exec(await Bun.file(join(folder, file)).text()) ?? []
    const { code, output } = await run(['sh', '-c', command], { PORT: `${freePort()}` })
    expect([code, output]).toEqual([0, expect.stringContaining('there are now 2')])
  },
  60_000,
)

test.each(['service-to-service.sh', 'end-to-end.sh'])('%s ends when the API does not start', async script => {
  const env = { PORT: `${freePort()}` }
  const ended = { code: 1, output: 'the API has ended\n' }
  expect(await run(['sh', script, 'false'], env)).toEqual(ended)
  expect(await run(['bash', script, 'false'], env)).toEqual(ended)
})

test('a service that an API refuses ends with an error', async () => {
  await using server = await startGatehouse()
  const env = { SERVICE_URL: server.url, SERVICE_CLIENT_ID: server.client_id }
  await using api = await listening('elysia-api.ts', env)
  const command = ['gatehouse', 'exec', '--', 'bun', 'service-to-service.ts']
  expect(await run(command, { ORDERS_URL: api.url })).toEqual({
    code: 1,
    output: expect.stringContaining(`${api.url} answered 401`),
  })
}, 30_000)

test('a service calls another with client credentials', async () => {
  await using server = await startGatehouse()
  const env = {
    SERVICE_URL: server.url,
    SERVICE_CLIENT_ID: server.client_id,
    SERVICE_CLIENT_SECRET: server.client_secret ?? '',
  }
  await using api = await listening('elysia-api.ts', env)
  const { code, output } = await run(['bun', 'service-to-service.ts'], { ...env, ORDERS_URL: api.url })
  expect([code, output]).toEqual([0, expect.stringContaining('there are now 2')])
  const asked = await server.requests({ path: '/oauth/token' })
  expect(asked).toHaveLength(1)
})

testInChromium(
  'a browser application does the code flow; the user is picked by a data-testid',
  async () => {
    const port = `${freePort()}`
    await using server = await startGatehouse({
      seed: {
        users: [{ username: 'alice', email: 'alice@example.com', first_name: 'Alice', last_name: 'Example' }],
        clients: [
          {
            client_id: 'browser-app',
            type: 'public',
            grant_types: ['authorization_code'],
            scopes: ['openid', 'profile', 'email'],
            redirect_uris: [`http://localhost:${port}/callback`],
            web_origins: [`http://localhost:${port}`],
            consent_required: false,
          },
        ],
      },
    })
    await using app = await listening('browser-app/serve.ts', {
      PORT: port,
      SERVICE_URL: server.url,
      BROWSER_CLIENT_ID: 'browser-app',
    })
    const { page, close } = await openPage()
    await page.goto(app.url)
    await page.click('#sign-in')
    await page.getByTestId('user-alice').click()
    await page.waitForSelector('#user:has-text("Hello Alice Example")')
    expect((await server.tokens({ client_id: 'browser-app' })).map(({ kind }) => kind)).toEqual([
      'access_token',
      'id_token',
    ])
    await close()
  },
  60_000,
)

describe('files for other programs', () => {
  const read = async (name: string): Promise<Json> =>
    Bun.YAML.parse(await Bun.file(join(folder, name)).text())

  test('each step of the GitHub Actions workflow exists, and its test runs unchanged', async () => {
    const workflow = await read('github-actions.yml')
    const steps: Json[] = workflow.jobs.test.steps
    for (const { uses, run: script } of steps) {
      expect([uses, script].filter(Boolean)).toHaveLength(1)
      if (uses?.startsWith('./')) expect(existsSync(join(folder, '../..', uses, 'action.yml'))).toBe(true)
      else if (uses) expect(uses).toMatch(/^[\w-]+\/[\w-]+@v\d+$/)
      if (script) expect((await run(['sh', '-n', '-c', script])).code).toBe(0)
    }
    // The step uses the variables of the server that the action starts. test/examples/ci.test.ts runs the
    // action.
    const command = ['gatehouse', 'exec', '--', 'sh', '-c', steps.at(-1)?.run]
    expect((await run(command, { PORT: `${freePort()}` })).code).toBe(0)
  }, 60_000)

  test('the compose file: its server starts with these arguments, is healthy, and its tokens are valid where its API checks them', async () => {
    const { services } = await read('docker-compose.yml')
    const { working_dir, volumes, command } = services.api
    const [mounted = '', at = ''] = volumes[0].split(':')
    // The container sees the mounted folder only.
    const root = join(folder, mounted)
    const script = join(root, working_dir.replace(at, ''), command.split(' ')[1])
    expect(existsSync(script)).toBe(true)
    const { imports } = new Bun.Transpiler({ loader: 'ts' }).scan(await Bun.file(script).text())
    const outside = imports
      .map(({ path }) => relative(root, Bun.resolveSync(path, dirname(script))))
      .filter(path => path.startsWith('..'))
    expect([imports.length, outside]).toEqual([3, []])
    const [, , , ...args] = services.gatehouse.command.split(' ')
    await using server = await startDev(args)
    const { local_url, control_token } = server.ready
    const [, program, ...check] = services.gatehouse.healthcheck.test
    const health = check.map((word: string) => word.replace('http://127.0.0.1:8080', local_url))
    expect([program, (await gatehouse(health)).code]).toEqual(['gatehouse', 0])
    const { SERVICE_URL, SERVICE_CLIENT_ID, SERVICE_JWKS_URI } = services.api.environment
    const { host } = new URL(SERVICE_JWKS_URI)
    const asked = await fetch(`${local_url}/.well-known/openid-configuration`, { headers: { host } })
    const discovery: Json = await asked.json()
    expect([discovery.issuer, discovery.jwks_uri]).toEqual([SERVICE_URL, SERVICE_JWKS_URI])
    const minted = await fetch(`${local_url}/dev/mint`, {
      method: 'POST',
      headers: { authorization: `Bearer ${control_token}`, 'content-type': 'application/json' },
      body: '{"user":"alice"}',
    })
    const verifier = createVerifier({
      issuer: SERVICE_URL,
      audience: SERVICE_CLIENT_ID,
      jwksUri: SERVICE_JWKS_URI,
      // The server may still generate its RSA key, which takes seconds on a busy machine.
      jwksTimeout: 60,
      fetch: (input, init) => fetch(String(input).replace('http://gatehouse:8080', local_url), init),
    })
    expect((await verifier.verify(((await minted.json()) as Json).token)).name).toBe('Alice Example')
  })
})
