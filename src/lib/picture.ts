export const PICTURE_LIMIT = 64 * 1024

export type PictureType = 'png' | 'svg' | 'webp' | 'jpg'
export interface Picture {
  type: PictureType
  bytes: Buffer<ArrayBuffer>
}

const media: Record<string, PictureType> = {
  'image/png': 'png',
  'image/svg+xml': 'svg',
  'image/webp': 'webp',
  'image/jpeg': 'jpg',
}

/** What may stand before the root element; a document type may have no declarations of its own. */
const prologue = /[\s\ufeff]+|<!--[\s\S]*?-->|<\?xml[^>]*\?>|<!DOCTYPE svg[^>[]*>/y

const isSvg = (bytes: Buffer): boolean => {
  let text: string
  try {
    text = new TextDecoder('utf-8', { fatal: true }).decode(bytes)
  } catch {
    return false
  }
  prologue.lastIndex = 0
  let root = 0
  while (prologue.test(text)) root = prologue.lastIndex
  return /^<svg[\s/>]/.test(text.slice(root, root + 5))
}

const begins: Record<PictureType, (bytes: Buffer) => boolean> = {
  png: bytes => bytes.subarray(0, 8).equals(Buffer.from('\x89PNG\r\n\x1a\n', 'latin1')),
  jpg: bytes => bytes.subarray(0, 3).equals(Buffer.from([0xff, 0xd8, 0xff])),
  webp: bytes => bytes.toString('latin1', 0, 4) === 'RIFF' && bytes.toString('latin1', 8, 12) === 'WEBP',
  svg: isSvg,
}

const decode = (text: string, isBase64: boolean): Buffer<ArrayBuffer> | undefined => {
  if (isBase64) return /^[A-Za-z0-9+/]+={0,2}$/.test(text) ? Buffer.from(text, 'base64') : undefined
  try {
    return Buffer.from(decodeURIComponent(text))
  } catch {
    return undefined
  }
}

/** The picture of a data URI (RFC 2397), when its bytes are of the type that it names and not too many; else undefined. */
export const readPicture = (uri: string): Picture | undefined => {
  if (uri.length > PICTURE_LIMIT * 3 + 64) return undefined
  const [, name = '', base64, text = ''] =
    /^data:([a-z]+\/[a-z+]+)(?:;charset=utf-?8)?(;base64)?,(.+)$/is.exec(uri) ?? []
  const type = media[name.toLowerCase()]
  const bytes = type && decode(text, base64 !== undefined)
  return bytes && bytes.length <= PICTURE_LIMIT && begins[type](bytes) ? { type, bytes } : undefined
}

/** The same the other way round. */
export const pictureUri = ({ type, bytes }: { type: string; bytes: Uint8Array }): string | undefined => {
  const name = Object.keys(media).find(candidate => media[candidate] === type)
  return name && `data:${name};base64,${Buffer.from(bytes).toString('base64')}`
}
