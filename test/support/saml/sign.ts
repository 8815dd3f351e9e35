import type { KeyObject } from 'node:crypto'
import { SignedXml } from 'xml-crypto'
import { ENVELOPED, EXCLUSIVE, RSA_SHA256, SHA256 } from '#src/protocol/saml/names.ts'

export interface Signing {
  signatureAlgorithm?: string
  digestAlgorithm?: string
  transforms?: string[]
  canonicalizationAlgorithm?: string
  inclusiveNamespacesPrefixList?: string[]
}

/**
 * Signs the element with this ID. `options` can name any algorithms. The signature follows the element's
 * Issuer, as the schema requires.
 */
export const signElement = (
  xml: string,
  id: string,
  key: KeyObject | string,
  certificate: string,
  options: Signing = {},
): string => {
  const signed = new SignedXml({
    privateKey: key,
    publicCert: certificate,
    signatureAlgorithm: options.signatureAlgorithm ?? RSA_SHA256,
    canonicalizationAlgorithm: (options.canonicalizationAlgorithm ?? EXCLUSIVE) as typeof EXCLUSIVE,
    getKeyInfoContent: () => `<ds:X509Data><ds:X509Certificate>${certificate.replace(/-----[^-]+-----|\s/g, '')}</ds:X509Certificate></ds:X509Data>`,
  })
  signed.addReference({
    xpath: `//*[@ID='${id}']`,
    transforms: options.transforms ?? [ENVELOPED, EXCLUSIVE],
    digestAlgorithm: options.digestAlgorithm ?? SHA256,
    inclusiveNamespacesPrefixList: options.inclusiveNamespacesPrefixList ?? [],
  })
  signed.computeSignature(xml, {
    prefix: 'ds',
    location: { reference: `//*[@ID='${id}']/*[local-name()='Issuer']`, action: 'after' },
  })
  return signed.getSignedXml()
}
