/**
 * `bun run test:packages` installs each package of dist/packages in an empty place, without a registry, and
 * logs in to it. Packages of other platforms are checked for their contents alone.
 */
import { readdirSync } from 'node:fs'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { $ } from 'bun'
import { names } from './names.ts'

const out = join(import.meta.dir, '../../dist/packages')
const files = readdirSync(out)
const place = await mkdtemp(join(tmpdir(), 'gatehouse-test-'))
const find = (pattern: RegExp): string => {
  const file = files.find(name => pattern.test(name))
  if (!file) throw new Error(`no package matches ${pattern}: run \`bun run package\` first`)
  return join(out, file)
}
const folder = async (name: string): Promise<string> => {
  const path = join(place, name)
  await $`mkdir -p ${path}`
  return path
}

/**
 * Starts a development server by the command, takes a token over HTTP, and checks that userinfo knows its
 * user.
 */
const logIn = async (command: string[], root = '') => {
  const path = root ? '/tmp/ready' : join(await mkdtemp(join(place, 'ready-')), 'line')
  const ready = root + path
  const child = Bun.spawn([...command, 'dev', '--port', '0', '--ready-file', path], { stdout: 'ignore' })
  try {
    while (!(await Bun.file(ready).exists())) {
      if (child.exitCode !== null) throw new Error(`${command.join(' ')} ended with ${child.exitCode}`)
      await Bun.sleep(20)
    }
    const { url, control_token } = await Bun.file(ready).json()
    const minted = await fetch(`${url}/dev/mint`, {
      method: 'POST',
      headers: { authorization: `Bearer ${control_token}`, 'content-type': 'application/json' },
      body: JSON.stringify({ user: 'alice', scope: 'openid profile' }),
    })
    const { token } = (await minted.json()) as { token: string }
    const info = await fetch(`${url}/oauth/userinfo`, { headers: { authorization: `Bearer ${token}` } })
    const { preferred_username } = (await info.json()) as { preferred_username?: string }
    if (preferred_username !== 'alice')
      throw new Error(`${command.join(' ')}: userinfo answered ${info.status}`)
  } finally {
    // unshare ignores SIGTERM; its end sends one to the server.
    child.kill(root ? 'SIGKILL' : 'SIGTERM')
    await child.exited
  }
}

const tests: Record<string, () => Promise<unknown>> = {
  'checksums.txt names each file': async () => {
    await $`sha256sum --quiet -c checksums.txt`.cwd(out)
    const listed = (await Bun.file(join(out, 'checksums.txt')).text()).trim().split('\n').length
    if (listed !== files.length - 1) throw new Error(`${listed} of ${files.length - 1} files`)
  },
  'the archive': async () => {
    const at = await folder('archive')
    await $`tar -xzf ${find(/linux-x64\.tar\.gz$/)} --strip-components=1`.cwd(at)
    await logIn([join(at, 'gatehouse')])
  },
  'a build in another folder has the same bytes': async () => {
    const at = await folder('again')
    await $`git clone -q ${join(out, '../..')} ${at}`
    await $`bun install --frozen-lockfile --ignore-scripts && bun run build --outfile ${at}/gatehouse`
      .cwd(at)
      .quiet()
    await $`cmp ${at}/gatehouse ${place}/archive/gatehouse`
  },
  'npm: launcher and platform package, without scripts and registry': async () => {
    const at = await folder('npm')
    const stem = names.npm.replace('@', '').replace('/', '-')
    const packages = [
      find(new RegExp(`^${stem}-linux-x64-[\\d.]+\\.tgz$`)),
      find(new RegExp(`^${stem}-[\\d.]+\\.tgz$`)),
    ]
    await $`npm install --offline --ignore-scripts --no-audit --no-fund --omit=optional ${packages}`
      .cwd(at)
      .quiet()
    await logIn([join(at, 'node_modules/.bin/gatehouse')])
    await rm(join(at, `node_modules/${names.npm}-linux-x64`), { recursive: true })
    const lost = await $`${join(at, 'node_modules/.bin/gatehouse')} --version`.nothrow().quiet()
    if (lost.exitCode !== 1 || !/is not installed/.test(String(lost.stderr)))
      throw new Error(String(lost.stderr))
  },
  'PyPI: the wheel, and its pytest fixture': async () => {
    const at = await folder('wheel')
    await $`python3 -m venv --system-site-packages ${at}`.quiet()
    await $`${at}/bin/pip install --no-index --no-deps ${find(/manylinux_2_17_x86_64\.whl$/)}`.quiet()
    await logIn([join(at, 'bin/gatehouse')])
    await Bun.write(
      join(at, 'test_token.py'),
      'def test_token(gatehouse):\n    assert gatehouse.token(user="alice", scope="openid").count(".") == 2\n',
    )
    await $`${at}/bin/python -m pytest -q test_token.py`.cwd(at).quiet()
  },
  'Debian: installed, upgraded, removed; settings and data stay': async () => {
    const at = await folder('debian')
    const file = find(/_amd64\.deb$/)
    await $`mkdir -p ${at}/var/lib/dpkg/info ${at}/var/lib/dpkg/updates && touch ${at}/var/lib/dpkg/status`
    const dpkg = ['dpkg', `--root=${at}`, '--force-depends', '--force-script-chrootless']
    // Unpacked, not configured: the maintainer scripts would change the users of this machine.
    await $`${dpkg} --unpack ${file}`.quiet()
    await logIn([join(at, 'usr/bin/gatehouse')])
    await Bun.write(join(at, 'etc/gatehouse/gatehouse.yaml'), 'url: https://id.example.com\n')
    await $`${dpkg} --force-confold --unpack ${file}`.quiet()
    if (!(await Bun.file(join(at, 'etc/gatehouse/gatehouse.yaml')).text()).includes('id.example.com'))
      throw new Error('the upgrade replaced the settings')
    await $`${dpkg} --remove gatehouse`.nothrow().quiet()
  },
  'lintian finds no error': () => $`lintian --fail-on error ${find(/_amd64\.deb$/)}`.quiet(),
  'the image, unpacked in a root of its own': async () => {
    const at = await folder('image')
    await $`tar -xf ${find(/-image-amd64\.tar$/)}`.cwd(at)
    const [{ Layers }] = await Bun.file(join(at, 'manifest.json')).json()
    const root = await folder('root')
    for (const layer of Layers) await $`tar -xzf ${join(at, layer)} -C ${root}`
    await $`mkdir -p ${root}/dev ${root}/proc`
    const inside = `mount --rbind /dev ${root}/dev && mount -t proc proc ${root}/proc && exec chroot --userspec=65532:65532 ${root} /usr/local/bin/gatehouse "$@"`
    await logIn(
      ['unshare', '--mount', '--pid', '--fork', '--kill-child=TERM', 'sh', '-c', inside, 'sh'],
      root,
    )
  },
}

let failed = 0
for (const [name, run] of Object.entries(tests)) {
  try {
    await run()
    console.log(`ok    ${name}`)
  } catch (error) {
    failed++
    const { stderr, message } = error as { stderr?: Buffer; message: string }
    console.log(`FAIL  ${name}\n${message}\n${stderr ?? ''}`)
  }
}
await rm(place, { recursive: true, force: true })
console.log(`${Object.keys(tests).length - failed} passed, ${failed} failed`)
process.exit(failed > 0 ? 1 : 0)
