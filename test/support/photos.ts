import { crc32, deflateSync } from 'node:zlib'

/** A chunk of a PNG with its checksum: https://www.w3.org/TR/png-3/#5Chunk-layout */
export const pngChunk = (type: string, data: Buffer = Buffer.alloc(0)): Buffer => {
  const typed = Buffer.concat([Buffer.from(type, 'latin1'), data])
  const [length, sum] = [Buffer.alloc(4), Buffer.alloc(4)]
  length.writeUInt32BE(data.length)
  sum.writeUInt32BE(crc32(typed))
  return Buffer.concat([length, typed, sum])
}

export const pngHeader = (width: number, height: number, rest = [8, 2, 0, 0, 0]): Buffer => {
  const size = Buffer.alloc(8)
  size.writeUInt32BE(width)
  size.writeUInt32BE(height, 4)
  return pngChunk('IHDR', Buffer.concat([size, Buffer.from(rest)]))
}

export const PNG_SIGNATURE = Buffer.from('\x89PNG\r\n\x1a\n', 'latin1')

/** A black picture as PNG, with further chunks before its content. */
export const png = (width = 8, height = 8, ...further: Buffer[]): Buffer =>
  Buffer.concat([
    PNG_SIGNATURE,
    pngHeader(width, height),
    ...further,
    pngChunk('IDAT', deflateSync(Buffer.alloc((width * 3 + 1) * height))),
    pngChunk('IEND'),
  ])

const decoded = (text: string): Buffer => Buffer.from(text, 'base64')

/** Red pictures of 8 × 8 pixels. */
export const jpeg = decoded(
  '/9j/4AAQSkZJRgABAQAAAQABAAD/2wBDABALDA4MChAODQ4SERATGCgaGBYWGDEjJR0oOjM9PDkzODdASFxOQERXRTc4UG1RV19iZ2hnPk1xeXBkeFxlZ2P/2wBDARESEhgVGC8aGi9jQjhCY2NjY2NjY2NjY2NjY2NjY2NjY2NjY2NjY2NjY2NjY2NjY2NjY2NjY2NjY2NjY2NjY2P/wAARCAAIAAgDASIAAhEBAxEB/8QAFQABAQAAAAAAAAAAAAAAAAAAAAX/xAAUEAEAAAAAAAAAAAAAAAAAAAAA/8QAFQEBAQAAAAAAAAAAAAAAAAAABQb/xAAUEQEAAAAAAAAAAAAAAAAAAAAA/9oADAMBAAIRAxEAPwCKALXj/9k=',
)
export const webp = decoded(
  'UklGRjgAAABXRUJQVlA4ICwAAACQAQCdASoIAAgAAsBMJaACdLoAA5gA/u5DH+5sc4twV/9tD/9aH/60P+lAAA==',
)
export const losslessWebp = decoded('UklGRhwAAABXRUJQVlA4TA8AAAAvB8ABAAcQ/Y/+ByKi/wEA')
export const alphaWebp = decoded(
  'UklGRnYAAABXRUJQVlA4WAoAAAAQAAAABwAABwAAQUxQSCQAAAABPyAQSOEwHRGRbTAIScopvEIKKaSQQgr5H0VE//M917EtIwBWUDggLAAAAJABAJ0BKggACAAEAGgloAJ0ugADmAD+6zb/oTY9qK//Qk/+Js/4mz4AAAAA',
)
