/** Tests licences and bills of materials of the executable. */
import { expect, test } from 'bun:test'
import { readFileSync } from 'node:fs'
import type { Json } from '#test/support/app.ts'
import { gatehouse } from '#test/support/executable.ts'
import { dependencies } from '../../package.json'

const printed = async (...args: string[]): Promise<string> => {
  const { code, stdout, stderr } = await gatehouse(args)
  expect([code, stderr]).toEqual([0, ''])
  return stdout
}
const direct = Object.entries(dependencies)

test('RUN-39 licenses names each library with version and licence, and has each licence text once', async () => {
  const [list = '', ...texts] = (await printed('licenses')).split(`\n${'-'.repeat(80)}\n`)
  for (const [name, version] of direct) expect(list).toMatch(new RegExp(`^${name} ${version} +\\S`, 'm'))
  expect(list).toContain(`Bun ${Bun.version}`)
  const bodies = texts.map(text => text.slice(text.indexOf('\n\n')))
  expect(new Set(bodies).size).toBe(bodies.length)
  const jose = texts.filter(text => text.split('\n', 1)[0]?.split(', ').includes('jose'))
  expect(jose).toEqual([expect.stringContaining(readFileSync('node_modules/jose/LICENSE.md', 'utf8').trim())])
})

test('RUN-39 both bills of materials list the libraries with the hashes of the lock file, and what the runtime links', async () => {
  const cyclonedx: Json = JSON.parse(await printed('sbom'))
  const spdx: Json = JSON.parse(await printed('sbom', '--format', 'spdx'))
  const parts = new Map<string, Json>(cyclonedx.components.map((part: Json) => [part.purl, part]))
  expect(parts.size).toBe(cyclonedx.components.length)
  const lock = readFileSync('bun.lock', 'utf8')
  for (const [name, version] of direct) {
    const { hashes } = parts.get(`pkg:npm/${name.replace('@', '%40')}@${version}`)
    expect(lock).toContain(`sha512-${Buffer.from(hashes[0].content, 'hex').toString('base64')}`)
  }
  expect(parts.has(`pkg:npm/bun@${Bun.version}`)).toBe(true)
  expect(parts.has(`pkg:generic/sqlite@${process.versions.sqlite}`)).toBe(true)
  expect([...parts.keys()].filter(purl => /@(undefined|unknown)$/.test(purl))).toEqual([])
  const referred = spdx.packages.flatMap(({ externalRefs }: Json) => externalRefs ?? [])
  expect(referred.map(({ referenceLocator }: Json) => referenceLocator)).toEqual([...parts.keys()])
})
