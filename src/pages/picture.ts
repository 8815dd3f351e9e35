import { pictureSize } from './picture-size.ts'

/**
 * Maximum bytes of a logo. The limit is low, because a browser loads the logo at its first visit, and the
 * admin API receives the logo as text in JSON.
 */
export const PICTURE_LIMIT = 64 * 1024
/**
 * Maximum width and height in pixels. A picture of a few KiB could otherwise unpack to gigabytes in the
 * browser.
 */
export const PIXEL_LIMIT = 4096

export type PictureType = 'png' | 'svg' | 'webp' | 'jpg'
/** A checked picture: its type and bytes. */
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

/**
 * Matches one construct that may precede the root element of an SVG. A document type must not contain
 * declarations, because a few entities could expand to gigabytes. Scripts in an SVG need no check, because
 * they run neither in an `<img>` nor under `SANDBOX_HEADERS`.
 */
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

/**
 * Reason for refusing a picture: not a data URI of a supported type (`form`), too many bytes (`bytes`), bytes
 * that are not a picture of this type (`content`), or too many pixels (`pixels`).
 */
export type PictureFault = 'form' | 'bytes' | 'content' | 'pixels'

/**
 * Reads a data URI (https://www.rfc-editor.org/rfc/rfc2397) of at most `limit` bytes. Returns the bytes and
 * the type that the URI names, or the reason for refusing the URI. This function does not check the bytes, so
 * the bytes may have another type.
 */
export const readDataUri = (uri: string, limit: number): Picture | PictureFault => {
  const [head, name = '', base64] =
    /^data:([a-z]+\/[a-z+]+)(?:;charset=utf-?8)?(;base64)?,(?=.)/is.exec(uri) ?? []
  const type = media[name.toLowerCase()]
  if (!head || !type) return 'form'
  if (uri.length > limit * 3 + 64) return 'bytes'
  const bytes = decode(uri.slice(head.length), base64 !== undefined)
  if (!bytes) return 'form'
  return bytes.length > limit ? 'bytes' : { type, bytes }
}

/** Reads the data URI of a picture. Returns the picture, or the reason for refusing it. */
export const readPicture = (uri: string): Picture | PictureFault => {
  const read = readDataUri(uri, PICTURE_LIMIT)
  if (typeof read === 'string') return read
  const { type, bytes } = read
  if (!begins[type](bytes)) return 'content'
  if (type === 'svg') return read
  const size = pictureSize(type, bytes)
  if (!size) return 'content'
  return Math.max(...size) > PIXEL_LIMIT ? 'pixels' : read
}

/** Returns the picture as a data URI. Returns undefined for an unknown type. */
export const pictureUri = ({ type, bytes }: { type: string; bytes: Uint8Array }): string | undefined => {
  const name = Object.keys(media).find(candidate => media[candidate] === type)
  return name && `data:${name};base64,${Buffer.from(bytes).toString('base64')}`
}
