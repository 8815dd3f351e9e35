import { join } from 'node:path'
import type { Build } from './build.ts'
import { names } from './names.ts'
import { type Entry, lay, tar } from './pack.ts'
import { type Target, targets } from './targets.ts'

const common = ({ project }: Build) => ({
  version: project.version,
  license: project.license,
  description: project.description,
})

/** Packs the executable of one platform. */
export const platformPackage = async (build: Build, target: Target, executable: string): Promise<void> => {
  const name = `${names.npm}-${target.name}`
  const { os, cpu, libc } = target.npm
  const manifest = {
    name,
    ...common(build),
    os: [os],
    cpu: [cpu],
    ...(libc && { libc: [libc] }),
    // The package has no modules, and `commonjs` is the default. The field is present because publint
    // requires it.
    type: 'commonjs',
    preferUnplugged: true,
  }
  await pack(build, name, [
    manifestOf(manifest),
    { path: `package/${executable.split('/').at(-1)}`, content: { from: executable }, mode: 0o755 },
  ])
}

/** Packs the launcher. It starts the executable of the platform package that npm has installed. */
export const launcherPackage = async (build: Build): Promise<void> => {
  const manifest = {
    name: names.npm,
    ...common(build),
    type: 'module',
    bin: { gatehouse: 'gatehouse.js' },
    engines: { node: '>=20' },
    optionalDependencies: Object.fromEntries(
      targets.map(({ name }) => [`${names.npm}-${name}`, build.project.version]),
    ),
  }
  const launcher = (await Bun.file(join(import.meta.dir, 'launcher.js')).text()).replaceAll(
    '{{name}}',
    names.npm,
  )
  await pack(build, names.npm, [
    manifestOf(manifest),
    { path: 'package/gatehouse.js', content: launcher, mode: 0o755 },
    { path: 'package/README.md', content: { from: join(build.root, 'README.md') } },
  ])
}

const manifestOf = (manifest: object): Entry => ({
  path: 'package/package.json',
  content: `${JSON.stringify(manifest, null, 2)}\n`,
})

const pack = async (build: Build, name: string, entries: Entry[]): Promise<void> => {
  const folder = build.scratch()
  await lay(folder, [...entries, { path: 'package/LICENSE', content: { from: join(build.root, 'LICENSE') } }])
  const file = `${name.replace('@', '').replace('/', '-')}-${build.project.version}.tgz`
  await tar(folder, join(build.out, file), build.epoch)
}

/** Packs a folder that `build:sdk` or `build:testing` has made. */
export const libraryPackage = async (build: Build, from: string): Promise<void> => {
  const { name, version } = await Bun.file(join(from, 'package.json')).json()
  const folder = build.scratch()
  await Bun.$`cp -r ${from} ${folder}/package`
  await tar(folder, join(build.out, `${name.replace('@', '').replace('/', '-')}-${version}.tgz`), build.epoch)
}
