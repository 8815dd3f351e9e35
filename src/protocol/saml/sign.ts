import type { KeyObject } from 'node:crypto'
import { SignedXml } from 'xml-crypto'
import { x509Data } from './escape.ts'
import { namespaces, RSA_SHA256 } from './names.ts'

export const SHA256 = 'http://www.w3.org/2001/04/xmlenc#sha256'
export const ENVELOPED = `${namespaces.ds}enveloped-signature`
export const EXCLUSIVE = namespaces.ec

export interface Signing {
  signatureAlgorithm?: string
  digestAlgorithm?: string
  transforms?: string[]
  canonicalizationAlgorithm?: string
  inclusiveNamespacesPrefixList?: string[]
}

/** Signs the element with that ID. The signature follows its Issuer, as the schema requires. */
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
    getKeyInfoContent: () => x509Data(certificate),
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
