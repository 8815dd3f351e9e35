import { describe, expect, test } from 'bun:test'
import { cleanPhoto } from '#src/pages/photo.ts'
import type { Picture } from '#src/pages/picture.ts'
import {
  alphaWebp,
  jpeg,
  losslessWebp,
  PNG_SIGNATURE,
  png,
  pngChunk,
  pngHeader,
  webp,
} from '#test/support/photos.ts'

const SECRET = Buffer.from('<script>alert(1)</script> 52.5N 13.4E')
const cleaned = (bytes: Buffer): Picture => {
  const picture = cleanPhoto(bytes)
  if (typeof picture === 'string') throw new Error(picture)
  return picture
}
/** A JPEG segment. */
const segment = (marker: number, data: Buffer): Buffer => {
  const head = Buffer.from([0xff, marker, 0, 0])
  head.writeUInt16BE(data.length + 2, 2)
  return Buffer.concat([head, data])
}
const riffChunk = (type: string, data: Buffer): Buffer => {
  const head = Buffer.alloc(8)
  head.write(type, 'latin1')
  head.writeUInt32LE(data.length, 4)
  return Buffer.concat([head, data, Buffer.alloc(data.length % 2)])
}
/** A WebP with further chunks at its end. */
const webpWith = (base: Buffer, ...chunks: Buffer[]): Buffer =>
  riffChunk('RIFF', Buffer.concat([base.subarray(8), ...chunks]))
const withByte = (bytes: Buffer, at: number, value: number): Buffer => {
  const changed = Buffer.from(bytes)
  changed[at] = value
  return changed
}
const startOf = (bytes: Buffer, ...marker: number[]): number => bytes.indexOf(Buffer.from(marker))

describe('PEO-34 a picture keeps nothing but what a decoder needs', () => {
  test.each<[string, Buffer, Buffer]>([
    [
      'PNG with texts',
      png(8, 8, pngChunk('tEXt', SECRET), pngChunk('eXIf', SECRET), pngChunk('iCCP', SECRET)),
      png(),
    ],
    ['PNG with an archive behind it', Buffer.concat([png(), SECRET]), png()],
    ['PNG with an animation', png(8, 8, pngChunk('acTL', SECRET), pngChunk('fdAT', SECRET)), png()],
    [
      'JPEG with Exif, a comment and a thumbnail',
      Buffer.concat([
        jpeg.subarray(0, 2),
        segment(0xe1, SECRET),
        segment(0xfe, SECRET),
        segment(0xe0, Buffer.concat([Buffer.from('JFXX'), SECRET])),
        jpeg.subarray(2),
        SECRET,
      ]),
      cleaned(jpeg).bytes,
    ],
    ['WebP with Exif and XMP', webpWith(webp, riffChunk('EXIF', SECRET), riffChunk('XMP ', SECRET)), webp],
    ['WebP with a script behind it', Buffer.concat([losslessWebp, SECRET]), losslessWebp],
  ])('%s', (_, bytes, expected) => {
    expect(bytes.includes(SECRET)).toBe(true)
    expect(cleaned(bytes).bytes.equals(expected)).toBe(true)
  })

  test('and a clean picture stays as it is', () => {
    for (const [type, bytes] of [
      ['png', png(1024, 1024)],
      ['png', png(8, 8, pngChunk('tRNS', Buffer.alloc(6)))],
      ['jpg', cleaned(jpeg).bytes],
      ['webp', webp],
      ['webp', losslessWebp],
      ['webp', alphaWebp],
    ] as const)
      expect(cleanPhoto(bytes)).toEqual({ type, bytes: Buffer.from(bytes) as Picture['bytes'] })
    expect(alphaWebp.includes(Buffer.from('ALPH'))).toBe(true)
    const largest = png(8, 8, pngChunk('tEXt', Buffer.alloc(256 * 1024 - png().length - 12)))
    expect([largest.length, cleaned(largest).bytes.equals(png())]).toEqual([256 * 1024, true])
  })

  test('a JPEG keeps restart markers, up to 64 scans, and the 12 bytes that say how its colours are coded', () => {
    const [start, body, end] = [jpeg.subarray(0, 2), jpeg.subarray(2, -2), jpeg.subarray(-2)]
    const plain = cleaned(jpeg).bytes.subarray(2, -2)
    const restarts = Buffer.from(Array.from({ length: 8 }, (_, i) => [0x12, 0xff, 0xd0 + i]).flat())
    expect(cleaned(Buffer.concat([start, body, restarts, end])).bytes).toEqual(
      Buffer.concat([start, plain, restarts, end]),
    )
    const scan = jpeg.subarray(startOf(jpeg, 0xff, 0xda), -2)
    const scans = Array<Buffer>(63).fill(scan)
    expect(cleaned(Buffer.concat([start, body, ...scans, end])).bytes).toEqual(
      Buffer.concat([start, plain, ...scans, end]),
    )
    const adobe = Buffer.concat([Buffer.from('Adobe'), Buffer.alloc(7, 1)])
    expect(cleaned(Buffer.concat([start, segment(0xee, adobe), body, end])).bytes).toEqual(
      Buffer.concat([start, segment(0xee, adobe), plain, end]),
    )
    const longer = segment(0xee, Buffer.concat([adobe, SECRET]))
    expect(cleaned(Buffer.concat([start, longer, body, end])).bytes).toEqual(cleaned(jpeg).bytes)
  })
})

describe('PEO-34 a JPEG keeps the orientation that its camera noted', () => {
  /** Returns an Exif segment. The orientation is between other entries, and the last entry names a place. */
  const exif = (order: 'II' | 'MM', value: number, entries = 3): Buffer => {
    const tiff = Buffer.alloc(8 + 2 + 12 * 3 + 4)
    const short = (at: number, number: number) =>
      order === 'II' ? tiff.writeUInt16LE(number, at) : tiff.writeUInt16BE(number, at)
    tiff.write(order, 'latin1')
    short(2, 42)
    tiff[order === 'II' ? 4 : 7] = 8
    short(8, entries)
    for (const [i, tag] of [271, 274, 34_853].entries()) {
      short(10 + 12 * i, tag)
      short(12 + 12 * i, 3)
      tiff[10 + 12 * i + (order === 'II' ? 4 : 7)] = 1
      short(18 + 12 * i, tag === 274 ? value : 7)
    }
    return segment(0xe1, Buffer.concat([Buffer.from('Exif\0\0'), tiff, SECRET]))
  }
  const taken = (...segments: Buffer[]) =>
    cleaned(Buffer.concat([jpeg.subarray(0, 2), ...segments, jpeg.subarray(2)])).bytes
  const plain = cleaned(jpeg).bytes

  test.each([
    ['II', 6],
    ['MM', 3],
    ['MM', 8],
  ] as const)('%s, %i, and nothing else', (order, value) => {
    const bytes = taken(exif(order, value))
    const [head, rest] = [bytes.subarray(0, 38), bytes.subarray(38)]
    expect(head.toString('latin1')).toBe(
      `\xff\xd8\xff\xe1\0\x22Exif\0\0II*\0\x08\0\0\0\x01\0\x12\x01\x03\0\x01\0\0\0${String.fromCharCode(value)}\0\0\0\0\0\0\0`,
    )
    expect(rest.equals(plain.subarray(2))).toBe(true)
    expect(cleaned(bytes).bytes.equals(bytes)).toBe(true)
  })

  test('the first one that turns the picture', () => {
    const turned = taken(exif('II', 6))
    expect(taken(exif('II', 6), exif('II', 3)).equals(turned)).toBe(true)
    expect(taken(segment(0xe1, SECRET), exif('II', 6)).equals(turned)).toBe(true)
  })

  test('none that is upright, unknown, missing or cut off', () => {
    const cut = exif('II', 6).subarray(0, 30)
    cut.writeUInt16BE(28, 2)
    const far = Buffer.from(exif('II', 6))
    far.writeUInt32LE(0xffff_fff0, 14)
    const short = segment(0xe1, Buffer.from('Exif\0\0II*\0'))
    for (const each of [exif('II', 1), exif('MM', 0), exif('MM', 9), exif('II', 6, 1), cut, far, short])
      expect(taken(each).equals(plain)).toBe(true)
  })
})

describe('PEO-34 is refused before anything decodes it', () => {
  const size = startOf(jpeg, 0xff, 0xc0) + 5
  const scan = jpeg.subarray(startOf(jpeg, 0xff, 0xda), -2)
  const headed = (width: number, height: number, rest?: number[]) =>
    Buffer.concat([PNG_SIGNATURE, pngHeader(width, height, rest), pngChunk('IDAT'), pngChunk('IEND')])
  test.each<[string, string, Buffer]>([
    ['a large file', 'bytes', Buffer.alloc(256 * 1024 + 1)],
    ['an empty file', 'content', Buffer.alloc(0)],
    ['HTML', 'content', SECRET],
    ['SVG', 'content', Buffer.from('<svg xmlns="http://www.w3.org/2000/svg"><script/></svg>')],
    ['GIF', 'content', Buffer.from('GIF89a\x01\0\x01\0\x80\0\0\0\0\0\xff\xff\xff;', 'latin1')],
    ['a PNG of gigapixels', 'pixels', headed(50_000, 50_000)],
    ['a PNG one pixel too wide', 'pixels', headed(1025, 1)],
    ['a PNG without pixels', 'content', headed(0, 8)],
    ['a PNG of an unknown colour type', 'content', headed(8, 8, [8, 5, 0, 0, 0])],
    ['a PNG of an unknown compression', 'content', headed(8, 8, [8, 2, 1, 0, 0])],
    ['a PNG of an unknown filter', 'content', headed(8, 8, [8, 2, 0, 1, 0])],
    ['a PNG of an unknown interlacing', 'content', headed(8, 8, [8, 2, 0, 0, 2])],
    ['a PNG with a wrong checksum', 'content', withByte(png(), 30, 0)],
    ['a PNG that ends early', 'content', png().subarray(0, -6)],
    ['a PNG with two headers', 'content', png(8, 8, pngHeader(9999, 9999))],
    ['a PNG with an unknown critical chunk', 'content', png(8, 8, pngChunk('EVIL'))],
    ['a PNG without content', 'content', Buffer.concat([PNG_SIGNATURE, pngHeader(8, 8), pngChunk('IEND')])],
    ['a PNG whose chunk is longer than the file', 'content', withByte(png(), 33, 0xff)],
    ['a JPEG too high', 'pixels', withByte(jpeg, size, 0xff)],
    ['a JPEG without height', 'content', withByte(withByte(jpeg, size, 0), size + 1, 0)],
    ['a JPEG with arithmetic coding', 'content', withByte(jpeg, size - 4, 0xc9)],
    [
      'a JPEG of many scans',
      'content',
      Buffer.concat([jpeg.subarray(0, -2), ...Array(64).fill(scan), jpeg.subarray(-2)]),
    ],
    [
      'a JPEG with two frames',
      'content',
      Buffer.concat([jpeg.subarray(0, size + 14), jpeg.subarray(size - 5)]),
    ],
    [
      'a JPEG with a scan before its frame',
      'content',
      Buffer.concat([jpeg.subarray(0, size - 5), scan, jpeg.subarray(size - 5)]),
    ],
    ['a JPEG without an end', 'content', jpeg.subarray(0, -2)],
    ['a WebP too wide', 'pixels', withByte(webp, 27, 0x3f)],
    ['a WebP that is animated', 'content', webpWith(webp, riffChunk('ANIM', SECRET))],
    ['a WebP with a frame of an animation', 'content', webpWith(webp, riffChunk('ANMF', SECRET))],
    ['a WebP with the same chunk twice', 'content', webpWith(webp, webp.subarray(12))],
    ['a WebP of a later version', 'content', withByte(losslessWebp, 24, (losslessWebp[24] ?? 0) | 0x20)],
    ['a WebP with two pictures', 'content', webpWith(webp, losslessWebp.subarray(12))],
    ['a WebP longer than its file', 'content', webp.subarray(0, -2)],
    ['a WebP without a key frame', 'content', withByte(webp, 20, 1)],
  ])('%s', (_, fault, bytes) => {
    expect(cleanPhoto(bytes)).toBe(fault as 'content')
  })

  test('any file of random bytes, or a picture with some changed, without an exception', () => {
    let state = 7
    const random = (below: number) => {
      state = (Math.imul(state, 1_103_515_245) + 12_345) >>> 0
      return (state >>> 8) % below
    }
    for (let run = 0; run < 3000; run++) {
      const bytes = Buffer.from([png(), jpeg, webp, losslessWebp, alphaWebp][run % 5] ?? jpeg)
      for (let n = random(4); n >= 0; n--) bytes[random(bytes.length)] = random(256)
      const picture = cleanPhoto(bytes.subarray(0, random(bytes.length + 1)))
      if (typeof picture !== 'string') expect(cleanPhoto(picture.bytes)).toEqual(picture)
    }
  })
})
