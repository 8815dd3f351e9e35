import { SignedXml } from 'xml-crypto'
import { ENVELOPED, EXCLUSIVE, RSA_SHA256, SHA256 } from './names.ts'

/**
 * Signs the element with the ID `id` (RSA-SHA256). The signature is inserted after the element's Issuer, as
 * the schema requires.
 *
 * @param key PEM
 * @param certificate PEM
 */
export const signElement = (xml: string, id: string, key: string, certificate: string): string => {
  const signed = new SignedXml({
    privateKey: key,
    publicCert: certificate,
    signatureAlgorithm: RSA_SHA256,
    canonicalizationAlgorithm: EXCLUSIVE,
  })
  signed.addReference({
    xpath: `//*[@ID='${id}']`,
    transforms: [ENVELOPED, EXCLUSIVE],
    digestAlgorithm: SHA256,
  })
  signed.computeSignature(xml, {
    prefix: 'ds',
    location: { reference: `//*[@ID='${id}']/*[local-name()='Issuer']`, action: 'after' },
  })
  return signed.getSignedXml()
}
