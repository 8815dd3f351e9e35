import { statSync, writeFileSync } from 'node:fs'
import { gunzipSync } from 'node:zlib'
import { emptyImage } from './empty-image.ts' with { type: 'macro' }

const image = Object.freeze({ gzip: emptyImage() })

/**
 * Writes an empty database over a file without content, so that no migrations run; they take 15 ms of CPU
 * time. The write is not atomic, so it is only for files that need not survive.
 */
export const prepareTemporary = (path: string): void => {
  if ((statSync(path, { throwIfNoEntry: false })?.size ?? 0) > 0) return
  writeFileSync(path, gunzipSync(Buffer.from(image.gzip, 'base64')), { mode: 0o600 })
}
