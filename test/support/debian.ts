import { test } from 'bun:test'
import { existsSync } from 'node:fs'

/**
 * Returns true if `path` of a Debian package exists. In CI a missing package is an error, because `.ci/run`
 * installs all packages. Elsewhere the test is left out, and the output names the package.
 */
export const needs = (name: string, path: string): boolean => {
  if (existsSync(path)) return true
  if (process.env.CI) throw new Error(`the Debian package ${name} is missing (${path})`)
  console.log(`left out: needs the Debian package ${name}`)
  return false
}

/** Declares a test that needs the program of a Debian package. */
export const testWith = (
  name: string,
  path: string,
): ((title: string, body: () => Promise<void>, timeout?: number) => void) =>
  needs(name, path) ? (title, body, timeout) => test(title, body, timeout) : () => {}
