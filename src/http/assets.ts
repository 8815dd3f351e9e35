import { createHash } from 'node:crypto'
import { embed } from '#src/lib/embed.ts' with { type: 'macro' }

const files = embed('templates', ['.css', '.js', '.svg'])
const types: Record<string, string> = {
  css: 'text/css; charset=utf-8',
  js: 'text/javascript; charset=utf-8',
  svg: 'image/svg+xml',
}

const urls = new Map<string, string>()
const by_url = new Map<string, { body: string; type: string }>()

const load = (): void => {
  for (const [path, body] of Object.entries(files)) {
    const dot = path.lastIndexOf('.')
    const hash = createHash('sha256').update(body).digest('hex').slice(0, 12)
    const url = `/assets/${path.slice(0, dot)}.${hash}${path.slice(dot)}`
    urls.set(path, url)
    by_url.set(url, { body, type: types[path.slice(dot + 1)] ?? 'application/octet-stream' })
  }
}

/** The address of an embedded file (`style.css`), which changes whenever its content does. */
export const assetUrl = (path: string): string | undefined => {
  if (urls.size === 0) load()
  return urls.get(path)
}

/** The answer for a path under `/assets/`; undefined when no such file is embedded. */
export const asset = (pathname: string): Response | undefined => {
  if (urls.size === 0) load()
  const found = by_url.get(pathname)
  if (!found) return undefined
  return new Response(found.body, {
    headers: {
      'content-type': found.type,
      'cache-control': 'public, max-age=31536000, immutable',
      'x-content-type-options': 'nosniff',
      'cross-origin-resource-policy': 'same-origin',
    },
  })
}
