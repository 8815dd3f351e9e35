/** The archive, and the executable in it. */
import { Database } from 'bun:sqlite'
import { expect, test } from 'bun:test'
import { copyFileSync, existsSync, renameSync } from 'node:fs'
import { join } from 'node:path'
import { $ } from 'bun'
import { version } from '../../../package.json'
import {
  debianRoot,
  developAndLogIn,
  executable,
  files,
  inRoot,
  logIn,
  place,
  ROOT,
  run,
  start,
  sums,
  withReadOnly,
} from './support.ts'

const checksums = async (folder: string): Promise<string[]> =>
  (await Bun.file(join(folder, 'dist/packages/checksums.txt')).text()).trim().split('\n')

test('checksums.txt names each file', async () => {
  await $`sha256sum --quiet -c checksums.txt`.cwd(join(ROOT, 'dist/packages'))
  expect((await checksums(ROOT)).map(line => line.split('  ')[1])).toEqual(
    files.filter(name => name !== 'checksums.txt').sort(),
  )
})

test('a person signs in to a server from the archive; --version prints version, commit and runtime', async () => {
  expect(await developAndLogIn(await executable())).toBe('alice')
  const { stdout } = await run([await executable(), '--version'])
  const commit = (await $`git rev-parse --short=12 HEAD`.cwd(ROOT).text()).trim()
  expect(stdout).toBe(`${version} (${commit}, Bun ${Bun.version})\n`)
})

test('a build in another folder has the same bytes; a build without a network fails and leaves no packages', async () => {
  const at = place()
  await $`git clone -q ${ROOT} ${at}`
  await $`bun install --frozen-lockfile --ignore-scripts && bun run package linux-x64`.cwd(at).quiet()
  const again = await checksums(at)
  // The ten files: archive, npm package, wheel, Debian package, image, launcher, SDK, testing package, two
  // SBOMs.
  expect(again).toHaveLength(10)
  expect(await checksums(ROOT)).toEqual(expect.arrayContaining(again))

  // A build for another platform downloads that platform's runtime.
  const command = ['unshare', '--net', 'bun', 'run', '--silent', 'package', 'windows-x64']
  const { code, stderr } = await run(command, { cwd: at, env: { BUN_INSTALL_CACHE_DIR: place() } })
  expect(code).toBe(1)
  expect(stderr).toMatch(/^package: Failed to download 'bun-windows-x64-[^\n]+; nothing is left in [^\n]+\n$/)
  expect(existsSync(join(at, 'dist/packages'))).toBe(false)
  await $`rm -rf ${at}`
}, 1_200_000)

test('the executable runs with an older glibc: Debian 11 has 2.31', async () => {
  const root = await debianRoot('extract', 'libc6,coreutils', 'bullseye')
  copyFileSync(await executable(), join(root, 'gatehouse'))
  expect(await developAndLogIn(...inRoot(root), '/gatehouse')).toBe('alice')
})

test('the executable needs no glibc newer than 2.17, the version that the Debian package and the wheels require', async () => {
  const needed = (await $`objdump -T ${await executable()}`.text()).match(/(?<=GLIBC_)2\.\d+/g) ?? []
  expect(Math.max(...needed.map(text => Number(text.slice(2))))).toBe(17)
})

test('the executable starts without a network, and a second command gets a token from the server', async () => {
  const path = await executable()
  const script = `ip link set lo up && ${path} exec -- ${path} token --user alice --scope openid`
  const { code, stdout, stderr } = await run(['unshare', '--net', 'sh', '-c', script])
  expect([code, stderr]).toEqual([0, ''])
  expect(stdout.trim().split('.')).toHaveLength(3)
})

test('the executable runs in a read-only folder; serve names a read-only data directory in one line', async () => {
  const at = place()
  copyFileSync(await executable(), join(at, 'gatehouse'))
  const fine = await run([...withReadOnly(at), `${at}/gatehouse`, 'exec', '--', 'true'])
  expect([fine.code, fine.stderr]).toEqual([0, ''])
  const env = { GATEHOUSE_PORT: '0', GATEHOUSE_DATA_DIR: `${at}/data` }
  const refused = await run([...withReadOnly(at), `${at}/gatehouse`, 'serve'], { env })
  expect(refused.code).not.toBe(0)
  expect(refused.stderr).toMatch(new RegExp(`^gatehouse: [^\\n]*${at}/data[^\\n]*\\n$`))
})

test('a running server outlives the replacement of its executable, and the new executable finds the data', async () => {
  const at = place()
  const path = join(at, 'gatehouse')
  copyFileSync(await executable(), path)
  const env = { GATEHOUSE_DATA_DIR: join(at, 'data'), GATEHOUSE_PORT: '0' }
  const redirect_uri = 'http://localhost:3000/callback'
  const person = { client_id: 'shop', redirect_uri, username: 'ada', password: 'Correct-horse-7' }
  const old = await start([path, 'serve'], env)
  const create = `user create ada --email ada@example.com --password`
  await $`echo ${person.password} | ${path} ${{ raw: create }}`.env({ ...process.env, ...env }).quiet()
  await $`${path} client create shop --kind spa --no-consent --redirect ${redirect_uri}`
    .env({ ...process.env, ...env })
    .quiet()
  expect(await logIn(old.url, person)).toBe('ada')

  copyFileSync(await executable(), `${path}.new`)
  renameSync(`${path}.new`, path)
  expect(await logIn(old.url, person)).toBe('ada')
  await old.stop()
  const next = await start([path, 'serve'], env)
  expect(await logIn(next.url, person)).toBe('ada')
  await next.stop()
})

test('a database of a newer version is refused in one line, and stays as it is', async () => {
  const data = place()
  const env = { GATEHOUSE_DATA_DIR: data, GATEHOUSE_PORT: '0' }
  await (await start([await executable(), 'serve'], env)).stop()
  const db = new Database(join(data, 'gatehouse.db'))
  db.run("INSERT INTO migrations (name, hash) VALUES ('9999_next.sql', '')")
  db.run('PRAGMA wal_checkpoint(TRUNCATE)')
  db.close()
  const before = sums(data)
  for (const command of [['serve'], ['check'], ['backup', join(place(), 'copy.db')]]) {
    const { code, stderr } = await run([await executable(), ...command], { env })
    expect([command, code]).toEqual([command, 78])
    expect(stderr).toMatch(/^gatehouse: .*was upgraded by a newer version \(9999_next\.sql\)\. [^\n]+\n$/)
  }
  // Additional files are allowed, because SQLite can make files of its own.
  expect(sums(data)).toMatchObject(before)
})
