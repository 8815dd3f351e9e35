/** Tests version numbers, release notes and the workflow of a release. */
import { expect, test } from 'bun:test'
import { copyFileSync, mkdirSync, mkdtempSync, readFileSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { $ } from 'bun'
import { parse } from 'yaml'
import type { Json } from '#test/support/app.ts'
import { debianVersion, pythonVersion } from '../../.ci/package/names.ts'
import { released, sectionOf } from '../../.ci/release/changelog.ts'
import { scripts, version } from '../../package.json'

const root = join(import.meta.dir, '../..')
const workflow: Json = parse(readFileSync(join(root, '.github/workflows/release.yml'), 'utf8'))
const changelog = '# Changelog\n\n## [Unreleased]\n\n### Added\n\n- b\n\n## [1.0.0] - 2026-01-31\n\n- a\n'

/** Copies the files that a release changes into a new repository. */
const copy = async (): Promise<string> => {
  const folder = mkdtempSync(join(tmpdir(), 'gatehouse-'))
  const changed = [
    'README.md',
    'package.json',
    '.github/CHANGELOG.md',
    'src/lib/version.ts',
    'src/testing/process.ts',
  ]
  const tracked = (await $`git ls-files .ci/release ${changed}`.cwd(root).text()).trim()
  for (const path of tracked.split('\n')) {
    mkdirSync(join(folder, dirname(path)), { recursive: true })
    copyFileSync(join(root, path), join(folder, path))
  }
  await $`git init -q && git add -A && git -c user.name=a -c user.email=a@example.com commit -qm a`.cwd(
    folder,
  )
  return folder
}
const command = async (folder: string, name: string, ...args: string[]) => {
  const { exitCode, stdout, stderr } = await $`bun .ci/release/${name}.ts ${args}`
    .cwd(folder)
    .nothrow()
    .quiet()
  return { code: exitCode, stdout: String(stdout), stderr: String(stderr) }
}

test('the section of a version becomes its notes', () => {
  expect(sectionOf(changelog, '1.0.0')).toBe('- a')
  const next = released(changelog, '1.1.0', '2026-02-28')
  expect(next).toContain('## [Unreleased]\n\n## [1.1.0] - 2026-02-28\n\n### Added\n\n- b\n\n## [1.0.0]')
  expect(sectionOf(next, '1.1.0')).toBe('### Added\n\n- b')
  expect(() => sectionOf(next, 'Unreleased')).toThrow('the section [Unreleased] of the changelog is empty')
  expect(() => sectionOf(next, '2.0.0')).toThrow('the changelog has no section [2.0.0]')
  expect(() => released(changelog, '1.0.0', '2026-02-28')).toThrow(
    'the changelog already has a section [1.0.0]',
  )
})

test('one command changes the version everywhere; the notes belong to the tag', async () => {
  const folder = await copy()
  expect(await command(folder, 'version', '99.0.0')).toMatchObject({ code: 0, stderr: '' })
  expect((await $`git grep -lF ${version}`.cwd(folder).nothrow().text()).trim()).toBe('')
  expect((await Bun.file(join(folder, 'package.json')).json()).version).toBe('99.0.0')
  expect(readFileSync(join(folder, 'README.md'), 'utf8')).toContain('Version 99.0.0.')

  const notes = await command(folder, 'notes', 'v99.0.0')
  expect(notes.code).toBe(0)
  expect(notes.stdout).toStartWith(
    sectionOf(readFileSync(join(root, '.github/CHANGELOG.md'), 'utf8'), 'Unreleased'),
  )
  expect(await command(folder, 'notes', 'v99.0.1')).toMatchObject({
    code: 1,
    stderr: 'release: the tag v99.0.1 does not name version 99.0.0 of package.json\n',
  })
}, 30_000)

test('the version of the project changes, and the equal version of a dependency stays', async () => {
  const folder = await copy()
  const path = join(folder, 'package.json')
  const manifest = (own: string) =>
    readFileSync(path, 'utf8')
      .replace(/"version": ".*"/, `"version": "${own}"`)
      .replace(/"dependencies": \{/, '"dependencies": {\n    "equal": "0.1.3",\n    "longer": "10.1.3",')
  writeFileSync(path, manifest('0.1.3'))
  const next = readFileSync(path, 'utf8').replace('"version": "0.1.3"', '"version": "0.1.4"')
  expect(await command(folder, 'version', '0.1.4')).toMatchObject({ code: 0, stderr: '' })
  expect(readFileSync(path, 'utf8')).toBe(next)
})

test('a pre-release sorts before its release in the packages of Debian and Python', async () => {
  expect(['1.2.3-alpha.1', '1.2.3-beta.2', '1.2.3-rc.1', '1.2.3'].map(pythonVersion)).toEqual([
    '1.2.3a1',
    '1.2.3b2',
    '1.2.3rc1',
    '1.2.3',
  ])
  expect(['1.2.3-rc.1', '1.2.3'].map(debianVersion)).toEqual(['1.2.3~rc.1', '1.2.3'])
})

test.each([
  ['', 'release: no version: a version looks like 1.2.3 or 1.2.3-rc.1\n'],
  ['1.2', 'release: 1.2: a version looks like 1.2.3 or 1.2.3-rc.1\n'],
  ['99.0.0-next', 'release: 99.0.0-next: a version looks like 1.2.3 or 1.2.3-rc.1\n'],
  ['0.0.1', `release: 0.0.1 is older than ${version}\n`],
])('the version %p is refused and nothing changes', async (wrong, stderr) => {
  const folder = await copy()
  expect(await command(folder, 'version', wrong)).toEqual({ code: 1, stdout: '', stderr })
  expect(await $`git status --porcelain`.cwd(folder).text()).toBe('')
})

test('the workflow runs commands of package.json, and only its one job may write', () => {
  expect(workflow.on).toEqual({ push: { tags: ['v*'] } })
  expect(workflow.permissions).toEqual({ contents: 'read' })
  const { steps, permissions } = workflow.jobs.release
  expect(permissions).toEqual({ contents: 'write', 'id-token': 'write', attestations: 'write' })
  const named = steps.flatMap(({ run = '' }: Json) =>
    [...run.matchAll(/bun run ([\w:]+)/g)].map(([, name]) => name),
  )
  expect(named).toEqual(['package', 'test:packages'])
  for (const name of named) expect(scripts).toHaveProperty([name])
  const attested = steps.findIndex(({ uses = '' }: Json) =>
    uses.startsWith('actions/attest-build-provenance@'),
  )
  expect(steps[attested].with['subject-checksums']).toBe('dist/packages/checksums.txt')
  expect(steps[attested + 1].run).toContain('gh release create "$GITHUB_REF_NAME" --draft --verify-tag')
})
