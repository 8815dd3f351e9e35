/** The npm packages: launcher, platform package, SDK, testing package. */
import { beforeAll, expect, test } from 'bun:test'
import { existsSync, readdirSync, writeFileSync } from 'node:fs'
import { rm } from 'node:fs/promises'
import { join } from 'node:path'
import { $ } from 'bun'
import { version } from '../../../package.json'
import { names } from '../names.ts'
import {
  built,
  developAndLogIn,
  executable,
  logIn,
  place,
  ROOT,
  run,
  start,
  withReadOnly,
} from './support.ts'

const packed = (name: string) => built(`${name.replace('@', '').replace('/', '-')}-${version}.tgz`)
const launcher = packed(names.npm)
const platform = (target: string) => packed(`${names.npm}-${target}`)
const libraries = ['@gatehouse/resource-server', '@gatehouse/testing'].map(packed)
const npm = (...packages: string[]) => [
  ...['npm', 'install', '--offline', '--ignore-scripts', '--no-audit', '--no-fund', '--omit=optional'],
  ...packages,
]
const install = (cwd: string, ...packages: string[]) => run(npm(...packages), { cwd, env: { HOME: cwd } })

let at: string
beforeAll(async () => {
  at = place()
  expect(await install(at, launcher, platform('linux-x64'))).toMatchObject({ code: 0 })
}, 300_000)
const command = () => join(at, 'node_modules/.bin/gatehouse')

test('npm installs launcher and executable without scripts or a registry, and a person signs in', async () => {
  expect(await developAndLogIn(command())).toBe('alice')
})

test('the launcher passes signals and the exit code on', async () => {
  expect((await run([command(), 'serve', '--nonsense'])).code).toBe(2)
  expect((await run([command(), 'exec', '--', 'sh', '-c', 'exit 7'])).code).toBe(7)
})

test('npm refuses the package of another platform and installs nothing', async () => {
  const clean = place()
  const { code, stderr } = await install(clean, platform('linux-arm64'))
  expect([code, stderr]).toEqual([1, expect.stringContaining('EBADPLATFORM')])
  expect(existsSync(join(clean, 'node_modules'))).toBe(false)
})

test('npm names a read-only prefix and installs nothing', async () => {
  const clean = place()
  const { code, stderr } = await run([...withReadOnly(clean), ...npm(launcher, platform('linux-x64'))], {
    cwd: clean,
    env: { HOME: place() },
  })
  expect(code).not.toBe(0)
  expect(stderr).toContain(`npm error path ${clean}/node_modules\n`)
  expect(readdirSync(clean)).toEqual([])
})

test('a running server outlives an upgrade by npm', async () => {
  const next = place()
  await $`tar -xzf ${platform('linux-x64')} -C ${next}`
  const manifest = await Bun.file(join(next, 'package/package.json')).json()
  await Bun.write(join(next, 'package/package.json'), JSON.stringify({ ...manifest, version: '999.0.0' }))
  await $`tar -czf ${next}/next.tgz -C ${next} package`
  const server = await start([command(), 'dev', '--port', '0'])
  expect(await install(at, `${next}/next.tgz`)).toMatchObject({ code: 0 })
  const installed = Bun.file(join(at, `node_modules/${manifest.name}/package.json`))
  expect(await installed.json()).toMatchObject({ version: '999.0.0' })
  expect(await logIn(server.url)).toBe('alice')
  await server.stop()
})

test('a platform without a package, or a package that was left out, gives one line that says what to do', async () => {
  const entry = join(at, `node_modules/${names.npm}/gatehouse.js`)
  const pretend = `data:text/javascript,Object.defineProperty(process,'arch',{value:'s390x'})`
  const foreign = await run(['node', '--import', pretend, entry, '--version'])
  expect([foreign.code, foreign.stderr]).toEqual([
    1,
    expect.stringMatching(/^gatehouse: [^\n]*linux-s390x[^\n]*linux \(x64, arm64[^\n]*\n$/),
  ])

  const clean = place()
  expect(await install(clean, launcher)).toMatchObject({ code: 0 })
  const lost = await run([join(clean, 'node_modules/.bin/gatehouse'), '--version'])
  expect([lost.code, lost.stderr]).toEqual([
    1,
    expect.stringMatching(
      /^gatehouse: the package @gatehouse\/server-linux-x64 is not installed\.[^\n]*--omit=optional[^\n]*\n$/,
    ),
  ])
  await rm(clean, { recursive: true })
})

test('publint finds nothing', async () => {
  for (const file of [launcher, platform('linux-x64'), ...libraries]) {
    const { code, stdout, stderr } = await run([
      join(ROOT, 'node_modules/.bin/publint'),
      'run',
      '--strict',
      file,
    ])
    expect([file, code, stdout, stderr]).toEqual([file, 0, expect.stringContaining('All good'), ''])
  }
})

test('attw finds no problem: the types resolve for each importer of ES modules', async () => {
  for (const file of libraries) {
    expect(await run([join(ROOT, 'node_modules/.bin/attw'), '--profile', 'esm-only', file])).toMatchObject({
      code: 0,
    })
  }
})

/** Makes a folder with the SDK and the testing package. jose is the only dependency of the two. */
const placeWithLibraries = async (): Promise<string> => {
  const clean = place()
  await $`npm pack --silent --pack-destination ${clean} ${join(ROOT, 'node_modules/jose')}`.quiet()
  const [jose = ''] = await Array.fromAsync(new Bun.Glob('jose-*.tgz').scan({ cwd: clean, absolute: true }))
  expect(await install(clean, '--legacy-peer-deps', jose, ...libraries)).toMatchObject({ code: 0 })
  return clean
}

test('the types of the libraries need no global types but those of Node', async () => {
  const clean = await placeWithLibraries()
  const sdk = '@gatehouse/resource-server'
  const entries = [
    '@gatehouse/testing',
    sdk,
    ...['client', 'logout', 'mcp', 'testing'].map(name => `${sdk}/${name}`),
  ]
  writeFileSync(join(clean, 'use.mts'), entries.map(name => `import '${name}'\n`).join(''))
  const options = ['--noEmit', '--strict', '--module', 'node16', '--lib', 'es2023', '--types', 'node']
  const modules = join(ROOT, 'node_modules')
  const command = [`${modules}/.bin/tsc`, ...options, '--typeRoots', `${modules}/@types`, 'use.mts']
  expect(await run(command, { cwd: clean })).toMatchObject({ code: 0, stdout: '' })
})

test('the testing package starts the executable under Node, and the SDK accepts its tokens', async () => {
  const clean = await placeWithLibraries()
  writeFileSync(
    join(clean, 'use.mjs'),
    `import { startGatehouse } from '@gatehouse/testing'
import { createVerifier } from '@gatehouse/resource-server'
const server = await startGatehouse({ executable: process.argv[2] })
const { token } = await server.mint({ user: 'alice', scope: 'openid' })
const verifier = createVerifier({ issuer: server.url, audience: server.client_id })
const { claims } = await verifier.guard(new Request('http://api', { headers: { authorization: \`Bearer \${token}\` } }))
console.log(claims.name)
await server.close()
`,
  )
  const { code, stdout, stderr } = await run(['node', 'use.mjs', await executable()], { cwd: clean })
  expect([code, stderr]).toEqual([0, ''])
  expect(stdout).toBe('Alice Example\n')
})
