/** The changelog: https://keepachangelog.com/en/1.1.0/ */

/**
 * Form of a version: three numbers. A pre-release also has a kind and a number, as in `-rc.1`. Each package
 * format writes these kinds in a form of its own (.ci/package/names.ts).
 */
export const VERSION_FORM = /^\d+\.\d+\.\d+(?:-(?:alpha|beta|rc)\.\d+)?$/

const heading = (version: string): RegExp => new RegExp(`^## \\[${version.replaceAll('.', '\\.')}\\].*$`, 'm')

/**
 * Returns the section of a version without its heading.
 *
 * @param version as in the heading of the section, or `Unreleased`
 * @throws Error when the changelog has no such section, or an empty one
 */
export const sectionOf = (changelog: string, version: string): string => {
  const found = heading(version).exec(changelog)
  if (!found) throw new Error(`the changelog has no section [${version}]`)
  const rest = changelog.slice(found.index + found[0].length)
  const end = rest.search(/^## \[/m)
  const section = (end < 0 ? rest : rest.slice(0, end)).trim()
  if (!section) throw new Error(`the section [${version}] of the changelog is empty`)
  return section
}

/**
 * Renames the section of unreleased changes to a version, and adds a new, empty section above it.
 *
 * @param date YYYY-MM-DD
 * @throws Error when nothing is unreleased, or the changelog already has a section for the version
 */
export const released = (changelog: string, version: string, date: string): string => {
  sectionOf(changelog, 'Unreleased')
  if (heading(version).test(changelog)) throw new Error(`the changelog already has a section [${version}]`)
  return changelog.replace(heading('Unreleased'), `## [Unreleased]\n\n## [${version}] - ${date}`)
}
