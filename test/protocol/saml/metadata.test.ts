import { describe, expect, test } from 'bun:test'
import { SamlError } from '#src/protocol/saml/error.ts'
import { readMetadata } from '#src/protocol/saml/metadata.ts'
import { namespaces as ns, POST_BINDING, REDIRECT_BINDING } from '#src/protocol/saml/names.ts'
import { renderMetadata } from '#src/protocol/saml/own-metadata.ts'
import { attributeOf, find, findAll, parseXml, textOf } from '#src/protocol/saml/xml.ts'
import { readGenuine } from '#test/support/saml/genuine.ts'

const pem = readGenuine().certificate.toString()
const base64 = pem.replace(/-----[^-]+-----|\s/g, '')

describe('the metadata of Gatehouse', () => {
  const sp = {
    entity_id: 'https://id.example/saml/corp/metadata',
    acs_url: 'https://id.example/saml/corp/acs',
    certificate: base64,
    sign_requests: true,
  }
  const root = parseXml(renderMetadata(sp))
  const descriptor = find(root, 'md:SPSSODescriptor')

  test('names the entity, one POST endpoint and what is signed', () => {
    expect(attributeOf(root, 'entityID')).toBe(sp.entity_id)
    expect(attributeOf(descriptor, 'AuthnRequestsSigned')).toBe('true')
    expect(attributeOf(descriptor, 'WantAssertionsSigned')).toBe('true')
    const services = findAll(descriptor, 'md:AssertionConsumerService')
    expect(
      services.map(service => [attributeOf(service, 'Binding'), attributeOf(service, 'Location')]),
    ).toEqual([[POST_BINDING, sp.acs_url]])
    const unsigned = parseXml(renderMetadata({ ...sp, sign_requests: false }))
    expect(attributeOf(find(unsigned, 'md:SPSSODescriptor'), 'AuthnRequestsSigned')).toBe('false')
  })

  test('has the certificate for signing and for encryption, with the accepted algorithms', () => {
    const keys = findAll(descriptor, 'md:KeyDescriptor')
    expect(keys.map(key => attributeOf(key, 'use'))).toEqual(['signing', 'encryption'])
    expect(keys.map(key => textOf(key))).toEqual([base64, base64])
    expect(findAll(keys[1], 'md:EncryptionMethod').map(method => attributeOf(method, 'Algorithm'))).toEqual([
      `${ns.xenc11}aes128-gcm`,
      `${ns.xenc11}aes256-gcm`,
      `${ns.xenc}rsa-oaep-mgf1p`,
    ])
  })
})

describe("an identity provider's metadata", () => {
  const key = (use: string, certificate = base64) =>
    `<md:KeyDescriptor${use && ` use="${use}"`}><ds:KeyInfo><ds:X509Data><ds:X509Certificate>\n${certificate}\n</ds:X509Certificate></ds:X509Data></ds:KeyInfo></md:KeyDescriptor>`
  const service = (binding: string, location: string) =>
    `<md:SingleSignOnService Binding="${binding}" Location="${location}"/>`
  const entity = (content: string, entity_id = 'https://idp.example/') =>
    `<md:EntityDescriptor xmlns:md="${ns.md}" xmlns:ds="${ns.ds}" entityID="${entity_id}"><md:IDPSSODescriptor protocolSupportEnumeration="${ns.samlp}">${content}</md:IDPSSODescriptor></md:EntityDescriptor>`
  const services =
    service(POST_BINDING, 'https://idp.example/post') +
    service(REDIRECT_BINDING, 'https://idp.example/sso?a=1&amp;b=2')
  const expected = {
    entity_id: 'https://idp.example/',
    sso_url: 'https://idp.example/sso?a=1&b=2',
    certificates: [pem],
  }

  const good = {
    'signing key': entity(key('signing') + services),
    'S-23 key without use': entity(key('') + services),
    'key for both, once': entity(key('') + key('signing') + services),
    'comments and a stylesheet': `<?xml version="1.0"?>\n<?xml-stylesheet href="x"?><!-- <x> -->${entity(`<!-- - -->${key('')}${services}`)}<!-- -->`,
    'one of several entities': `<md:EntitiesDescriptor xmlns:md="${ns.md}">${entity(key('') + services)}<md:EntityDescriptor entityID="sp"><md:SPSSODescriptor/></md:EntityDescriptor></md:EntitiesDescriptor>`,
  }
  for (const [what, xml] of Object.entries(good))
    test(`with ${what}`, () => expect(readMetadata(xml)).toEqual(expected))

  const bad = {
    'S-23 no certificate': entity(services),
    'S-23 a certificate for encryption alone': entity(key('encryption') + services),
    'a malformed certificate': entity(key('', 'AAAA') + services),
    'no redirect binding': entity(key('') + service(POST_BINDING, 'https://idp.example/post')),
    'an address that is a script': entity(key('') + service(REDIRECT_BINDING, 'javascript:alert(1)')),
    'a relative address': entity(key('') + service(REDIRECT_BINDING, '/sso')),
    'no entityID': entity(key('') + services, ''),
    'SAML 1.1 alone': entity(key('') + services).replace(ns.samlp, 'urn:oasis:names:tc:SAML:1.1:protocol'),
    'a service provider': `<md:EntityDescriptor xmlns:md="${ns.md}" entityID="x"><md:SPSSODescriptor/></md:EntityDescriptor>`,
    'two identity providers': `<md:EntitiesDescriptor xmlns:md="${ns.md}">${entity(key('') + services).repeat(2)}</md:EntitiesDescriptor>`,
    'another document': '<html/>',
    'no XML': 'entity_id: x',
    'S-25 a DTD': `<!DOCTYPE x [<!ENTITY y "z">]>${entity(key('') + services)}`,
    'a comment without end': `${entity(key('') + services)}<!-- `,
    'H-03 many names in a long document': entity(
      `${key('')}${services}${Array.from({ length: 2_900 }, (_, i) => `<n${i}></n${i}>`).join('')}${' '.repeat(900_000)}`,
    ),
    'H-03 more elements than any provider has': entity(`${key('')}${services}${'<a/>'.repeat(3_000)}`),
    'comments without end': '<!--'.repeat(200_000),
  }
  for (const [what, xml] of Object.entries(bad))
    test(`refused: ${what}`, () => expect(() => readMetadata(xml)).toThrow(SamlError), 1_000)
})
