import { crc32 } from 'node:zlib'
import { type Picture, type PictureFault, readDataUri } from './picture.ts'

/*
 * Pictures of people are cleaned without decoding them, so no decoder can be attacked. The file is rebuilt
 * from the parts that a decoder needs. Metadata and thumbnails are dropped, because they may reveal where a
 * picture was taken and by whom. Animation is dropped or refused, because the limits below count one frame.
 * Bytes after the end of the picture are dropped, because they may be another file. A JPEG keeps its
 * orientation tag, because cameras store rotated pixels and browsers use the tag to rotate them back.
 */

/**
 * Maximum bytes of a picture of a person. The limit is low, because the database stores the picture. The
 * script of the pages shrinks larger pictures before the upload.
 */
export const PHOTO_LIMIT = 256 * 1024
/**
 * Maximum width and height in pixels. A decoder needs 4 MB for this size, and no page shows a larger picture
 * of a person.
 */
export const PHOTO_PIXELS = 1024
/**
 * Maximum scans of a JPEG. A decoder processes the whole picture once for each scan. Common files have at
 * most ten scans.
 */
const MAX_SCANS = 64

/** Error that refuses a picture. `fault` is the reason. */
class Refused extends Error {
  readonly fault: PictureFault
  constructor(fault: PictureFault) {
    super(fault)
    this.fault = fault
  }
}

const check = (isGood: boolean, fault: PictureFault = 'content'): void => {
  if (!isGood) throw new Refused(fault)
}

const checkSize = (width: number, height: number): void => {
  check(width > 0 && height > 0)
  check(width <= PHOTO_PIXELS && height <= PHOTO_PIXELS, 'pixels')
}

const PNG_SIGNATURE = Buffer.from('\x89PNG\r\n\x1a\n', 'latin1')
/** Allowed bit depths by colour type: https://www.w3.org/TR/png-3/#table111 */
const pngDepths: Record<number, number[]> = {
  0: [1, 2, 4, 8, 16],
  2: [8, 16],
  3: [1, 2, 4, 8],
  4: [8, 16],
  6: [8, 16],
}

const checkHeader = (data: Buffer): void => {
  check(data.length === 13)
  checkSize(data.readUInt32BE(0), data.readUInt32BE(4))
  const [depth = 0, colour = 0, compression, filter, interlace = 2] = data.subarray(8)
  check(pngDepths[colour]?.includes(depth) === true && compression === 0 && filter === 0 && interlace < 2)
}

/** Keeps the chunks of the still picture: https://www.w3.org/TR/png-3/#5ChunkOrdering */
const cleanPng = (bytes: Buffer): Buffer[] => {
  const kept: Buffer[] = [PNG_SIGNATURE]
  const seen = new Set<string>()
  for (let at = 8, type = ''; type !== 'IEND'; ) {
    const length = bytes.readUInt32BE(at)
    const end = at + 12 + length
    check(end <= bytes.length)
    type = bytes.toString('latin1', at + 4, at + 8)
    check(bytes.readUInt32BE(end - 4) === crc32(bytes.subarray(at + 4, end - 4)))
    // IHDR must be the first chunk and occur once. A file with an unknown critical chunk is refused, because
    // such a chunk may change the meaning of the other chunks.
    check((type === 'IHDR') === (at === 8))
    check(/^[a-z]/.test(type) || ['IHDR', 'PLTE', 'IDAT', 'IEND'].includes(type))
    if (type === 'IHDR') checkHeader(bytes.subarray(at + 8, end - 4))
    if (/^[A-Z]|^tRNS$/.test(type)) kept.push(bytes.subarray(at, end))
    seen.add(type)
    at = end
  }
  check(seen.has('IDAT'))
  return kept
}

const [SOI, EOI, SOS] = [0xd8, 0xd9, 0xda]
/**
 * Markers of the table segments (DHT, DQT and DRI), and markers of the frames. Arithmetic, lossless and
 * hierarchical frames are missing, because browsers do not decode them.
 */
const jpegTables = [0xc4, 0xdb, 0xdd]
const jpegFrames = [0xc0, 0xc1, 0xc2]
/**
 * True for the Adobe segment, which says how the colours are coded: https://www.itu.int/rec/T-REC-T.872
 * section 6.5.3
 */
const isAdobe = (marker: number, segment: Buffer): boolean =>
  marker === 0xee && segment.length === 16 && segment.toString('latin1', 4, 9) === 'Adobe'

/**
 * Returns the orientation that an Exif segment states (Exif 2.32 section 4.6.4, tag 274). Returns undefined
 * for values other than 2 to 8, because the other values neither rotate nor mirror the picture.
 */
const orientationOf = (segment: Buffer): number | undefined => {
  const tiff = segment.subarray(10)
  if (segment.toString('latin1', 4, 10) !== 'Exif\0\0' || tiff.length < 8) return undefined
  const isLittle = tiff.toString('latin1', 0, 2) === 'II'
  const short = (at: number) => (isLittle ? tiff.readUInt16LE(at) : tiff.readUInt16BE(at))
  const first = isLittle ? tiff.readUInt32LE(4) : tiff.readUInt32BE(4)
  for (let at = first + 2; at + 12 <= tiff.length && at < first + 2 + 12 * short(first); at += 12)
    if (short(at) === 274) return short(at + 8) >= 2 && short(at + 8) <= 8 ? short(at + 8) : undefined
  return undefined
}

/** Returns an Exif segment that contains the orientation only. */
const exifOf = (orientation: number): Buffer => {
  const entry = Buffer.from([0x12, 0x01, 3, 0, 1, 0, 0, 0, orientation, 0, 0, 0])
  const directory = Buffer.concat([Buffer.from([8, 0, 0, 0, 1, 0]), entry, Buffer.alloc(4)])
  return Buffer.concat([Buffer.from('\xff\xe1\0\x22Exif\0\0II*\0', 'latin1'), directory])
}

/**
 * Returns the index of the marker that follows the entropy-coded data. Restart markers are part of the data.
 */
const endOfScan = (bytes: Buffer, from: number): number => {
  for (let at = bytes.indexOf(0xff, from); at >= 0; at = bytes.indexOf(0xff, at + 1)) {
    const next = bytes[at + 1] ?? 0
    if (next !== 0 && next !== 0xff && !(next >= 0xd0 && next <= 0xd7)) return at
  }
  throw new Refused('content')
}

/**
 * Keeps the orientation, the Adobe segment, the tables, one frame and the scans of this frame (ITU-T T.81
 * section B.2).
 */
const cleanJpeg = (bytes: Buffer): Buffer[] => {
  const kept: Buffer[] = []
  let orientation: number | undefined
  let frames = 0
  let scans = 0
  for (let at = 2; ; ) {
    check(bytes.readUInt8(at) === 0xff)
    const marker = bytes.readUInt8(at + 1)
    if (marker === 0xff) {
      at += 1
      continue
    }
    if (marker === EOI) break
    check(marker >= 0xc0 && marker !== SOI)
    let end = at + 2 + bytes.readUInt16BE(at + 2)
    check(end > at + 3 && end <= bytes.length)
    const segment = bytes.subarray(at, end)
    const isFrame = jpegFrames.includes(marker)
    if (isFrame) {
      checkSize(segment.readUInt16BE(7), segment.readUInt16BE(5))
      frames += 1
    }
    if (marker === SOS) {
      check(frames === 1)
      scans += 1
      end = endOfScan(bytes, end)
    }
    if (isFrame || marker === SOS || jpegTables.includes(marker) || isAdobe(marker, segment))
      kept.push(bytes.subarray(at, end))
    else check(marker === 0xfe || (marker >= 0xe0 && marker <= 0xef))
    if (marker === 0xe1) orientation ??= orientationOf(segment)
    at = end
  }
  check(frames === 1 && scans > 0 && scans <= MAX_SCANS)
  const exif = orientation === undefined ? [] : [exifOf(orientation)]
  return [bytes.subarray(0, 2), ...exif, ...kept, Buffer.from([0xff, EOI])]
}

const chunkOf = (type: string, data: Buffer): Buffer => {
  const head = Buffer.alloc(8)
  head.write(type, 'latin1')
  head.writeUInt32LE(data.length, 4)
  return Buffer.concat([head, data, Buffer.alloc(data.length % 2)])
}

/**
 * Returns the width and height that the bitstream states: https://www.rfc-editor.org/rfc/rfc9649#section-2.5
 * and section 2.6.
 */
const webpSize = (type: string, data: Buffer): [number, number] => {
  if (type === 'VP8L') {
    check(data.readUInt8(0) === 0x2f)
    const bits = data.readUInt32LE(1)
    check(bits >>> 29 === 0)
    return [(bits & 0x3fff) + 1, ((bits >>> 14) & 0x3fff) + 1]
  }
  // A VP8 bitstream must begin with a key frame and its start code:
  // https://www.rfc-editor.org/rfc/rfc6386#section-9.1
  check((data.readUInt8(0) & 1) === 0 && data.readUIntBE(3, 3) === 0x9d012a)
  return [data.readUInt16LE(6) & 0x3fff, data.readUInt16LE(8) & 0x3fff]
}

/** Keeps the bitstream of a still picture and its alpha channel: RFC 9649 section 2.7. */
const cleanWebp = (bytes: Buffer): Buffer[] => {
  const total = bytes.readUInt32LE(4) + 8
  check(total <= bytes.length)
  const parts = new Map<string, Buffer>()
  for (let at = 12; at + 8 <= total; ) {
    const type = bytes.toString('latin1', at, at + 4)
    const end = at + 8 + bytes.readUInt32LE(at + 4)
    check(end <= total && type !== 'ANIM' && type !== 'ANMF' && !parts.has(type))
    parts.set(type, bytes.subarray(at + 8, end))
    at = end + (end % 2)
  }
  const lossy = parts.get('VP8 ')
  const whole = parts.get('VP8L')
  const type = lossy ? 'VP8 ' : 'VP8L'
  const data = lossy ?? whole
  if (!data || (lossy && whole)) throw new Refused('content')
  const [width, height] = webpSize(type, data)
  checkSize(width, height)
  const alpha = lossy && parts.get('ALPH')
  const canvas = Buffer.alloc(10)
  canvas.writeUInt8(0x10)
  canvas.writeUIntLE(width - 1, 4, 3)
  canvas.writeUIntLE(height - 1, 7, 3)
  const kept = alpha ? [chunkOf('VP8X', canvas), chunkOf('ALPH', alpha)] : []
  const body = Buffer.concat([Buffer.from('WEBP', 'latin1'), ...kept, chunkOf(type, data)])
  return [chunkOf('RIFF', body)]
}

const formats = {
  png: { begins: (bytes: Buffer) => bytes.subarray(0, 8).equals(PNG_SIGNATURE), clean: cleanPng },
  jpg: { begins: (bytes: Buffer) => bytes.readUIntBE(0, 3) === 0xffd8ff, clean: cleanJpeg },
  webp: {
    begins: (bytes: Buffer) =>
      bytes.toString('latin1', 0, 4) === 'RIFF' && bytes.toString('latin1', 8, 12) === 'WEBP',
    clean: cleanWebp,
  },
} as const

/**
 * Returns a picture of a person (PNG, JPEG or WebP) without metadata. Returns the reason when the picture is
 * refused. A JPEG keeps its orientation. The type is detected from the content.
 */
export const cleanPhoto = (bytes: Buffer): Picture | PictureFault => {
  if (bytes.length > PHOTO_LIMIT) return 'bytes'
  if (bytes.length < 16) return 'content'
  const found = Object.entries(formats).find(([, { begins }]) => begins(bytes))
  if (!found) return 'content'
  try {
    return { type: found[0] as keyof typeof formats, bytes: Buffer.concat(found[1].clean(bytes)) }
  } catch (error) {
    // In a truncated file a read goes beyond the end and throws a RangeError.
    return error instanceof Refused ? error.fault : 'content'
  }
}

/** Cleans the picture in a data URI with {@link cleanPhoto}. The type that the URI names is ignored. */
export const readPhoto = (uri: string): Picture | PictureFault => {
  const read = readDataUri(uri, PHOTO_LIMIT)
  return typeof read === 'string' ? read : cleanPhoto(read.bytes)
}
