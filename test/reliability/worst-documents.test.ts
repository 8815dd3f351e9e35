import { afterAll, expect, test } from 'bun:test'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { deflateRawSync } from 'node:zlib'
import { parseYaml, YamlError } from '#src/lib/yaml.ts'
import { SamlError } from '#src/protocol/saml/error.ts'
import { namespaces } from '#src/protocol/saml/names.ts'
import { readPlaces } from '#src/sessions/geoip.ts'
import { addSaml, certifiedProvider, genuineFor, partyOf, post } from '#test/federation/saml/world.ts'
import { startApp } from '#test/support/app.ts'
import { mmdbOf } from '#test/support/mmdb.ts'
import { forgeries } from '#test/support/saml/forgeries.ts'
import { encode } from '#test/support/saml/identity-provider.ts'
import { figure } from './faults.ts'
import { timed } from './hold.ts'
import { type Answer, fill, worst } from './worst.ts'

const app = await startApp()
const idp = await certifiedProvider()
await addSaml(app, idp, 'open', { allow_idp_initiated: true })
// The worker starts with the first document.
await post(app, 'open', { SAMLResponse: encode('<a/>') })

let networks = 0
for (const { name, make } of forgeries.filter(forgery => /^(S-2[56]|H-0)/.test(forgery.name)))
  worst(`SAML response, ${name}`, [400, 413], () => {
    const SAMLResponse = encode(make(genuineFor(idp, partyOf(app, 'open'))))
    return post(app, 'open', { SAMLResponse }, `2001:db8:${(networks++).toString(16)}::1`)
  })

const METADATA = 1_000_000
const entity = (content: string) =>
  `<md:EntityDescriptor xmlns:md="${namespaces.md}" entityID="https://idp.example/">${content}</md:EntityDescriptor>`
const names = Array.from({ length: 200 }, (_, i) => `<n${i}></n${i}>`).join('')
const metadata: [name: string, document: string][] = [
  ['as many names as are allowed, and blanks', entity(names + ' '.repeat(METADATA - 20_000))],
  ['elements without end', entity(fill('<a/>', METADATA - 200))],
  ['comments without end', fill('<!--', METADATA)],
  ['comments and comments', entity(fill('<!---->', METADATA - 200))],
]
for (const [name, metadata_xml] of metadata)
  worst(`SAML metadata, ${name}`, [422], () =>
    app.admin('POST', '/identity-providers', { type: 'saml', alias: 'new', name: 'New', metadata_xml }),
  )

/** Maximum length of a deflated request, in characters of the query. */
const DEFLATED = 8 * 1024
const request = async (xml: string): Promise<Answer> => {
  const encoded = deflateRawSync(Buffer.from(xml)).toString('base64')
  expect(encoded.length).toBeLessThanOrEqual(DEFLATED)
  try {
    await app.context.xml.run('org_default', 'authn_request', encoded)
    return { status: 200 }
  } catch (error) {
    if (error instanceof SamlError) return { status: 400 }
    throw error
  }
}
worst('deflated request of 6 MB of blanks', [400], () => request(' '.repeat(6_000_000)))
worst('deflated request of names, as large as is inflated', [400], () =>
  request(entity(Array.from({ length: 1_500 }, (_, i) => `<n${i}></n${i}>`).join(''))),
)

const readYaml = async (text: string): Promise<Answer> => {
  try {
    parseYaml(text)
    return { status: 200 }
  } catch (error) {
    if (error instanceof YamlError) return { status: 422 }
    throw error
  }
}
const SETTINGS = 64 * 1024
const level = (i: number) =>
  `${'abcdefghi'[i]}: &${'abcdefghi'[i]} [${Array(9)
    .fill(`*${'abcdefgh'[i - 1]}`)
    .join()}]`
const BOMB = ['a: &a [x]', ...Array.from({ length: 8 }, (_, i) => level(i + 1))].join('\n')
const yaml: [name: string, text: string][] = [
  ['an alias bomb', BOMB],
  ['settings of nothing but [', '['.repeat(SETTINGS)],
  ['settings of anchors', fill('- &a x\n', SETTINGS)],
  ['settings of colons', fill('a: ', SETTINGS)],
  ['settings of quotes', fill('"', SETTINGS)],
]
// The library is loaded with the first file.
await readYaml('a')
// The settings file is read before the server answers requests, so reading it has no time limit.
for (const [name, text] of yaml)
  test(`R-22 worst input: YAML, ${name}`, async () => {
    const { result, spent } = await timed(() => readYaml(text))
    figure('R-22', `YAML, ${name}: ${spent.toFixed(0)} ms`)
    expect([200, 422]).toContain(result.status)
  }, 60_000)

const folder = mkdtempSync(join(tmpdir(), 'gatehouse-test-'))
afterAll(() => rmSync(folder, { recursive: true, force: true }))
const longText = Buffer.concat([Buffer.of(0x5f, 15, 0, 0), Buffer.alloc(2 ** 20, 0x61)])
const records: [name: string, record: Uint8Array][] = [
  ['lists in lists', Buffer.alloc(20_000, Buffer.of(1, 4))],
  ['a list of 16 million', Buffer.of(31, 4, 255, 255, 255)],
  ['a table of 16 million', Buffer.concat([Buffer.of(255, 255, 255, 255), Buffer.alloc(9_000, 0x40)])],
  ['a text of a mebibyte', longText],
]
for (const [i, [name, record]] of records.entries()) {
  const file = join(folder, `${i}.mmdb`)
  writeFileSync(file, mmdbOf([198, 51, 100], record))
  const locate = await readPlaces(file)
  worst(`MaxMind, a thousand look-ups of ${name}`, [200], async () => {
    for (let round = 0; round < 1_000; round++) expect(locate('198.51.100.7')).toBe('')
    return { status: 200 }
  })
}
