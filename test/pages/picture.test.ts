import { describe, expect, test } from 'bun:test'
import { PICTURE_LIMIT, PIXEL_LIMIT, pictureUri, readPicture } from '#src/pages/picture.ts'

const SIZE: [number, number] = [300, 200]
const png = (width: number, height: number) => {
  const bytes = Buffer.from('\x89PNG\r\n\x1a\n\0\0\0\rIHDR........', 'latin1')
  bytes.writeUInt32BE(width, 16)
  bytes.writeUInt32BE(height, 20)
  return bytes
}
/**
 * Returns a JPEG like those of cameras and progressive encoders. It has other segments, a table (C4) and a
 * fill byte before the frame.
 */
const jpg = (width: number, height: number) => {
  const bytes = Buffer.from(
    'ffd8 ffe00004abcd ffc40003ff ffff c2001108 00000000 03'.replaceAll(' ', ''),
    'hex',
  )
  bytes.writeUInt16BE(height, bytes.length - 5)
  bytes.writeUInt16BE(width, bytes.length - 3)
  return bytes
}
const webp = (kind: string, payload: Uint8Array) =>
  Buffer.concat([Buffer.from(`RIFF\x01\x02\x03\x04WEBP${kind}\x01\x02\x03\x04`, 'latin1'), payload])
const lossy = (width: number, height: number) =>
  webp('VP8 ', Buffer.from(new Uint16Array([0, 0x9d00, 0x2a01, 0x4000 | width, 0xc000 | height]).buffer))
const lossless = (width: number, height: number) =>
  webp(
    'VP8L',
    Buffer.from([0x2f, ...new Uint8Array(new Uint32Array([(width - 1) | ((height - 1) << 14)]).buffer)]),
  )
const extended = (width: number, height: number) => {
  const bytes = Buffer.alloc(10)
  bytes.writeUIntLE(width - 1, 4, 3)
  bytes.writeUIntLE(height - 1, 7, 3)
  return webp('VP8X', bytes)
}
const heads: Record<string, Buffer<ArrayBuffer>> = {
  'image/png': png(...SIZE),
  'image/jpeg': jpg(...SIZE),
  'image/webp': lossy(...SIZE),
  'image/svg+xml': Buffer.from('<svg xmlns="http://www.w3.org/2000/svg"/>'),
}
const uri = (type: string, bytes: Uint8Array | string) =>
  `data:${type};base64,${Buffer.from(bytes).toString('base64')}`
const read = (text: string) => {
  const picture = readPicture(text)
  return typeof picture === 'string' ? { fault: picture } : picture
}
const svg = (text: string) => readOf('image/svg+xml', text)
const readOf = (type: string, bytes: Uint8Array | string) => read(uri(type, bytes))

describe('a picture in a data URI', () => {
  test('is read with its type, and written back unchanged', () => {
    for (const [type, bytes] of Object.entries(heads)) {
      const picture = readPicture(uri(type, bytes))
      if (typeof picture === 'string') throw new Error(`${type}: ${picture}`)
      expect(picture.bytes).toEqual(bytes)
      expect(pictureUri(picture)).toBe(uri(type, bytes))
    }
    expect(pictureUri({ type: 'css', bytes: Buffer.of() })).toBeUndefined()
  })

  test('may be percent-encoded, and may name its character set', () => {
    for (const head of [
      'data:image/svg+xml,',
      'data:image/svg+xml;charset=utf-8,',
      'DATA:IMAGE/SVG+XML;utf8,',
    ])
      expect([head, read(`${head}%3Csvg%2F%3E`)]).toMatchObject([
        head,
        head.endsWith(';utf8,') ? { fault: 'form' } : { type: 'svg' },
      ])
  })

  test('must have the content that its type says', () => {
    for (const type of Object.keys(heads))
      for (const [other, bytes] of Object.entries(heads))
        expect('fault' in readOf(type, bytes)).toBe(type !== other)
    const bad = [
      '',
      'https://example.com/logo.png',
      '//example.com/logo.png',
      '/logo.png',
      'logo.svg',
      'data:,',
      'data:image/png;base64,',
      'data:image/png;base64,iVBO!',
      'data:image/svg+xml,%ZZ',
      uri('image/gif', 'GIF89a'),
      uri('text/html', '<svg/>'),
    ]
    for (const text of bad) expect([text, readPicture(text)]).toEqual([text, 'form'])
    expect(svg('<p><svg/>')).toEqual({ fault: 'content' })
    expect(readOf('image/svg+xml', Buffer.from([0x3c, 0x73, 0x76, 0x67, 0x3e, 0xff]))).toEqual({
      fault: 'content',
    })
  })

  test('has a limited number of bytes', () => {
    const sized = (size: number) => {
      const bytes = Buffer.alloc(size)
      png(...SIZE).copy(bytes)
      return readOf('image/png', bytes)
    }
    expect(sized(PICTURE_LIMIT)).toMatchObject({ type: 'png' })
    expect(sized(PICTURE_LIMIT + 1)).toEqual({ fault: 'bytes' })
    expect(sized(PICTURE_LIMIT * 20)).toEqual({ fault: 'bytes' })
  })

  test.each([
    ['image/png', png],
    ['image/jpeg', jpg],
    ['image/webp', lossy],
    ['image/webp', lossless],
    ['image/webp', extended],
  ] as const)('has a limited number of pixels: %s %p', (type, made) => {
    expect(readOf(type, made(PIXEL_LIMIT, PIXEL_LIMIT))).not.toHaveProperty('fault')
    for (const [width, height] of [
      [PIXEL_LIMIT + 1, 1],
      [1, PIXEL_LIMIT + 1],
      [16_000, 16_000],
    ] as const)
      expect([width, readOf(type, made(width, height))]).toEqual([width, { fault: 'pixels' }])
    const whole = made(...SIZE)
    for (let length = 3; length < whole.length - 1; length++)
      expect(readOf(type, whole.subarray(0, length))).toEqual({ fault: 'content' })
  })

  test('has at least one pixel', () => {
    expect(readOf('image/png', png(0, 9))).toEqual({ fault: 'content' })
    expect(readOf('image/jpeg', jpg(9, 0))).toEqual({ fault: 'content' })
    expect(readOf('image/webp', lossy(0, 9))).toEqual({ fault: 'content' })
  })

  test('SVG starts with its root element, after any prolog', () => {
    for (const text of [
      '\ufeff<?xml version="1.0"?>\n<!-- one -->\n<!-- two --><svg >',
      '<!DOCTYPE svg PUBLIC "-//W3C//DTD SVG 1.1//EN" "http://www.w3.org/Graphics/SVG/1.1/DTD/svg11.dtd">\n<svg>',
    ])
      expect(svg(text)).toMatchObject({ type: 'svg' })
    for (const text of [
      '<svgx>',
      '<html><svg>',
      'text <svg>',
      '<!DOCTYPE svg [<!ENTITY a "b">]><svg>',
      '<!-- <svg> -->',
    ])
      expect([text, svg(text)]).toEqual([text, { fault: 'content' }])
  })

  test('is refused quickly, however long its prolog', () => {
    for (const text of [
      '<!---->'.repeat(9_000),
      '<!--'.repeat(16_000),
      ' '.repeat(65_000),
      `<?xml ${'?'.repeat(65_000)}`,
    ])
      expect(svg(text)).toEqual({ fault: 'content' })
  })
})
