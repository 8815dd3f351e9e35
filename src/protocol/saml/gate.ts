import type { KeyObject } from 'node:crypto'
import { decrypt } from './decrypt.ts'
import { SamlError } from './error.ts'
import { SUCCESS } from './names.ts'
import { isSigned, openDocument, type Trust, verifySignature } from './signature.ts'
import { attributeOf, find, nameOf } from './xml.ts'

export interface Gate extends Trust {
  readonly allow_cbc: boolean
  /** Our own RSA key, to which providers encrypt. */
  readonly decryption_key: KeyObject
}

/** The elements of a message. */
export interface Opened {
  /** Vouched for only if the response itself is signed: whatever else is in it can only make us refuse. */
  readonly response: Element
  /** Read from the octets that a pinned key has signed. */
  readonly assertion: Element
}

const MAX_ENCODED = 256 * 1024
const base64 = /^[A-Za-z0-9+/]+={0,2}$/
const utf8 = new TextDecoder('utf-8', { fatal: true })

/**
 * From the form field `SAMLResponse` to what may be believed, in this order: size, base64, UTF-8, plain well-formed XML, shape,
 * signatures at their place under pinned keys, and everything read again from the signed octets alone.
 *
 * @throws SamlError
 */
export const openResponse = (encoded: string, gate: Gate): Opened => {
  const root = openDocument(decode(encoded))
  if (nameOf(root) !== 'samlp:Response') throw new SamlError('bad_shape', 'no response')
  const isVouched = isSigned(root)
  const response = isVouched ? verifySignature(root, gate) : root
  checkStatus(response)
  const encrypted = find(response, 'saml:EncryptedAssertion')
  const plain = find(root, 'saml:Assertion')
  if (encrypted) {
    const inner = openDocument(decrypt(encrypted, gate.decryption_key, gate.allow_cbc))
    if (nameOf(inner) !== 'saml:Assertion') throw new SamlError('bad_shape', 'no assertion')
    return { response, assertion: vouched(inner, isVouched ? inner : undefined, gate) }
  }
  if (!plain) throw new SamlError('no_assertion')
  const covered = isVouched ? find(response, 'saml:Assertion') : undefined
  return { response, assertion: vouched(plain, covered, gate) }
}

/** The assertion under its own signature, which must hold if there is one; else as the response's signature covers it. */
const vouched = (assertion: Element, covered: Element | undefined, gate: Gate): Element => {
  if (isSigned(assertion)) return verifySignature(assertion, gate)
  if (!covered) throw new SamlError('unsigned')
  return covered
}

const decode = (encoded: string): string => {
  if (encoded.length > MAX_ENCODED) throw new SamlError('too_large')
  const compact = encoded.replace(/[\r\n]/g, '')
  if (!base64.test(compact) || compact.length % 4 !== 0) throw new SamlError('bad_encoding', 'not base64')
  try {
    return utf8.decode(Buffer.from(compact, 'base64'))
  } catch (cause) {
    throw new SamlError('bad_encoding', 'not UTF-8', { cause })
  }
}

/** https://docs.oasis-open.org/security/saml/v2.0/saml-core-2.0-os.pdf section 3.2.2.2 */
const checkStatus = (response: Element): void => {
  const code = find(find(response, 'samlp:Status'), 'samlp:StatusCode')
  if (attributeOf(code, 'Value') === SUCCESS) return
  const inner = attributeOf(find(code, 'samlp:StatusCode'), 'Value') ?? attributeOf(code, 'Value') ?? ''
  throw new SamlError('status', inner)
}
