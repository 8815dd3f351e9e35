/**
 * Tests the parts of xml-crypto that src/protocol/saml/signature.ts uses without `SignedXml`:
 * `ExclusiveCanonicalization.process` with `inclusiveNamespacesPrefixList` and `ancestorNamespaces`.
 * xml-crypto exports these parts but does not document them. Gatehouse reads the identity of a user from
 * their output, so each byte of the output has to be right. https://www.w3.org/TR/xml-exc-c14n/
 */
import { expect, test } from 'bun:test'
import { ExclusiveCanonicalization } from 'xml-crypto'
import { parseXml } from '#src/protocol/saml/xml.ts'

const element = () =>
  parseXml('<o:outer xmlns:o="urn:o" xmlns:x="urn:x"><o:a z="2" b="1">é&amp;<o:b/></o:a></o:outer>')
    .firstChild as Element

const canonicalize = (options: object) => new ExclusiveCanonicalization().process(element(), options)

test('process sorts attributes, closes empty elements and declares used namespaces', () => {
  const ancestorNamespaces = [{ prefix: 'o', namespaceURI: 'urn:o' }]
  expect(canonicalize({ ancestorNamespaces, inclusiveNamespacesPrefixList: [] })).toBe(
    '<o:a xmlns:o="urn:o" b="1" z="2">é&amp;<o:b></o:b></o:a>',
  )
})

test('inclusiveNamespacesPrefixList declares unused prefixes of ancestorNamespaces', () => {
  const ancestorNamespaces = [
    { prefix: 'o', namespaceURI: 'urn:o' },
    { prefix: 'x', namespaceURI: 'urn:x' },
  ]
  expect(canonicalize({ ancestorNamespaces, inclusiveNamespacesPrefixList: ['x'] })).toBe(
    '<o:a xmlns:o="urn:o" xmlns:x="urn:x" b="1" z="2">é&amp;<o:b></o:b></o:a>',
  )
})
