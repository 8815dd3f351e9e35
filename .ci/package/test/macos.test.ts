/** The executable for macOS, which cannot run here. */
import { expect, test } from 'bun:test'
import { createHash } from 'node:crypto'
import { join } from 'node:path'
import { $ } from 'bun'
import { version } from '../../../package.json'
import { built, place } from './support.ts'

const LC_CODE_SIGNATURE = 0x1d
const CODE_DIRECTORY = 0xfade0c02
/** Flag of a signature without a certificate. */
const ADHOC = 0x2

// macOS kills an arm64 program whose signature is missing or wrong. The layout of a signature:
// https://github.com/apple-oss-distributions/xnu/blob/main/osfmk/kern/cs_blobs.h
test('the ad-hoc signature covers each page', async () => {
  const at = place()
  await $`tar -xzf ${built(`gatehouse-${version}-darwin-arm64.tar.gz`)} --strip-components=1`.cwd(at)
  const file = Buffer.from(await Bun.file(join(at, 'gatehouse')).bytes())

  let command = 32
  while (file.readUInt32LE(command) !== LC_CODE_SIGNATURE) command += file.readUInt32LE(command + 4)
  const signature = file.subarray(file.readUInt32LE(command + 8))
  const blobs = Array.from({ length: signature.readUInt32BE(8) }, (_, i) =>
    signature.subarray(signature.readUInt32BE(16 + 8 * i)),
  )
  const directory = blobs.find(blob => blob.readUInt32BE(0) === CODE_DIRECTORY) ?? Buffer.alloc(0)
  expect(directory.readUInt32BE(12) & ADHOC).toBe(ADHOC)

  const limit = directory.readUInt32BE(32)
  const size = 2 ** directory.readUInt8(39)
  // The signature covers all bytes before it.
  expect(limit).toBe(signature.byteOffset - file.byteOffset)
  const hashes = Array.from({ length: Math.ceil(limit / size) }, (_, page) =>
    createHash('sha256')
      .update(file.subarray(page * size, Math.min((page + 1) * size, limit)))
      .digest(),
  )
  const [start, count] = [directory.readUInt32BE(16), directory.readUInt32BE(28)]
  expect(directory.subarray(start, start + 32 * count).equals(Buffer.concat(hashes))).toBe(true)
})
