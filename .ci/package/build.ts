/**
 * `bun run package [TARGET...]` builds the packages of the given platforms into dist/packages. Without a
 * target it builds the packages of all platforms. The same commit gives the same bytes.
 */
import { createHash } from 'node:crypto'
import { chmodSync, mkdirSync, mkdtempSync, readdirSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { basename, join } from 'node:path'
import { $ } from 'bun'
import project from '../../package.json' with { type: 'json' }
import { deb } from './deb.ts'
import { image } from './image.ts'
import { launcherPackage, libraryPackage, platformPackage } from './npm.ts'
import { lay, tar, zip } from './pack.ts'
import { targets } from './targets.ts'
import { wheel } from './wheel.ts'

/** Values that the packages of one run share. */
export interface Build {
  root: string
  /** Folder of the finished packages. */
  out: string
  project: { version: string; license: string; description: string }
  commit: string
  /** Time of the commit in seconds since 1970. All packed files get this modification time. */
  epoch: number
  /** The manual page gatehouse(1). */
  manual: string
  /** Makes an empty folder that is removed at the end of the run. */
  scratch(): string
}

const root = join(import.meta.dir, '../..')
const main = join(root, 'src/main.ts')
process.chdir(root)
const wanted = process.argv.slice(2)
const unknown = wanted.find(name => !targets.some(target => target.name === name))
if (unknown)
  throw new Error(`unknown target ${unknown}; the targets are ${targets.map(({ name }) => name).join(', ')}`)
const chosen = wanted.length > 0 ? targets.filter(({ name }) => wanted.includes(name)) : targets

const out = join(root, 'dist/packages')
const scratches = mkdtempSync(join(tmpdir(), 'gatehouse-package-'))
rmSync(out, { recursive: true, force: true })
mkdirSync(out, { recursive: true })
const [commit = '', epoch = '0'] = (await $`git log -1 --format=${'%H %ct'}`.text()).trim().split(' ')
const build: Build = {
  root,
  out,
  project,
  commit,
  epoch: Number(epoch),
  manual: await $`bun ${main} man`.text(),
  scratch: () => {
    const folder = mkdtempSync(join(scratches, 'part-'))
    // `mkdtemp` sets mode 0700. The folder becomes the root directory of a package or an image, and all users
    // must be able to enter a root directory.
    chmodSync(folder, 0o755)
    return folder
  },
}

try {
  for (const target of chosen) {
    console.log(target.name)
    const executable = join(build.scratch(), target.npm.os === 'win32' ? 'gatehouse.exe' : 'gatehouse')
    await $`bun run build --target=${target.bun} --outfile ${executable}`.quiet()
    await archive(target.name, executable)
    await platformPackage(build, target, executable)
    await wheel(build, target, executable)
    if (target.debian) {
      await deb(build, target, executable)
      await image(build, target.debian, executable)
    }
  }
  await launcherPackage(build)
  await $`bun run build:sdk && bun run build:testing`.quiet()
  for (const name of ['sdk', 'testing']) await libraryPackage(build, join(root, 'dist', name))
  for (const format of ['cyclonedx', 'spdx'])
    await $`bun ${main} sbom --format ${format} > ${join(out, `gatehouse-${project.version}.${format}.json`)}`
  await checksums()
} catch (error) {
  // After a failure all packages are removed, because nobody could verify them without checksums.txt.
  rmSync(out, { recursive: true, force: true })
  const { stderr, message } = error as Error & { stderr?: Buffer }
  console.error(`package: ${(stderr && errorIn(String(stderr))) || message}; nothing is left in ${out}`)
  process.exitCode = 1
} finally {
  rmSync(scratches, { recursive: true })
}

/** Returns the line that gives the reason for a failure, from the output of the failed command. */
function errorIn(output: string): string | undefined {
  const lines = output.trim().split('\n')
  return lines.find(line => /fail|error|unable/i.test(line)) ?? lines.at(-1)
}

/** Packs the executable with licence, README and manual page into a .zip (Windows) or .tar.gz (others). */
async function archive(target: string, executable: string): Promise<void> {
  const stem = `gatehouse-${project.version}-${target}`
  const entries = [
    { path: basename(executable), content: { from: executable }, mode: 0o755 },
    { path: 'LICENSE', content: { from: join(root, 'LICENSE') } },
    { path: 'README.md', content: { from: join(root, 'README.md') } },
    { path: 'gatehouse.1', content: build.manual },
  ].map(entry => ({ ...entry, path: `${stem}/${entry.path}` }))
  if (target.startsWith('windows')) {
    await Bun.write(join(out, `${stem}.zip`), await zip(entries))
    return
  }
  const folder = build.scratch()
  await lay(folder, entries)
  await tar(folder, join(out, `${stem}.tar.gz`), build.epoch)
}

/** Writes checksums.txt in the format of sha256sum(1). */
async function checksums(): Promise<void> {
  const lines: string[] = []
  for (const file of readdirSync(out).sort())
    lines.push(
      `${createHash('sha256')
        .update(await Bun.file(join(out, file)).bytes())
        .digest('hex')}  ${file}\n`,
    )
  await Bun.write(join(out, 'checksums.txt'), lines.join(''))
  await $`ls -l ${out}`
}
