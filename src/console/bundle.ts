import { createHash } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { brotliCompressSync, gzipSync } from 'node:zlib'

/** A file of the console, compressed when it is built. Both forms are base64. */
export interface Bundled {
  name: string
  brotli: string
  gzip: string
}

const here = import.meta.dir
const templates = join(here, '../../templates')

const named = (kind: 'js' | 'css', text: Uint8Array | string): Bundled => ({
  name: `${createHash('sha256').update(text).digest('hex').slice(0, 12)}.${kind}`,
  brotli: brotliCompressSync(text).toString('base64'),
  gzip: gzipSync(text, { level: 9 }).toString('base64'),
})

/** Runs the bundler in a process of its own: a macro runs inside a bundler. */
const build = (entry: string): Uint8Array => {
  const bundler = [process.execPath, 'build', '--target=browser', '--minify', '--production', entry]
  const { success, stdout, stderr } = Bun.spawnSync(bundler)
  if (!success) throw new Error(stderr.toString())
  return stdout
}

/**
 * Returns script and style of the console. This is a Bun macro: the executable contains the result, and from
 * source it is made when the module is loaded. https://bun.com/docs/bundler/macros
 */
export const bundleConsole = (): { script: Bundled; style: Bundled } => {
  const tokens = readFileSync(join(templates, 'themes/default.css'), 'utf8')
  const style = readFileSync(join(here, 'app/style.css'), 'utf8')
  return {
    script: named('js', build(join(here, 'app/main.tsx'))),
    style: named('css', `${tokens}${style}`.replace(/\/\*.*?\*\/|\n\s*/gs, '')),
  }
}
