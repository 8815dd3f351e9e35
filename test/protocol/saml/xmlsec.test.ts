import { afterAll, expect, test } from 'bun:test'
import { createPrivateKey, X509Certificate } from 'node:crypto'
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { namespaces as ns } from '#src/protocol/saml/names.ts'
import { needs } from '#test/support/debian.ts'
import { party } from '#test/support/saml/genuine.ts'
import { encode } from '#test/support/saml/identity-provider.ts'
import { ordinary } from '#test/support/saml/response-parts.ts'
import { encryptByXmlsec, makeKeyFiles, respondByXmlsec, XMLSEC } from '#test/support/saml/xmlsec.ts'
import { expecting, refusal } from './expecting.ts'

if (needs('xmlsec1', XMLSEC)) {
  const folder = mkdtempSync(join(tmpdir(), 'xmlsec-'))
  afterAll(() => rmSync(folder, { recursive: true }))
  const idp = makeKeyFiles(folder, 'idp')
  const sp = makeKeyFiles(folder, 'sp')
  const expected = expecting({
    keys: [new X509Certificate(readFileSync(idp.certificate)).publicKey],
    decryption_key: createPrivateKey(readFileSync(sp.key)),
  })

  test('S-36 a response whose InclusiveNamespaces name unused prefixes is accepted as xmlsec1 signs it', () => {
    const xml = respondByXmlsec(ordinary(party), 'both', idp, 'xs xsi')
    expect(refusal(encode(xml), expected)).toBeUndefined()
    expect(refusal(encode(xml.replace('ada-4711', 'admin')), expected)).toBe('bad_signature')
  })

  for (const cipher of [`${ns.xenc11}aes128-gcm`, `${ns.xenc11}aes256-gcm`])
    test(`S-36 xmlsec1 signs, then encrypts with ${cipher}`, () => {
      const signed = respondByXmlsec(ordinary(party), 'assertion', idp)
      const xml = encryptByXmlsec(signed, sp.certificate, cipher)
      expect(xml).not.toContain('ada-4711')
      expect(refusal(encode(xml), expected)).toBeUndefined()
    })

  test('S-34 xmlsec1 encrypts with AES-CBC: accepted only from a provider that opts in', () => {
    const signed = respondByXmlsec(ordinary(party), 'assertion', idp)
    const xml = encode(encryptByXmlsec(signed, sp.certificate, `${ns.xenc}aes256-cbc`))
    expect(refusal(xml, expected)).toBe('bad_algorithm')
    expect(refusal(xml, { ...expected, allow_cbc: true })).toBeUndefined()
  })
}
