import { join } from 'node:path'
import { $ } from 'bun'
import type { Build } from './build.ts'
import { debianVersion, MAINTAINER, names } from './names.ts'
import { lay } from './pack.ts'
import type { Target } from './targets.ts'

/**
 * Builds a Debian package with executable, systemd unit, system user, settings and manual page.
 * https://www.debian.org/doc/debian-policy/
 */
export const deb = async (build: Build, target: Target, executable: string): Promise<void> => {
  const { version, description } = build.project
  const folder = build.scratch()
  const date = new Date(build.epoch * 1000).toUTCString().replace('GMT', '+0000')
  const source = (name: string) => ({ from: join(import.meta.dir, 'debian', name) })
  await lay(folder, [
    { path: 'usr/bin/gatehouse', content: { from: executable }, mode: 0o755 },
    { path: 'usr/lib/systemd/system/gatehouse.service', content: source('gatehouse.service') },
    { path: 'usr/lib/sysusers.d/gatehouse.conf', content: source('sysusers.conf') },
    { path: 'etc/gatehouse/gatehouse.yaml', content: source('gatehouse.yaml'), mode: 0o640 },
    { path: 'usr/share/lintian/overrides/gatehouse', content: source('lintian-overrides') },
    { path: 'usr/share/man/man1/gatehouse.1.gz', content: Bun.gzipSync(build.manual, { level: 9 }) },
    {
      path: 'usr/share/doc/gatehouse/copyright',
      content: source('copyright'),
    },
    {
      path: 'usr/share/doc/gatehouse/NEWS.gz',
      content: Bun.gzipSync(await Bun.file(join(build.root, '.github/CHANGELOG.md')).bytes(), { level: 9 }),
    },
    {
      path: 'usr/share/doc/gatehouse/changelog.gz',
      content: Bun.gzipSync(
        `${names.deb} (${debianVersion(version)}) unstable; urgency=medium\n\n  * NEWS.gz has the changes.\n\n -- ${MAINTAINER}  ${date}\n`,
        { level: 9 },
      ),
    },
    { path: 'DEBIAN/conffiles', content: '/etc/gatehouse/gatehouse.yaml\n' },
    { path: 'DEBIAN/postinst', content: source('postinst'), mode: 0o755 },
    { path: 'DEBIAN/prerm', content: source('prerm'), mode: 0o755 },
    { path: 'DEBIAN/postrm', content: source('postrm'), mode: 0o755 },
    {
      path: 'DEBIAN/control',
      content: `Package: ${names.deb}
Version: ${debianVersion(version)}
Architecture: ${target.debian}
Maintainer: ${MAINTAINER}
Section: net
Priority: optional
Depends: libc6 (>= 2.17), systemd | systemd-standalone-sysusers
Description: ${description.replace(/^A |\W*:.*/g, '')}
 OAuth 2.0, OpenID Connect, SAML and passkeys behind a JSON admin API, with an
 immutable audit log. The database is a file, or PostgreSQL.
`,
    },
  ])
  // The file name contains the version with a hyphen, because GitHub would rename a file with a tilde.
  const file = join(build.out, `${names.deb}_${version}_${target.debian}.deb`)
  await $`find ${folder} -exec touch -h -d @${build.epoch} {} +`
  await $`dpkg-deb --root-owner-group -Zxz -z3 -b ${folder} ${file}`
    .env({ ...process.env, SOURCE_DATE_EPOCH: String(build.epoch) })
    .quiet()
}
