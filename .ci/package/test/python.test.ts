/** The wheel and its pytest fixture. */
import { beforeAll, expect, test } from 'bun:test'
import { mkdirSync, readdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { $ } from 'bun'
import { developAndLogIn, logIn, place, run, start, sums, wheel, withReadOnly } from './support.ts'

const pip = (at: string, ...options: string[]) => [
  ...[`${at}/bin/pip`, 'install', '--no-index', '--no-deps', '--disable-pip-version-check'],
  ...options,
]
const install = (at: string, ...options: string[]) => run(pip(at, ...options))

let at: string
beforeAll(async () => {
  at = place()
  await $`python3 -m venv --system-site-packages ${at}`.quiet()
}, 300_000)

test('pip installs the wheel without an index, and a person signs in', async () => {
  expect(await install(at, wheel('manylinux_2_17_x86_64'))).toMatchObject({ code: 0 })
  expect(await developAndLogIn(join(at, 'bin/gatehouse'))).toBe('alice')

  // A running server continues to work while its package is upgraded.
  const server = await start([join(at, 'bin/gatehouse'), 'dev', '--port', '0'])
  expect(await install(at, '--force-reinstall', wheel('manylinux_2_17_x86_64'))).toMatchObject({ code: 0 })
  expect(await logIn(server.url)).toBe('alice')
  await server.stop()
})

test('the fixture gives a running server and tokens', async () => {
  const text =
    'def test_token(gatehouse):\n    assert gatehouse.token(user="alice", scope="openid").count(".") == 2\n'
  writeFileSync(join(at, 'test_token.py'), text)
  expect(await run([`${at}/bin/python`, '-m', 'pytest', '-q', 'test_token.py'], { cwd: at })).toMatchObject({
    code: 0,
  })
})

test('a server of `start` applies a seed and serves https, and stops when its parent process is killed', async () => {
  const TMPDIR = join(at, 'killed')
  mkdirSync(TMPDIR)
  const client =
    '{ client_id: web, type: public, grant_types: [authorization_code], redirect_uris: [http://localhost], scopes: [] }'
  writeFileSync(
    join(at, 'seed.yaml'),
    `# no secret\nusers:\n- { username: zoe, email: zoe@example.com }\nclients:\n- ${client}\n`,
  )
  const text = [
    'import os, signal, subprocess, gatehouse_pytest',
    'server = gatehouse_pytest.start("--tls", seed="seed.yaml")',
    'print(server.token(user="zoe").count("."), os.listdir(os.environ["TMPDIR"]) != [], flush=True)',
    'subprocess.run(["sh", "-c", "echo :$SERVICE_CLIENT_SECRET:"], env={**os.environ, **server.environment})',
    'os.kill(os.getpid(), signal.SIGKILL)',
  ]
  writeFileSync(join(at, 'killed.py'), text.join('\n'))
  const env = {
    TMPDIR,
    SERVICE_EXECUTABLE: join(at, 'bin/gatehouse'),
    SERVICE_CLIENT_SECRET: 'of another client',
    PATH: process.env.PATH,
  }
  const killed = Bun.spawn([`${at}/bin/python`, 'killed.py'], { cwd: at, env, stdout: 'pipe' })
  expect(await new Response(killed.stdout).text()).toBe('2 True\n::\n')
  while (readdirSync(TMPDIR).length > 0) await Bun.sleep(5)
})

test('a token comes from this machine, past a proxy, and a refusal says why', async () => {
  const text = [
    'import gatehouse_pytest',
    'server = gatehouse_pytest.start("--url", "http://gatehouse.invalid:8080", "--public-issuer")',
    'print(server.url, server.token(user="alice").count("."))',
    'try: server.token(user="alice", expires_in="1h")',
    'except RuntimeError as error: print(error)',
    'server.stop()',
  ]
  writeFileSync(join(at, 'direct.py'), text.join('\n'))
  const env = { SERVICE_EXECUTABLE: join(at, 'bin/gatehouse'), HTTP_PROXY: 'http://127.0.0.1:1' }
  expect(await run([`${at}/bin/python`, 'direct.py'], { cwd: at, env })).toMatchObject({
    stdout:
      'http://gatehouse.invalid:8080 2\ngatehouse refused the token (422): The body is not valid. expires_in: A whole number from 1 to 31536000.\n',
  })
})

test('pip refuses the wheel of another platform in one line and installs nothing', async () => {
  const clean = place()
  await $`python3 -m venv ${clean}`.quiet()
  const { code, stderr } = await install(clean, wheel('manylinux_2_17_aarch64'))
  expect([code, stderr]).toEqual([
    1,
    expect.stringMatching(/^ERROR: \S+ is not a supported wheel on this platform\.\n$/),
  ])
  expect(await Bun.file(`${clean}/bin/gatehouse`).exists()).toBe(false)
})

test('pip reports a read-only prefix in one line and installs nothing', async () => {
  const clean = place()
  await $`python3 -m venv ${clean}`.quiet()
  const before = sums(clean)
  const { code, stderr } = await run([...withReadOnly(clean), ...pip(clean, wheel('manylinux_2_17_x86_64'))])
  expect([code, stderr]).toEqual([1, expect.stringMatching(/^ERROR: [^\n]*Read-only file system[^\n]*\n+$/)])
  expect(sums(clean)).toEqual(before)
})
