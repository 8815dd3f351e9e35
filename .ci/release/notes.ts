/**
 * Prints the notes of a release. Fails when the tag, such as `v1.2.3`, does not name the version in
 * package.json. Also fails when the changelog has no section for this version.
 */
import { join } from 'node:path'
import { version } from '../../package.json'
import { sectionOf } from './changelog.ts'

const [tag] = process.argv.slice(2)
try {
  if (tag !== `v${version}`)
    throw new Error(`the tag ${tag} does not name version ${version} of package.json`)
  const changelog = await Bun.file(join(import.meta.dir, '../../.github/CHANGELOG.md')).text()
  console.log(`${sectionOf(changelog, version)}

The guide says how to install, how to upgrade and how to verify a download: \`gatehouse guide install\`,
\`upgrade\` and \`verify\`, or [templates/guide](../${tag}/templates/guide/README.md).`)
} catch (error) {
  console.error(`release: ${(error as Error).message}`)
  process.exit(1)
}
