import { createHash } from 'node:crypto'
import { closeSync, constants, fstatSync, openSync, readdirSync, readFileSync, realpathSync } from 'node:fs'
import { join, sep } from 'node:path'
import type { Config } from '#src/config.ts'
import type { Context } from '#src/context.ts'
import { SECOND } from '#src/lib/duration.ts'
import { type AssetType, assetAnswer, assetUrl, HARMLESS, isAssetType } from './assets.ts'
import type { Brand } from './data.ts'

type Base = Pick<Context, 'config' | 'clock' | 'log'>

const STYLE_LIMIT = 256 * 1024
const FILE_LIMIT = 1024 * 1024
/** How old what we know of a file may be. */
const LOOK_AGAIN = 3 * SECOND
/** Names come from the settings of organizations: more than these are forgotten and looked up anew. */
const MOST_NAMES = 1_000

/** What a theme may be called. */
export const THEME_NAME = /^[a-z0-9-]{1,64}$/

interface Sheet {
  url: string
  body: Uint8Array<ArrayBuffer>
}

interface Theme {
  looked_at: number
  sheet: Sheet | undefined
  /** Pages that were just shown may still ask for it. */
  former: Sheet | undefined
  /** What was logged of it, so that it is said once. */
  complaint: string | undefined
}

const folders = new WeakMap<Config, Map<string, Theme>>()

const themesOf = (config: Config): Map<string, Theme> => {
  const themes = folders.get(config) ?? new Map<string, Theme>()
  if (themes.size >= MOST_NAMES) themes.clear()
  folders.set(config, themes)
  return themes
}

const folderOf = ({ data_dir }: Config): string => join(data_dir, 'themes')

/**
 * A file of the folder, or undefined when there is none. Throws when it is none of ours to serve: a link that leads out, a
 * device, too large.
 */
const readWithin = (folder: string, path: string, limit: number): Uint8Array<ArrayBuffer> | undefined => {
  let file: number
  try {
    const real = realpathSync(join(folder, path))
    if (!real.startsWith(realpathSync(folder) + sep)) throw new Error('it leads out of the folder')
    // A pipe would keep us waiting for who writes to it.
    file = openSync(real, constants.O_RDONLY | (constants.O_NONBLOCK ?? 0) | (constants.O_NOFOLLOW ?? 0))
  } catch (error) {
    if (['ENOENT', 'ENOTDIR'].includes((error as NodeJS.ErrnoException).code ?? '')) return undefined
    throw error
  }
  try {
    const stat = fstatSync(file)
    if (!stat.isFile()) throw new Error('it is no file')
    if (stat.size > limit) throw new Error(`it is larger than ${limit / 1024} KiB`)
    return new Uint8Array(readFileSync(file))
  } finally {
    closeSync(file)
  }
}

/** The stylesheet `NAME.css` of the folder as an asset; throws like `readWithin`. */
const readSheet = (config: Config, name: string): Sheet | undefined => {
  const body = readWithin(folderOf(config), `${name}.css`, STYLE_LIMIT)
  if (!body) return undefined
  const hash = createHash('sha256').update(body).digest('hex').slice(0, 12)
  return { url: `/assets/themes/${name}.${hash}.css`, body }
}

const isBuiltIn = (name: string): boolean => assetUrl(`themes/${name}.css`) !== undefined

const look = ({ config, clock, log }: Base, name: string): Theme => {
  const themes = themesOf(config)
  const known = themes.get(name)
  const now = clock.now()
  if (known && Math.abs(now - known.looked_at) < LOOK_AGAIN) return known
  let sheet: Sheet | undefined
  let complaint: string | undefined
  try {
    sheet = THEME_NAME.test(name) ? readSheet(config, name) : undefined
    if (!sheet && !isBuiltIn(name)) complaint = 'there is no such theme'
  } catch (error) {
    complaint = error instanceof Error ? error.message : String(error)
  }
  if (complaint && complaint !== known?.complaint)
    log.warn({ event: 'theme', theme: name, reason: complaint }, 'pages have a built-in theme instead')
  const former = sheet?.url === known?.sheet?.url ? known?.former : known?.sheet
  const theme = { looked_at: now, sheet, former, complaint }
  themes.set(name, theme)
  return theme
}

/**
 * The looks of a theme. One of the data directory is laid over the built-in one of its name, or over the default one, so
 * that it says only what it changes; what is neither is the default theme.
 */
export const themeOf = (base: Base, name = 'default'): Required<Pick<Brand, 'theme' | 'sheets'>> => {
  const { sheet } = look(base, name)
  if (sheet) return { theme: name, sheets: [sheet.url] }
  return name === 'default' || isBuiltIn(name) ? { theme: name, sheets: [] } : themeOf(base)
}

/** Of pages that belong to no organization. */
export const houseBrand = (base: Base): Brand => ({ name: 'Gatehouse', ...themeOf(base) })

/**
 * The answer for a stylesheet of the data directory, or for a file beside it (`/assets/themes/NAME/FILE`); undefined for
 * any other.
 */
export const themeAsset = (base: Base, pathname: string): Response | undefined => {
  const [, name = '', rest = ''] = /^\/assets\/themes\/([a-z0-9-]{1,64})([./].+)$/.exec(pathname) ?? []
  if (rest.startsWith('.')) {
    if (!themesOf(base.config).has(name) && !existsIn(base.config, name)) return undefined
    const { sheet, former } = look(base, name)
    const found = [sheet, former].find(candidate => candidate?.url === pathname)
    return found && assetAnswer(found.body, 'css')
  }
  const [, file, extension = ''] = /^\/([\w-][\w.-]*\.(\w+))$/.exec(rest) ?? []
  return file && isAssetType(extension) ? besides(base.config, `${name}/${file}`, extension) : undefined
}

/** Without a hash in its address it may be kept for minutes only. */
const besides = (config: Config, path: string, type: AssetType): Response | undefined => {
  try {
    const body = readWithin(folderOf(config), path, FILE_LIMIT)
    return body && assetAnswer(body, type, { ...HARMLESS, 'cache-control': 'public, max-age=300' })
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

/** What is wrong with the themes of the data directory, and with those that are used, a line each. */
export const checkThemes = (config: Config, used: readonly string[]): string[] => {
  const files = listed(config)
  const unusable = files.flatMap(file => {
    const name = file.slice(0, -'.css'.length)
    try {
      if (!THEME_NAME.test(name)) return [`themes/${file}: a name has lower-case letters, digits and hyphens`]
      readSheet(config, name)
      return []
    } catch (error) {
      return [`themes/${file}: ${error instanceof Error ? error.message : error}`]
    }
  })
  const unknown = used.filter(name => !isBuiltIn(name) && !files.includes(`${name}.css`))
  return [...unusable, ...unknown.map(name => `no theme is called ${name}`)]
}
