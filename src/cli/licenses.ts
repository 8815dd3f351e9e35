import { components, licenseTexts } from '#src/lib/build-info.ts' with { type: 'macro' }
import { print } from './print.ts'

const all = Object.freeze(components())

/**
 * Prints the libraries in this executable with their licences, then each licence text once, with the
 * libraries that it covers.
 */
export const licenses = (): void => {
  const width = Math.max(...all.map(({ name, version }) => name.length + version.length)) + 3
  for (const { name, version, license } of all) print(`${`${name} ${version}`.padEnd(width)}${license}`)
  print(`
${`Bun ${Bun.version}`.padEnd(width)}MIT; it links JavaScriptCore and WebKit (LGPL-2.1-or-later), BoringSSL, SQLite
${''.padEnd(width)}and others: https://bun.com/docs/project/license`)
  for (const { libraries, text } of licenseTexts())
    print(`\n${'-'.repeat(80)}\n${libraries.join(', ')}\n\n${text}`)
}
