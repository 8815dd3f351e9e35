import { mkdirSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { crc32, deflateRawSync } from 'node:zlib'
import { $ } from 'bun'

/** A file of a package: its text, its bytes, or the path from which it is copied. */
export interface Entry {
  path: string
  content: string | Uint8Array<ArrayBuffer> | { from: string }
  mode?: number
}

/** Returns the content of a file of a package. */
export const bytesOf = async ({ content }: Entry): Promise<Uint8Array<ArrayBuffer>> =>
  typeof content === 'string'
    ? Buffer.from(content)
    : content instanceof Uint8Array
      ? content
      : await Bun.file(content.from).bytes()

/** Writes each entry as a file below `folder`. */
export const lay = async (folder: string, entries: readonly Entry[]): Promise<void> => {
  for (const entry of entries) {
    const path = join(folder, entry.path)
    mkdirSync(dirname(path), { recursive: true })
    writeFileSync(path, await bytesOf(entry), { mode: entry.mode ?? 0o644 })
  }
}

/**
 * Packs a folder into `file` (.tar.gz or .tgz). Order, owner and times are fixed, so the same content gives
 * the same bytes: https://reproducible-builds.org/docs/archives/
 */
export const tar = async (folder: string, file: string, epoch: number): Promise<void> => {
  await $`tar --sort=name --format=ustar --mtime=@${epoch} --owner=0 --group=0 --numeric-owner -C ${folder} -c . --transform s,^\\./,, | gzip -n > ${file}`.quiet()
}

/**
 * Returns a zip archive of the files, with a fixed time:
 * https://pkware.cachefly.net/webdocs/casestudies/APPNOTE.TXT
 */
export const zip = async (entries: readonly Entry[]): Promise<Uint8Array<ArrayBuffer>> => {
  const local: Buffer[] = []
  const central: Buffer[] = []
  let offset = 0
  for (const entry of entries) {
    const bytes = await bytesOf(entry)
    const packed = deflateRawSync(bytes)
    const name = Buffer.from(entry.path)
    const common = Buffer.alloc(26)
    common.writeUInt16LE(20, 0)
    common.writeUInt16LE(8, 4)
    // 1980-01-01, the earliest date of the format.
    common.writeUInt16LE(0x21, 8)
    common.writeUInt32LE(crc32(bytes), 10)
    common.writeUInt32LE(packed.length, 14)
    common.writeUInt32LE(bytes.length, 18)
    common.writeUInt16LE(name.length, 22)
    const header = Buffer.concat([Buffer.from('PK\x03\x04', 'latin1'), common, name])
    const record = Buffer.alloc(14)
    // The attributes of the entries are Unix modes.
    record.writeUInt32LE(((0o100000 | (entry.mode ?? 0o644)) << 16) >>> 0, 6)
    record.writeUInt32LE(offset, 10)
    central.push(Buffer.concat([Buffer.from('PK\x01\x02\x14\x03', 'latin1'), common, record, name]))
    local.push(header, packed)
    offset += header.length + packed.length
  }
  const directory = Buffer.concat(central)
  const end = Buffer.alloc(22)
  end.write('PK\x05\x06', 0, 'latin1')
  end.writeUInt16LE(entries.length, 8)
  end.writeUInt16LE(entries.length, 10)
  end.writeUInt32LE(directory.length, 12)
  end.writeUInt32LE(offset, 16)
  return Buffer.concat([...local, directory, end])
}
