import { spawnSync } from 'node:child_process'
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import project from '../../package.json' with { type: 'json' }

/** A library that the executable contains. */
export interface Component {
  name: string
  version: string
  /**
   * Licence in the manifest of the package, an SPDX expression (https://spdx.org/licenses/), or `NOASSERTION`
   * when the manifest names none.
   */
  license: string
  /** SHA-512 of the package in base64. The signature of the registry covers this value. */
  sha512: string
}

/** The text of a licence file. */
export interface LicenseText {
  /** Names of the libraries that have exactly this text. */
  libraries: string[]
  text: string
}

const root = join(import.meta.dir, '../..')

/** The commit that an executable is built from. */
export interface Commit {
  /** The first 12 digits; `unknown` outside a Git checkout. The id does not show uncommitted changes. */
  id: string
  /** ISO 8601, UTC; 1970-01-01T00:00:00Z outside a Git checkout. */
  time: string
}

/**
 * Returns the commit of the repository. This is a Bun macro: it runs when the caller is bundled.
 * https://bun.com/docs/bundler/macros
 */
export const commit = (): Commit => {
  const { stdout } = spawnSync('git', ['log', '-1', '--abbrev=12', '--format=%h %ct'], {
    cwd: root,
    encoding: 'utf8',
  })
  const [id = '', seconds = 0] = stdout?.trim().split(' ') ?? []
  return { id: id || 'unknown', time: `${new Date(Number(seconds) * 1000).toISOString().slice(0, 19)}Z` }
}

type Locked = [
  spec: string,
  registry: string,
  { [kind in 'dependencies' | 'peerDependencies']?: object },
  string,
]

/** Packages that only the TypeScript compiler reads, so the executable contains none of their code. */
const HAS_NO_CODE = /^(?:@types\/.*|bun-types|undici-types|typescript)$/

/**
 * Returns the direct and indirect dependencies of package.json that contain code, sorted by name. The bundler
 * may have left out some of them. This is a Bun macro.
 */
export const components = (): Component[] => installed().map(({ component }) => component)

/**
 * Returns the texts of the licence files of {@link components}: one file of each library, and each text once.
 * A library without a licence file is left out. This is a Bun macro.
 */
export const licenseTexts = (): LicenseText[] => {
  const libraries = Map.groupBy(installed(), ({ folder }) => textIn(folder))
  return [...libraries].flatMap(([text, found]) =>
    text ? [{ libraries: found.map(({ component }) => component.name), text }] : [],
  )
}

interface Installed {
  component: Component
  /** The folder of the installed package. */
  folder: string
}

const installed = (): Installed[] => {
  const text = readFileSync(join(root, 'bun.lock'), 'utf8')
  // The lock file is JSON with trailing commas.
  const { packages } = JSON.parse(text.replace(/,(\s*[}\]])/g, '$1')) as { packages: Record<string, Locked> }
  const found = new Map<string, Installed>()
  const visit = (name: string, path: string): void => {
    const key = [`${path}/${name}`, name].find(each => packages[each])
    const locked = key && packages[key]
    // Skips packages that are not installed (peer dependencies), that were found before or that have no code.
    if (!locked || found.has(locked[0]) || HAS_NO_CODE.test(name)) return
    found.set(locked[0], installedAs(name, key, locked))
    for (const next of Object.keys({ ...locked[2].dependencies, ...locked[2].peerDependencies }))
      visit(next, key)
  }
  for (const name of Object.keys(project.dependencies)) visit(name, '')
  return [...found.values()].sort((a, b) => (a.component.name < b.component.name ? -1 : 1))
}

const installedAs = (name: string, path: string, [spec, , , integrity]: Locked): Installed => {
  // The lock file names a nested package `parent/name`. The folder of this package is in the parent's
  // node_modules.
  const parent = path === name ? [] : [path.slice(0, -name.length - 1), 'node_modules']
  const folder = join(root, 'node_modules', ...parent, name)
  const { license } = JSON.parse(readFileSync(join(folder, 'package.json'), 'utf8'))
  const component = {
    name,
    version: spec.slice(name.length + 1),
    license: typeof license === 'string' ? license : 'NOASSERTION',
    sha512: integrity.replace('sha512-', ''),
  }
  return { component, folder }
}

const textIn = (folder: string): string => {
  const file = readdirSync(folder)
    .sort()
    .find(each => /^licen[cs]e/i.test(each))
  return file ? readFileSync(join(folder, file), 'utf8').trim() : ''
}
