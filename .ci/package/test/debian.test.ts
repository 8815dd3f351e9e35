/**
 * The Debian package. Its maintainer scripts run in a separate root, so that they change nothing on this
 * machine.
 */
import { beforeAll, expect, test } from 'bun:test'
import {
  appendFileSync,
  chownSync,
  copyFileSync,
  existsSync,
  mkdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { join } from 'node:path'
import { $ } from 'bun'
import { version } from '../../../package.json'
import { debianVersion } from '../names.ts'
import { built, debianRoot, inRoot, logIn, place, run, start, withReadOnly } from './support.ts'

const file = built(`gatehouse_${version}_amd64.deb`)
let root: string
beforeAll(async () => {
  root = await debianRoot('essential', 'systemd-standalone-sysusers')
}, 300_000)

const dpkg = (...args: string[]) => run([...inRoot(root), 'dpkg', ...args])
const env = { GATEHOUSE_CONFIG: '/etc/gatehouse/gatehouse.yaml', GATEHOUSE_DATA_DIR: '/var/lib/gatehouse' }
const asUser = () => [...inRoot(root, 'gatehouse:gatehouse'), '/usr/bin/gatehouse']
const data = () => join(root, env.GATEHOUSE_DATA_DIR)
const settings = () => join(root, env.GATEHOUSE_CONFIG)
const redirect_uri = 'http://localhost:3000/callback'
const person = { client_id: 'shop', redirect_uri, username: 'ada', password: 'Correct-horse-7' }

/** Makes a package with the same files and another version. */
const repacked = async (as: string): Promise<string> => {
  const at = place()
  await $`dpkg-deb -R ${file} ${at}/tree && sed -i ${`s/^Version:.*/Version: ${as}/`} ${at}/tree/DEBIAN/control`
  await $`dpkg-deb --root-owner-group -Zgzip -z1 -b ${at}/tree ${at}/gatehouse.deb`.quiet()
  return `${at}/gatehouse.deb`
}

test('lintian finds no error', async () => {
  expect(await run(['lintian', '--fail-on', 'error', file])).toMatchObject({ code: 0 })
})

test('dpkg installs no files on a read-only file system or for another architecture', async () => {
  copyFileSync(file, join(root, 'gatehouse.deb'))
  const readOnly = await run([
    ...withReadOnly(join(root, 'usr')),
    ...inRoot(root),
    'dpkg',
    '-i',
    '/gatehouse.deb',
  ])
  expect([readOnly.code, readOnly.stderr]).toEqual([1, expect.stringContaining('Read-only file system')])
  copyFileSync(built(`gatehouse_${version}_arm64.deb`), join(root, 'gatehouse.deb'))
  const foreign = await dpkg('-i', '/gatehouse.deb')
  expect([foreign.code, foreign.stderr]).toEqual([
    1,
    expect.stringContaining('package architecture (arm64) does not match system (amd64)'),
  ])
  expect((await dpkg('-s', 'gatehouse')).stdout).toContain('Status: install ok not-installed')
  for (const path of ['usr/bin/gatehouse', 'usr/bin/gatehouse.dpkg-new', 'etc/gatehouse'])
    expect([path, existsSync(join(root, path))]).toEqual([path, false])
})

test('dpkg installs the package and creates its user, and a person signs in', async () => {
  copyFileSync(file, join(root, 'gatehouse.deb'))
  expect(await dpkg('-i', '/gatehouse.deb')).toMatchObject({ code: 0 })
  expect(readFileSync(join(root, 'etc/passwd'), 'utf8')).toMatch(/^gatehouse:.*:\/var\/lib\/gatehouse:/m)
  expect(statSync(settings()).mode & 0o777).toBe(0o640)
  // A restore needs this directory before the first start.
  expect(statSync(data()).mode & 0o777).toBe(0o700)
  const server = await start([...asUser(), 'serve'], { ...env, GATEHOUSE_PORT: '0' })
  await $`echo ${person.password} | ${asUser()} user create ada --email ada@example.com --password`
    .env({ ...process.env, ...env })
    .quiet()
  await $`${asUser()} client create shop --kind spa --no-consent --redirect ${redirect_uri}`
    .env({ ...process.env, ...env })
    .quiet()
  expect(await logIn(server.url, person)).toBe('ada')

  // The package is upgraded while the server runs. The upgrade keeps the changed settings.
  appendFileSync(settings(), 'log_level: warn\n')
  copyFileSync(await repacked(`${debianVersion(version)}+next`), join(root, 'gatehouse.deb'))
  expect(await dpkg('-i', '/gatehouse.deb')).toMatchObject({ code: 0 })
  expect(await logIn(server.url, person)).toBe('ada')
  await server.stop()
  const next = await start([...asUser(), 'serve'], { ...env, GATEHOUSE_PORT: '0' })
  expect(await logIn(next.url, person)).toBe('ada')
  await next.stop()
  expect(readFileSync(settings(), 'utf8')).toEndWith('log_level: warn\n')
  expect((await dpkg('-s', 'gatehouse')).stdout).toContain(`Version: ${debianVersion(version)}+next`)
}, 300_000)

const upgrade = async (as: string) => {
  copyFileSync(await repacked(`${debianVersion(version)}+${as}`), join(root, 'gatehouse.deb'))
  return dpkg('-i', '/gatehouse.deb')
}

test('an upgrade keeps the owner of the settings, and their removal', async () => {
  const { uid, gid } = statSync(data())
  chownSync(settings(), uid, gid)
  expect(await upgrade('owner')).toMatchObject({ code: 0 })
  expect(statSync(settings())).toMatchObject({ uid, gid })
  const kept = readFileSync(settings())
  rmSync(settings())
  expect(await upgrade('removed')).toMatchObject({ code: 0 })
  expect(existsSync(settings())).toBe(false)
  writeFileSync(settings(), kept)
}, 300_000)

test('an upgrade whose server does not start leaves no half-configured package', async () => {
  // No systemd runs in the root. This program fails as `systemctl` does when the unit does not start.
  const systemctl = join(root, 'usr/bin/systemctl')
  mkdirSync(join(root, 'run/systemd/system'), { recursive: true })
  writeFileSync(systemctl, '#!/bin/sh\n[ "$1" != try-restart ]\n', { mode: 0o755 })
  const { code, stderr } = await upgrade('restart')
  expect([code, stderr]).toEqual([0, expect.stringContaining('see journalctl -u gatehouse')])
  expect((await dpkg('-s', 'gatehouse')).stdout).toContain('Status: install ok installed')
  rmSync(systemctl)
  rmSync(join(root, 'run/systemd/system'), { recursive: true })
}, 300_000)

test('an upgrade succeeds while the data directory is a link to a volume that is not mounted', async () => {
  renameSync(data(), `${data()}.volume`)
  symlinkSync('/srv/not-mounted/gatehouse', data())
  expect(await upgrade('link')).toMatchObject({ code: 0 })
  expect((await dpkg('-s', 'gatehouse')).stdout).toContain('Status: install ok installed')
  rmSync(data())
  renameSync(`${data()}.volume`, data())
}, 300_000)

test('removal keeps settings and data, a purge keeps the data', async () => {
  expect(await dpkg('-r', 'gatehouse')).toMatchObject({ code: 0 })
  expect([existsSync(join(root, 'usr/bin/gatehouse')), existsSync(settings())]).toEqual([false, true])
  const purged = await dpkg('-P', 'gatehouse')
  expect(purged.code).toBe(0)
  expect(purged.stdout).toContain('the data in /var/lib/gatehouse stays')
  expect([existsSync(settings()), existsSync(join(data(), 'gatehouse.db'))]).toEqual([false, true])
})

test('with an older glibc dpkg configures nothing and names what is missing', async () => {
  const at = place()
  const old =
    'Package: libc6\nStatus: install ok installed\nVersion: 2.13-1\nArchitecture: amd64\nMaintainer: a <a@example.com>\nDescription: a\n'
  await $`mkdir -p ${at}/var/lib/dpkg/info ${at}/var/lib/dpkg/updates && echo ${old} > ${at}/var/lib/dpkg/status`
  const { code, stderr } = await run(['dpkg', `--root=${at}`, '--force-script-chrootless', '-i', file])
  expect(code).not.toBe(0)
  expect(stderr).toContain('gatehouse depends on libc6 (>= 2.17)')
  expect(existsSync(join(at, 'var/lib/gatehouse'))).toBe(false)
})
