/**
 * `bun run release:rehearse [VERSION]` runs the steps of .github/workflows/release.yml in a clean clone of
 * the latest commit. It publishes nothing. Steps that use an action or need the forge are not run; only their
 * names are printed. The default version is that of package.json.
 */
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { $ } from 'bun'
import { parse } from 'yaml'
import { version as current } from '../../package.json'
import { sectionOf } from './changelog.ts'

interface Step {
  name?: string
  uses?: string
  run?: string
  env?: Record<string, string>
}

const [version = current] = process.argv.slice(2)
const tag = `v${version}`
const root = join(import.meta.dir, '../..')
const clone = join(mkdtempSync(join(tmpdir(), 'gatehouse-release-')), 'gatehouse')
await $`git clone -q ${root} ${clone}`

const inClone = (command: string[], env: Record<string, string> = {}): void => {
  const { success } = Bun.spawnSync(command, {
    cwd: clone,
    // Some steps change Git's global configuration. Here they change a separate file.
    env: { ...process.env, GIT_CONFIG_GLOBAL: join(clone, '../gitconfig'), ...env },
    stdout: 'inherit',
    stderr: 'inherit',
  })
  if (!success) throw new Error(`failed: ${command.join(' ')}`)
}

try {
  const changelog = await Bun.file(join(clone, '.github/CHANGELOG.md')).text()
  const isReleased = version === current && changelog.includes(`## [${version}]`)
  if (isReleased) sectionOf(changelog, version)
  else {
    inClone(['bun', 'install', '--frozen-lockfile', '--ignore-scripts'])
    inClone(['bun', '.ci/release/version.ts', version])
    inClone([
      'git',
      '-c',
      'user.name=rehearsal',
      '-c',
      'user.email=rehearsal@localhost',
      'commit',
      '-qam',
      tag,
    ])
  }
  inClone(['git', 'tag', tag])
  const workflow = parse(await Bun.file(join(clone, '.github/workflows/release.yml')).text())
  const { steps }: { steps: Step[] } = workflow.jobs.release
  for (const { name, uses, run, env } of steps) {
    const needsForge = Object.keys(env ?? {}).includes('GH_TOKEN')
    console.log(`\n== ${name ?? uses}${run && !needsForge ? '' : ': not run here'}`)
    if (run && !needsForge)
      inClone(['bash', '-euo', 'pipefail', '-c', run], { CI: 'true', GITHUB_REF_NAME: tag })
  }
  const out = join(root, 'dist/release')
  rmSync(out, { recursive: true, force: true })
  await $`mkdir -p ${out} && cp -r ${clone}/dist/packages/. ${clone}/dist/notes.txt ${out}`
  console.log(`\nThe files of the release are in ${out}`)
} finally {
  rmSync(join(clone, '..'), { recursive: true, force: true })
}
