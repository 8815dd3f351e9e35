import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'

/**
 * The files of a folder of the repository as `{ path: text }`, for the given extensions. A Bun macro: it runs while the
 * caller is transpiled or bundled, so that the executable carries the texts and reads no file.
 * https://bun.com/docs/bundler/macros
 */
export const embed = (folder: string, extensions: string[]): Record<string, string> => {
  const root = join(import.meta.dir, '../..', folder)
  const paths = readdirSync(root, { recursive: true, encoding: 'utf8' }).sort()
  const wanted = paths.filter(path => extensions.some(extension => path.endsWith(extension)))
  return Object.fromEntries(
    wanted.map(path => [path.replaceAll('\\', '/'), readFileSync(join(root, path), 'utf8')]),
  )
}
