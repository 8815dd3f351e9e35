import { inflateRawSync } from 'node:zlib'
import { SamlError } from './error.ts'
import { attributeOf, elementName, find, parseXml, textOf } from './xml.ts'

/**
 * Content of an authentication request that Gatehouse or another service provider sends to the fake provider
 * of development mode.
 */
export interface Requested {
  readonly acs_url: string
  readonly audience: string
  readonly request_id: string | undefined
}

/**
 * Maximum length of a compressed request in characters. Browsers and proxies pass URLs up to about this
 * length.
 */
const MAX_ENCODED = 8 * 1024
/** Maximum size of an inflated request in bytes. A usual request has about 1 KiB. */
const MAX_INFLATED = 64 * 1024

/**
 * Reads a request of the redirect binding without verifying its signature. Only the fake provider of
 * development mode calls this function. Gatehouse is not a SAML identity provider.
 *
 * @param encoded the parameter `SAMLRequest`
 * @throws SamlError
 */
export const readAuthnRequest = (encoded: string): Requested => {
  if (encoded.length > MAX_ENCODED) throw new SamlError('too_large')
  const root = parseXml(inflate(Buffer.from(encoded, 'base64')))
  const acs_url = attributeOf(root, 'AssertionConsumerServiceURL')
  if (elementName(root) !== 'samlp:AuthnRequest' || !acs_url)
    throw new SamlError('bad_shape', 'no AuthnRequest')
  return { acs_url, audience: textOf(find(root, 'saml:Issuer')), request_id: attributeOf(root, 'ID') }
}

const inflate = (deflated: Buffer): string => {
  try {
    return inflateRawSync(deflated, { maxOutputLength: MAX_INFLATED }).toString()
  } catch (cause) {
    throw new SamlError('bad_encoding', 'not deflated, or too large', { cause })
  }
}
