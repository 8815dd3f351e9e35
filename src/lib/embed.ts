import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'

/**
 * Returns the files with the given extensions in a repository folder, as `{ path: text }`. This is a Bun
 * macro: it runs when the caller is transpiled or bundled, so the executable contains the texts.
 * https://bun.com/docs/bundler/macros
 *
 * Callers pass the result to a function such as `Object.freeze`. Otherwise the bundler repeats the texts at
 * each use of the variable.
 */
export const embed = (folder: string, extensions: string[]): Record<string, string> =>
  read(folder, extensions, 'utf8')

/** Returns the same files as {@link embed}, with their bytes in base64. */
export const embedBinary = (folder: string, extensions: string[]): Record<string, string> =>
  read(folder, extensions, 'base64')

/** Returns the names, without extension, of a folder's files that have the extension. This is a Bun macro. */
export const embeddedNames = (folder: string, extension: string): string[] =>
  Object.keys(read(folder, [extension], 'utf8')).map(path => path.slice(0, -extension.length))

const read = (folder: string, extensions: string[], encoding: BufferEncoding): Record<string, string> => {
  const root = join(import.meta.dir, '../..', folder)
  const paths = readdirSync(root, { recursive: true, encoding: 'utf8' }).sort()
  const wanted = paths.filter(path => extensions.some(extension => path.endsWith(extension)))
  return Object.fromEntries(
    wanted.map(path => [path.replaceAll('\\', '/'), readFileSync(join(root, path), encoding)]),
  )
}
