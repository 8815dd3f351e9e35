import { createHash } from 'node:crypto'
import { closeSync, constants, fstatSync, openSync, readdirSync, readFileSync, realpathSync } from 'node:fs'
import { join, sep } from 'node:path'
import type { Config } from '#src/config.ts'
import type { Core, Themes } from '#src/context.ts'
import { SECOND } from '#src/lib/duration.ts'
import { embeddedNames } from '#src/lib/embed.ts' with { type: 'macro' }
import { type AssetType, assetAnswer, isAssetType, SANDBOX_HEADERS } from './asset-answer.ts'
import type { Brand } from './data.ts'

/**
 * Maximum bytes of a theme in the data directory. The limit is needed, because loaded themes are kept in
 * memory. The maximum for the `custom_css` of an organization is smaller
 * (directory/organizations/asset-address.ts).
 */
const STYLE_LIMIT = 256 * 1024
/** Maximum bytes of a font or picture in the themes folder, enough for a font with many scripts. */
const FILE_LIMIT = 1024 * 1024
/**
 * Milliseconds after which a theme is read again. The time is short, so that an operator soon sees a changed
 * theme.
 */
const CHECK_INTERVAL = 3 * SECOND
/**
 * Number of themes at which the cache is cleared. The limit is needed, because each organization can name any
 * theme.
 */
const MAX_NAMES = 1_000

/** Allowed names of themes, which are parts of file names and URLs. */
export const THEME_NAME = /^[a-z0-9-]{1,64}$/

interface Sheet {
  url: string
  body: Uint8Array<ArrayBuffer>
}

interface Theme {
  checked_at: number
  sheet: Sheet | undefined
  /**
   * The previous version of the sheet. Pages that were rendered before the change still request this version.
   */
  former: Sheet | undefined
  /** Problem that was logged last. The same problem is not logged again. */
  problem: string | undefined
}

const folderOf = ({ data_dir }: Config): string => join(data_dir, 'themes')

/**
 * Reads a file of the folder. Returns undefined when the file does not exist. Anyone can request these files.
 *
 * @throws Error for a file that cannot be read or has more than `limit` bytes, for anything but a regular
 * file, and for a symbolic link to a file outside the folder
 */
const readWithin = (folder: string, path: string, limit: number): Uint8Array<ArrayBuffer> | undefined => {
  let file: number
  try {
    const real = realpathSync(join(folder, path))
    if (!real.startsWith(realpathSync(folder) + sep)) throw new Error('the link leads out of the folder')
    // Without O_NONBLOCK, opening a named pipe would wait for a writer.
    file = openSync(real, constants.O_RDONLY | (constants.O_NONBLOCK ?? 0) | (constants.O_NOFOLLOW ?? 0))
  } catch (error) {
    if (['ENOENT', 'ENOTDIR'].includes((error as NodeJS.ErrnoException).code ?? '')) return undefined
    throw error
  }
  try {
    const stat = fstatSync(file)
    if (!stat.isFile()) throw new Error('not a regular file')
    if (stat.size > limit) throw new Error(`larger than ${limit / 1024} KiB`)
    return new Uint8Array(readFileSync(file))
  } finally {
    closeSync(file)
  }
}

/**
 * Reads the stylesheet `NAME.css` of the folder as an asset.
 *
 * @throws Error in the same cases as `readWithin`
 */
const readSheet = (config: Config, name: string): Sheet | undefined => {
  const body = readWithin(folderOf(config), `${name}.css`, STYLE_LIMIT)
  if (!body) return undefined
  const hash = createHash('sha256').update(body).digest('hex').slice(0, 12)
  return { url: `/assets/themes/${name}.${hash}.css`, body }
}

const builtIn: readonly string[] = Object.freeze(embeddedNames('templates/themes', '.css'))

const isBuiltIn = (name: string): boolean => builtIn.includes(name)

const loadTheme = (
  { config, log }: Pick<Core, 'config' | 'clock' | 'log'>,
  name: string,
  now: number,
  known?: Theme,
): Theme => {
  let sheet: Sheet | undefined
  let problem: string | undefined
  try {
    sheet = THEME_NAME.test(name) ? readSheet(config, name) : undefined
    if (!sheet && !isBuiltIn(name)) problem = 'there is no such theme'
  } catch (error) {
    problem = error instanceof Error ? error.message : String(error)
  }
  if (problem && problem !== known?.problem)
    log.warn(
      { event: 'theme', theme: name, reason: problem },
      'a theme cannot be used: pages use a built-in theme instead',
    )
  const former = sheet?.url === known?.sheet?.url ? known?.former : known?.sheet
  return { checked_at: now, sheet, former, problem }
}

/**
 * Opens the built-in themes and the themes of the data directory. The files of the data directory are checked
 * for changes.
 */
export const openThemes = (parts: Pick<Core, 'config' | 'clock' | 'log'>): Themes => {
  const { config, clock } = parts
  const themes = new Map<string, Theme>()

  const load = (name: string): Theme => {
    const known = themes.get(name)
    const now = clock.now()
    if (known && Math.abs(now - known.checked_at) < CHECK_INTERVAL) return known
    const theme = loadTheme(parts, name, now, known)
    if (themes.size >= MAX_NAMES) themes.clear()
    themes.set(name, theme)
    return theme
  }

  const find: Themes['find'] = (name = 'default') => {
    const { sheet } = load(name)
    if (sheet) return { theme: name, sheets: [sheet.url] }
    return name === 'default' || isBuiltIn(name) ? { theme: name, sheets: [] } : find()
  }

  const asset: Themes['asset'] = pathname => {
    const [, name = '', rest = ''] = /^\/assets\/themes\/([a-z0-9-]{1,64})([./].+)$/.exec(pathname) ?? []
    if (rest.startsWith('.')) {
      if (!themes.has(name) && !existsIn(config, name)) return undefined
      const { sheet, former } = load(name)
      const found = [sheet, former].find(candidate => candidate?.url === pathname)
      return found && assetAnswer(found.body, 'css')
    }
    const [, file, extension = ''] = /^\/([\w-][\w.-]*\.(\w+))$/.exec(rest) ?? []
    return file && isAssetType(extension) ? fileBeside(config, `${name}/${file}`, extension) : undefined
  }

  return { find, asset }
}

/** Returns the brand of a page that belongs to no organization. */
export const defaultBrand = ({ themes }: Pick<Core, 'themes'>): Brand => ({
  name: 'Gatehouse',
  ...themes.find(),
})

/**
 * Returns a file of the themes folder that a stylesheet uses. The URL of the file has no hash, so caches keep
 * it for only five minutes.
 */
const fileBeside = (config: Config, path: string, type: AssetType): Response | undefined => {
  try {
    const body = readWithin(folderOf(config), path, FILE_LIMIT)
    return body && assetAnswer(body, type, { ...SANDBOX_HEADERS, 'cache-control': 'public, max-age=300' })
  } catch {
    return undefined
  }
}

const listed = (config: Config): string[] => {
  try {
    return readdirSync(folderOf(config)).filter(file => file.endsWith('.css'))
  } catch {
    return []
  }
}

const existsIn = (config: Config, name: string): boolean => listed(config).includes(`${name}.css`)

/**
 * Returns a line for each theme in the data directory that cannot be used. Also returns a line for each name
 * in `used` for which no theme exists.
 */
export const checkThemes = (config: Config, used: readonly string[]): string[] => {
  const files = listed(config)
  const unusable = files.flatMap(file => {
    const name = file.slice(0, -'.css'.length)
    try {
      if (!THEME_NAME.test(name))
        return [`themes/${file}: use lower-case letters, digits and hyphens in the name`]
      readSheet(config, name)
      return []
    } catch (error) {
      return [`themes/${file}: ${error instanceof Error ? error.message : error}`]
    }
  })
  const unknown = used.filter(name => !isBuiltIn(name) && !files.includes(`${name}.css`))
  return [...unusable, ...unknown.map(name => `there is no theme named "${name}"`)]
}
