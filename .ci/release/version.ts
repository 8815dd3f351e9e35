/**
 * `bun run release:version VERSION` sets the version in package.json and in the files that quote it
 * (`TEXTS`). In the changelog, the unreleased changes become the section of the version. All builds take the
 * version from package.json.
 */
import { join } from 'node:path'
import { $, semver } from 'bun'
import { released, VERSION_FORM } from './changelog.ts'

/** Files that quote the version in a sentence or an example. */
const TEXTS = ['README.md', 'src/lib/version.ts', 'src/testing/process.ts']

const [next = ''] = process.argv.slice(2)
const root = join(import.meta.dir, '../..')
const read = (path: string): Promise<string> => Bun.file(join(root, path)).text()

try {
  const { version } = JSON.parse(await read('package.json'))
  if (!VERSION_FORM.test(next))
    throw new Error(`${next || 'no version'}: a version looks like 1.2.3 or 1.2.3-rc.1`)
  if (semver.order(next, version) < 0) throw new Error(`${next} is older than ${version}`)
  const changelog = released(
    await read('.github/CHANGELOG.md'),
    next,
    new Date().toISOString().slice(0, 'YYYY-MM-DD'.length),
  )
  const manifest = await read('package.json')
  await Bun.write(
    join(root, 'package.json'),
    manifest.replace(`"version": "${version}"`, `"version": "${next}"`),
  )
  for (const path of TEXTS) {
    const text = (await read(path)).replaceAll(version, next)
    await Bun.write(join(root, path), text.replace(`Version ${next}, not released yet.`, `Version ${next}.`))
  }
  await Bun.write(join(root, '.github/CHANGELOG.md'), changelog)
  await $`git -C ${root} --no-pager diff --stat`
  console.log(
    `Next: bun run check, git commit, git tag v${next}, then push the commit and the tag. The tag starts the release.`,
  )
} catch (error) {
  console.error(`release: ${(error as Error).message}`)
  process.exit(1)
}
