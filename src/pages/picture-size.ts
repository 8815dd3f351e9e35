type Size = [width: number, height: number]

/** Reads the header of a PNG, which is always the first chunk (https://www.w3.org/TR/png-3/#11IHDR). */
const png = (bytes: Buffer): Size | undefined =>
  bytes.toString('latin1', 12, 16) === 'IHDR' ? [bytes.readUInt32BE(16), bytes.readUInt32BE(20)] : undefined

/**
 * Skips segments up to the frame header, SOF0 to SOF15 (ITU-T T.81 section B.2.2). The markers C4, C8 and CC
 * in this range are not frame headers.
 */
const jpg = (bytes: Buffer): Size | undefined => {
  let at = 2
  while (bytes.readUInt8(at) === 0xff) {
    const marker = bytes.readUInt8(at + 1)
    if (marker === 0xff) at += 1
    else if (marker >= 0xc0 && marker <= 0xcf && ![0xc4, 0xc8, 0xcc].includes(marker))
      return [bytes.readUInt16BE(at + 7), bytes.readUInt16BE(at + 5)]
    else at += 2 + bytes.readUInt16BE(at + 2)
  }
  return undefined
}

/**
 * Reads the header of each of the three WebP formats: https://www.rfc-editor.org/rfc/rfc9649#section-2.5 to
 * section 2.7.
 */
const webp = (bytes: Buffer): Size | undefined => {
  switch (bytes.toString('latin1', 12, 16)) {
    case 'VP8 ':
      return [bytes.readUInt16LE(26) & 0x3fff, bytes.readUInt16LE(28) & 0x3fff]
    case 'VP8L': {
      const bits = bytes.readUInt32LE(21)
      return [(bits & 0x3fff) + 1, ((bits >>> 14) & 0x3fff) + 1]
    }
    case 'VP8X':
      return [bytes.readUIntLE(24, 3) + 1, bytes.readUIntLE(27, 3) + 1]
    default:
      return undefined
  }
}

const readers = { png, jpg, webp }

/**
 * Returns the width and height in pixels that the file header states. Returns undefined when the header is
 * missing or truncated, or when a side has no pixels.
 */
export const pictureSize = (type: keyof typeof readers, bytes: Buffer): Size | undefined => {
  try {
    const size = readers[type](bytes)
    return size?.every(pixels => pixels > 0) ? size : undefined
  } catch {
    return undefined
  }
}
