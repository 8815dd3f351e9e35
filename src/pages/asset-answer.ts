const types = {
  css: 'text/css; charset=utf-8',
  js: 'text/javascript; charset=utf-8',
  svg: 'image/svg+xml',
  png: 'image/png',
  webp: 'image/webp',
  jpg: 'image/jpeg',
  woff2: 'font/woff2',
}
export type AssetType = keyof typeof types
/** True for a file extension that is allowed in the assets of pages. */
export const isAssetType = (extension: string): extension is AssetType => Object.hasOwn(types, extension)

const IMMUTABLE = 'public, max-age=31536000, immutable'
/**
 * Headers of an uploaded file and of a file in the themes folder. These headers keep an SVG that is opened as
 * a document from running scripts and from loading anything.
 */
export const SANDBOX_HEADERS = {
  'content-security-policy': "default-src 'none'; style-src 'unsafe-inline'; sandbox",
}

/**
 * Returns the response for a file of the pages. Caches keep the file for a year, because its URL contains a
 * hash of the content. `headers` can set a different caching time.
 */
export const assetAnswer = (
  body: string | Uint8Array<ArrayBuffer>,
  type: AssetType,
  headers: Record<string, string> = {},
): Response =>
  new Response(body, {
    headers: {
      'content-type': types[type],
      'cache-control': IMMUTABLE,
      'cross-origin-resource-policy': 'same-origin',
      ...headers,
    },
  })
