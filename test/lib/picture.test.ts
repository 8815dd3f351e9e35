import { describe, expect, test } from 'bun:test'
import { PICTURE_LIMIT, pictureUri, readPicture } from '#src/lib/picture.ts'

const heads: Record<string, Buffer<ArrayBuffer>> = {
  'image/png': Buffer.from('\x89PNG\r\n\x1a\n rest', 'latin1'),
  'image/jpeg': Buffer.from([0xff, 0xd8, 0xff, 0xe0, 1]),
  'image/webp': Buffer.from('RIFF\x01\x02\x03\x04WEBPVP8 ', 'latin1'),
  'image/svg+xml': Buffer.from('<svg xmlns="http://www.w3.org/2000/svg"/>'),
}
const uri = (type: string, bytes: Uint8Array | string) =>
  `data:${type};base64,${Buffer.from(bytes).toString('base64')}`
const svg = (text: string) => readPicture(uri('image/svg+xml', text))

describe('a picture in a data URI', () => {
  test('is read with its type, and written back the same', () => {
    for (const [type, bytes] of Object.entries(heads)) {
      const picture = readPicture(uri(type, bytes))
      expect(picture?.bytes).toEqual(bytes)
      expect(picture && pictureUri(picture)).toBe(uri(type, bytes))
    }
    expect(pictureUri({ type: 'css', bytes: Buffer.of() })).toBeUndefined()
  })

  test('may be percent-encoded, and name its character set', () => {
    for (const head of [
      'data:image/svg+xml,',
      'data:image/svg+xml;charset=utf-8,',
      'DATA:IMAGE/SVG+XML;utf8,',
    ])
      expect([head, readPicture(`${head}%3Csvg%2F%3E`)?.type]).toEqual([
        head,
        head.endsWith(';utf8,') ? undefined : 'svg',
      ])
  })

  test('must be what it says', () => {
    for (const type of Object.keys(heads))
      for (const [other, bytes] of Object.entries(heads))
        expect(readPicture(uri(type, bytes)) !== undefined).toBe(type === other)
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
      'data:image/svg+xml,%3Cp%3E%3Csvg%2F%3E',
      uri('image/gif', 'GIF89a'),
      uri('text/html', '<svg/>'),
      uri('image/svg+xml', Buffer.from([0x3c, 0x73, 0x76, 0x67, 0x3e, 0xff])),
    ]
    for (const text of bad) expect([text, readPicture(text)]).toEqual([text, undefined])
  })

  test('has so many bytes and no more', () => {
    const png = (size: number) => {
      const bytes = Buffer.alloc(size)
      heads['image/png']?.copy(bytes)
      return uri('image/png', bytes)
    }
    expect(readPicture(png(PICTURE_LIMIT))?.bytes.length).toBe(65_536)
    expect(readPicture(png(PICTURE_LIMIT + 1))).toBeUndefined()
    expect(readPicture(png(PICTURE_LIMIT * 20))).toBeUndefined()
  })

  test('as SVG begins with its root, after what may stand before it', () => {
    for (const text of [
      '\ufeff<?xml version="1.0"?>\n<!-- one -->\n<!-- two --><svg >',
      '<!DOCTYPE svg PUBLIC "-//W3C//DTD SVG 1.1//EN" "http://www.w3.org/Graphics/SVG/1.1/DTD/svg11.dtd">\n<svg>',
    ])
      expect(svg(text)?.type).toBe('svg')
    for (const text of [
      '<svgx>',
      '<html><svg>',
      'text <svg>',
      '<!DOCTYPE svg [<!ENTITY a "b">]><svg>',
      '<!-- <svg> -->',
    ])
      expect([text, svg(text)]).toEqual([text, undefined])
  })

  test('is refused soon, however often what may stand before it does', () => {
    for (const text of [
      '<!---->'.repeat(9_000),
      '<!--'.repeat(16_000),
      ' '.repeat(65_000),
      `<?xml ${'?'.repeat(65_000)}`,
    ])
      expect(svg(text)).toBeUndefined()
  })
})
