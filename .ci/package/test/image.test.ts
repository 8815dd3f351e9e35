/** The container image: unpacked into a separate root, and run by podman. */
import { afterAll, expect, test } from 'bun:test'
import { copyFileSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { $ } from 'bun'
import { startGatehouse } from '#src/testing/process.ts'
import type { Json } from '#test/support/app.ts'
import { version } from '../../../package.json'
import { built, developAndLogIn, inRoot, logIn, place, run, wheel } from './support.ts'

const tag = `gatehouse:${version}`
afterAll(() => run(['podman', 'rmi', '--force', tag, 'gatehouse:latest']))

/** Unpacks the image and its layers. */
const unpacked = async (architecture: string): Promise<{ root: string; config: Json }> => {
  const [at, root] = [place(), place()]
  await $`tar -xf ${built(`gatehouse-${version}-image-${architecture}.tar`)}`.cwd(at)
  const [{ Layers, Config }] = await Bun.file(join(at, 'manifest.json')).json()
  for (const layer of Layers) await $`tar -xzf ${join(at, layer)} -C ${root}`
  return { root, config: await Bun.file(join(at, Config)).json() }
}

test('a person signs in to the server of the image, which does not run as root', async () => {
  const { root, config } = await unpacked('amd64')
  expect(config.config).toMatchObject({
    User: '65532:65532',
    Volumes: { '/data': {} },
    Healthcheck: { Test: ['CMD', 'gatehouse', 'healthcheck'] },
  })
  expect(readFileSync(join(root, 'var/lib/dpkg/status.d/libc6'), 'utf8')).toContain('Architecture: amd64')
  expect(await developAndLogIn(...inRoot(root, '65532:65532'), '/usr/local/bin/gatehouse')).toBe('alice')
})

test('a person signs in to the server of the arm64 image, on an emulated processor', async () => {
  const { root, config } = await unpacked('arm64')
  expect(config.architecture).toBe('arm64')
  // Debian 13 names the static emulator `qemu-aarch64`.
  const emulator = Bun.which('qemu-aarch64-static') ?? Bun.which('qemu-aarch64') ?? 'qemu-aarch64'
  copyFileSync(emulator, join(root, 'emulator'))
  const command = [...inRoot(root, '65532:65532'), '/emulator', '/usr/local/bin/gatehouse']
  expect(await developAndLogIn(...command)).toBe('alice')
})

/**
 * Options that let podman run containers here. By default podman would raise limits and set up a network of
 * its own.
 */
const limits = [
  '--runtime=runc',
  'run',
  '--ulimit=nofile=4096:4096',
  '--ulimit=nproc=4096:4096',
  '--network=host',
]
const load = () => $`podman load -q -i ${built(`gatehouse-${version}-image-amd64.tar`)}`.quiet()

test('podman runs the image read-only and reports it healthy; the next container finds the data in the volume', async () => {
  await load()
  const volume = `gatehouse-${process.pid}`
  // The container uses the network of this host, so it needs a port that is free here.
  const listener = Bun.listen({ hostname: '127.0.0.1', port: 0, socket: { data() {} } })
  const { port } = listener
  listener.stop(true)
  const common = [
    ...limits,
    '--rm',
    '-d',
    '--read-only',
    '-v',
    `${volume}:/data`,
    '-e',
    `GATEHOUSE_PORT=${port}`,
  ]
  try {
    for (const name of ['one', 'two']) {
      const { code, stderr } = await run(['podman', ...common, '--name', `${volume}-${name}`, tag])
      expect([code, stderr]).toEqual([0, ''])
      const healthy = async () =>
        (await run(['podman', '--runtime=runc', 'exec', `${volume}-${name}`, 'gatehouse', 'healthcheck']))
          .code === 0
      for (let tries = 0; !(await healthy()) && tries < 50; tries++) await Bun.sleep(100)
      expect(await healthy()).toBe(true)
      const users = await run([
        'podman',
        '--runtime=runc',
        'exec',
        `${volume}-${name}`,
        'gatehouse',
        'user',
        'list',
      ])
      expect(users.stdout.includes('ada@example.com')).toBe(name === 'two')
      if (name === 'one')
        await run([
          'podman',
          '--runtime=runc',
          'exec',
          `${volume}-${name}`,
          'gatehouse',
          'user',
          'create',
          'ada',
          '--email',
          'ada@example.com',
        ])
      await run(['podman', '--runtime=runc', 'stop', `${volume}-${name}`])
    }
  } finally {
    await run(['podman', 'rm', '-f', `${volume}-one`, `${volume}-two`])
    await run(['podman', 'volume', 'rm', '-f', volume])
  }
})

test('the testing packages start the image: Node', async () => {
  await load()
  await using server = await startGatehouse({ image: tag, engine: ['podman', ...limits] })
  expect(await logIn(server.url, { password: server.password })).toBe('alice')
  const { claims } = await server.mint({ user: 'alice', roles: ['editor'] })
  expect(claims.roles).toEqual(['editor'])
})

test('the testing packages start the image: pytest', async () => {
  await load()
  const at = place()
  await $`python3 -m venv --system-site-packages ${at}`.quiet()
  await $`${at}/bin/pip install --no-index --no-deps ${wheel('manylinux_2_17_x86_64')}`.quiet()
  writeFileSync(join(at, 'seed.yaml'), 'users: [{ username: carol, email: carol@example.com }]\n')
  writeFileSync(
    join(at, 'test_image.py'),
    `import gatehouse_pytest

def test_image():
    engine = ${JSON.stringify(['podman', ...limits])}
    server = gatehouse_pytest.start(seed="seed.yaml", image="${tag}", engine=engine)
    assert server.token(user="carol").count(".") == 2
    server.stop()
`,
  )
  expect(await run([`${at}/bin/python`, '-m', 'pytest', '-q', 'test_image.py'], { cwd: at })).toMatchObject({
    code: 0,
  })
})
