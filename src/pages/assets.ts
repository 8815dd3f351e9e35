import { createHash } from 'node:crypto'
import { embed, embedBinary } from '#src/lib/embed.ts' with { type: 'macro' }
import { type AssetType, assetAnswer } from './asset-answer.ts'

const files = Object.freeze(embed('templates', ['.css', '.js', '.svg']))
/**
 * Icon for home screens, 180 pixels square, as base64. Browsers and phones request the icon at fixed
 * addresses.
 */
const { 'touch-icon.png': icon = '' } = embedBinary('templates', ['.png'])

const urls = new Map<string, string>()
const by_url = new Map<string, { body: string; type: AssetType }>()

const load = (): void => {
  for (const [path, body] of Object.entries(files)) {
    const dot = path.lastIndexOf('.')
    const hash = createHash('sha256').update(body).digest('hex').slice(0, 12)
    const url = `/assets/${path.slice(0, dot)}.${hash}${path.slice(dot)}`
    urls.set(path, url)
    by_url.set(url, { body, type: path.slice(dot + 1) as AssetType })
  }
}

/** Returns the content of an embedded file, such as `themes/ember.css`. */
export const assetText = (path: string): string | undefined => files[path]

/** Returns the URL of an embedded file, such as `style.css`. The URL contains a hash of the content. */
export const assetUrl = (path: string): string | undefined => {
  if (urls.size === 0) load()
  return urls.get(path)
}

/**
 * Returns the response for a path below `/assets/`. Returns undefined when no embedded file has this path.
 */
export const asset = (pathname: string): Response | undefined => {
  if (urls.size === 0) load()
  const found = by_url.get(pathname)
  return found && assetAnswer(found.body, found.type)
}

/**
 * Returns the icon for home screens. Caches keep the icon for only a day, because its address has no hash.
 */
export const touchIcon = (): Response =>
  assetAnswer(Uint8Array.fromBase64(icon), 'png', { 'cache-control': 'public, max-age=86400' })
