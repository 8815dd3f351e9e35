import { test } from 'bun:test'
import { existsSync } from 'node:fs'

/**
 * `test`, where the program of a Debian package is there. Where it is missing the test is left out by name, but never in
 * CI, which installs the packages itself: there it runs, and fails for want of them.
 */
export const testWith = (
  debianPackage: string,
  program: string,
): ((name: string, body: () => unknown, timeout?: number) => void) =>
  existsSync(program) || process.env.CI
    ? (name, body, timeout) => test(name, body, timeout)
    : name => console.warn(`left out: "${name}" needs the Debian package ${debianPackage} (${program})`)
