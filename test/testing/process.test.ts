import { beforeAll, expect, test } from 'bun:test'
import { mkdir, mkdtemp, readdir, rm, symlink } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { fileURLToPath } from 'node:url'
import { startGatehouse } from '#src/testing/index.ts'
import { until } from '#test/support/until.ts'
import { checkControls, checkTls } from './cases.ts'

const root = fileURLToPath(new URL('../..', import.meta.url))
const folder = `${root}dist/testing-contract`

const run = async (command: string[], env: Record<string, string> = {}): Promise<string> => {
  const child = Bun.spawn(command, {
    cwd: root,
    env: { ...process.env, ...env },
    stdout: 'pipe',
    stderr: 'pipe',
  })
  const [out, err] = await Promise.all([new Response(child.stdout).text(), new Response(child.stderr).text()])
  if ((await child.exited) !== 0) throw new Error(`${command.join(' ')}\n${out}\n${err}`)
  return out
}

/** Packs the package and installs it, as a link, in the folder of a program that uses it. */
beforeAll(async () => {
  await run(['bun', 'run', 'build:testing'])
  await rm(folder, { recursive: true, force: true })
  await mkdir(`${folder}/node_modules/@gatehouse`, { recursive: true })
  await symlink(`${root}dist/testing`, `${folder}/node_modules/@gatehouse/testing`)
  await Bun.write(`${folder}/package.json`, '{ "type": "module" }')
  const built = await Bun.build({
    entrypoints: [`${import.meta.dir}/runner.ts`],
    outdir: folder,
    target: 'node',
    packages: 'external',
  })
  expect(built.success).toBe(true)
}, 60_000)

const deno = [`${root}node_modules/.bin/deno`, 'run', '--node-modules-dir=manual', '--no-lock', '-A']

test.each([
  ['Node', ['node']],
  ['Deno', deno],
  ['Bun', ['bun']],
])(
  'the packed testing package starts the executable and makes every call under %s',
  async (_, command) => {
    const program = [`${folder}/runner.js`, '@gatehouse/testing/process', `${root}dist/gatehouse`]
    expect((await run([...command, ...program])).trim()).toBe('ok')
  },
  60_000,
)

test('the packed testing package runs the server in the process under Bun', async () => {
  expect((await run(['bun', `${folder}/runner.js`, '@gatehouse/testing'])).trim()).toBe('ok')
})

test.each([
  ['Node', ['node'], '/process'],
  ['Deno', deno, '/process'],
  ['Bun', ['bun'], '/process'],
  ['Bun, in the process', ['bun'], ''],
])(
  'the proxy of HTTP_PROXY gets no control token, under %s',
  async (_, command, entry) => {
    const received: string[] = []
    using proxy = Bun.serve({
      port: 0,
      fetch: ({ method, url }) => {
        received.push(`${method} ${url}`)
        return new Response(null, { status: 502 })
      },
    })
    await Bun.write(
      `${folder}/proxied.js`,
      `const { startGatehouse } = await import('@gatehouse/testing' + process.argv[3])
      for (const tls of [false, true]) {
        const server = await startGatehouse({ executable: process.argv[2], tls })
        console.log((await server.mint({ user: 'alice' })).claims.preferred_username)
        await server.close()
      }`,
    )
    const env = {
      ...{ HTTP_PROXY: proxy.url.href, HTTPS_PROXY: proxy.url.href, NODE_USE_ENV_PROXY: '1' },
      DENO_NO_UPDATE_CHECK: '1',
    }
    const program = [`${folder}/proxied.js`, `${root}dist/gatehouse`, entry]
    expect(await run([...command, ...program], env)).toBe('alice\nalice\n')
    expect(received).toEqual([])
  },
  60_000,
)

test('the same calls in this process', async () => {
  await checkControls(options => startGatehouse(options))
  await checkTls(options => startGatehouse(options))
})

test.each([
  ['Node', ['node'], []],
  ['Node, with https', ['node'], ['--tls']],
  ['Deno', deno, []],
  ['Bun', ['bun'], []],
  ['Bun, with https', ['bun'], ['--tls']],
])(
  'test processes share the server of `gatehouse exec` with `connectGatehouse`, under %s',
  async (_, command, options) => {
    await Bun.write(
      `${folder}/worker.js`,
      `import { connectGatehouse } from '@gatehouse/testing/process'
      const { mint, users } = connectGatehouse()
      await users.put({ username: process.argv[2], email: process.argv[2] + '@example.com' })
      const { claims } = await mint({ user: process.argv[2] })
      console.log(claims.iss === process.env.SERVICE_URL, (await users.list()).length)`,
    )
    const worker = [...command, `${folder}/worker.js`].join(' ')
    const program = ['exec', ...options, '--', 'sh', '-c', `${worker} one; ${worker} two`]
    expect(await run([`${root}dist/gatehouse`, ...program])).toBe('true 3\ntrue 4\n')
  },
  60_000,
)

test('`connectGatehouse` names the variables that are missing outside of `gatehouse exec`', async () => {
  const { connectGatehouse } = await import('#src/testing/index.ts')
  expect(() => connectGatehouse()).toThrow('SERVICE_URL or SERVICE_DEV_TOKEN is not set')
})

test('a control that reaches no server names its URL and the reason', async () => {
  await Bun.write(
    `${folder}/lost.js`,
    `import dns from 'node:dns'
    import { connectGatehouse } from '@gatehouse/testing/process'
    // With two addresses of localhost, as most machines have, Node's error has no message.
    dns.lookup = (_name, _options, found) =>
      found(null, [{ address: '127.0.0.1', family: 4 }, { address: '::1', family: 6 }])
    await connectGatehouse({ url: 'http://localhost:1', control_token: 'x' }).mint().catch(error => console.log(error.message))`,
  )
  expect(await run(['node', `${folder}/lost.js`])).toMatch(
    /^POST http:\/\/localhost:1\/dev\/mint: .*ECONNREFUSED/,
  )
})

test('the caller gets the reason why the server does not start', async () => {
  const { startGatehouse } = await import('#src/testing/process.ts')
  const started = startGatehouse({
    executable: `${root}dist/gatehouse`,
    seed: { users: [{ username: 'x', email: 'y' }] },
  })
  await expect(started).rejects.toThrow(/users\[0\]\.username: 3 to 128 letters/)
})

test('an issuer with another host needs the option public_issuer', async () => {
  const { startGatehouse: startProcess } = await import('#src/testing/process.ts')
  const executable = `${root}dist/gatehouse`
  const url = 'http://gatehouse.test:8080'
  for (const start of [startGatehouse, startProcess]) {
    await expect(start({ executable, url })).rejects.toThrow('Set public_issuer (--public-issuer) if')
    await using server = await start({ executable, url, public_issuer: true })
    expect((await server.mint({ user: 'alice' })).claims.iss).toBe(url)
  }
})

test('a program that does not exist is named, with the options that choose another', async () => {
  const { startGatehouse } = await import('#src/testing/process.ts')
  await expect(startGatehouse({ executable: 'no-such-gatehouse' })).rejects.toThrow(
    'The program no-such-gatehouse was not found: put it on the PATH, or set the option executable or engine.',
  )
})

test.each([
  ['Node', ['node']],
  ['Deno', deno],
  ['Bun', ['bun']],
])(
  'a process that forgets `close` ends, and its server stops, under %s',
  async (_, command) => {
    const TMPDIR = await mkdtemp(`${tmpdir()}/gatehouse-test-`)
    await Bun.write(
      `${folder}/forgetful.js`,
      `import { startGatehouse } from '@gatehouse/testing/process'
      const { users } = await startGatehouse({ executable: process.argv[2] })
      console.log((await users.list()).length)`,
    )
    const program = [`${folder}/forgetful.js`, `${root}dist/gatehouse`]
    expect((await run([...command, ...program], { TMPDIR })).trim()).toBe('2')
    await until(async () => !(await readdir(TMPDIR)).some(name => name.startsWith('gatehouse-dev-')))
    await rm(TMPDIR, { recursive: true })
  },
  60_000,
)

test.each([
  ['Node', ['node']],
  ['Deno', deno],
  ['Bun', ['bun']],
])(
  'a server stops and deletes its store when the process that started it is killed, under %s',
  async (_, command) => {
    const TMPDIR = await mkdtemp(`${tmpdir()}/gatehouse-test-`)
    await Bun.write(
      `${folder}/killed.js`,
      `import { startGatehouse } from '@gatehouse/testing/process'
      const seed = { users: [{ username: 'carol', email: 'carol@example.com' }] }
      const { url, users } = await startGatehouse({ executable: process.argv[2], seed })
      setInterval(() => {}, 60_000) // runs until it is killed
      console.log(process.pid, url, (await users.list()).map(user => user.username).join())`,
    )
    const child = Bun.spawn([...command, `${folder}/killed.js`, `${root}dist/gatehouse`], {
      cwd: folder,
      env: { ...process.env, TMPDIR },
      stdout: 'pipe',
    })
    const { value } = await child.stdout.getReader().read()
    const [pid, url = '', users] = new TextDecoder().decode(value).trim().split(' ')
    expect(users).toBe('carol')
    expect((await readdir(TMPDIR)).filter(name => name.startsWith('gatehouse-dev-'))).toHaveLength(1)
    // The command `deno` starts Deno in another process, so the test kills the process that printed its id.
    process.kill(Number(pid), 'SIGKILL')
    await child.exited
    await until(async () => !(await readdir(TMPDIR)).some(name => name.startsWith('gatehouse-dev-')))
    await expect(fetch(url)).rejects.toThrow()
    await rm(TMPDIR, { recursive: true })
  },
  60_000,
)
