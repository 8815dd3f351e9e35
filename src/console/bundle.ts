import { createHash } from 'node:crypto'
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { basename, join } from 'node:path'
import { brotliCompressSync, gzipSync } from 'node:zlib'

/** A file of the console, compressed in two formats, each in base64. */
export interface Bundled {
  name: string
  brotli: string
  gzip: string
}

/** Files of the console. */
export interface ConsoleFiles {
  files: Bundled[]
  /**
   * Names of the scripts that the first screen needs. The page runs the first script and preloads the other
   * scripts, so that all load at the same time.
   */
  first: string[]
  /** Name of the script with the words of the console, by language. */
  words: Record<string, string>
  style: string
}

const here = import.meta.dir
const templates = join(here, '../../templates')

const packed = (name: string, text: Uint8Array | string): Bundled => ({
  name,
  brotli: brotliCompressSync(text).toString('base64'),
  gzip: gzipSync(text, { level: 9 }).toString('base64'),
})

interface Outputs {
  [path: string]: { entryPoint?: string; imports: { path: string; kind: string }[] }
}

/** Returns the names of the file and of all files that it imports, directly or through other files. */
const neededBy = (path: string, outputs: Outputs): string[] => {
  const needed = new Set([path])
  for (const each of needed)
    for (const { path, kind } of outputs[each]?.imports ?? [])
      if (kind === 'import-statement') needed.add(path)
  return [...needed].map(each => basename(each))
}

/**
 * Runs the bundler in a separate process, because the macro itself runs inside a bundler. The name of each
 * file contains a hash of its content, so browsers can cache the file forever.
 */
const build = (entry: string): Pick<ConsoleFiles, 'first' | 'words'> & { scripts: Bundled[] } => {
  const folder = mkdtempSync(join(tmpdir(), 'console-'))
  const metafile = join(folder, 'meta.json')
  // A chunk below 16 KiB is merged into another chunk, because a separate request would cost more.
  const how = ['--target=browser', '--minify', '--production', '--splitting', '--min-chunk-size=16384']
  const names = ['--entry-naming=[hash].[ext]', '--chunk-naming=[hash].[ext]']
  const where = [`--outdir=${folder}`, `--metafile=${metafile}`]
  const { success, stderr } = Bun.spawnSync([process.execPath, 'build', ...how, ...names, ...where, entry])
  if (!success) throw new Error(stderr.toString())
  const { outputs }: { outputs: Outputs } = JSON.parse(readFileSync(metafile, 'utf8'))
  const paths = Object.keys(outputs)
  const main = paths.find(path => outputs[path]?.entryPoint?.endsWith('main.tsx')) ?? ''
  const scripts = paths.map(path => packed(basename(path), readFileSync(join(folder, path))))
  const words = paths.flatMap(path => {
    const [, language] = /words\/(.+)\.json$/.exec(outputs[path]?.entryPoint ?? '') ?? []
    return language ? [[language, basename(path)]] : []
  })
  rmSync(folder, { recursive: true })
  return { scripts, first: neededBy(main, outputs), words: Object.fromEntries(words) }
}

/**
 * Returns the scripts and the stylesheet of the console. This is a Bun macro: the executable contains the
 * result, and a run from source computes it when the module is loaded. https://bun.com/docs/bundler/macros
 */
export const bundleConsole = (): ConsoleFiles => {
  const tokens = readFileSync(join(templates, 'themes/default.css'), 'utf8')
  const rules = readFileSync(join(here, 'app/style.css'), 'utf8')
  const text = `${tokens}${rules}`.replace(/\/\*.*?\*\/|\n\s*/gs, '')
  const style = packed(`${createHash('sha256').update(text).digest('hex').slice(0, 12)}.css`, text)
  const { scripts, ...loaded } = build(join(here, 'app/main.tsx'))
  return { files: [...scripts, style], ...loaded, style: style.name }
}
