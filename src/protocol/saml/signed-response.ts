import type { KeyObject } from 'node:crypto'
import { decrypt } from './decrypt.ts'
import { SamlError } from './error.ts'
import { SUCCESS } from './names.ts'
import { isSigned, openDocument, type Trust, verifySignature } from './signature.ts'
import { attributeOf, elementName, find } from './xml.ts'

/** Keys and options with which a response is verified. */
export interface ResponseTrust extends Trust {
  readonly allow_cbc: boolean
  /** This service provider's RSA key, to which providers encrypt. */
  readonly decryption_key: KeyObject
}

/** Elements of a validated message. */
export interface Opened {
  /**
   * The content is trusted only if the response itself is signed. Unsigned content is used only for refusals.
   */
  readonly response: Element
  /** Parsed from octets that a pinned key has signed, or decrypted from such octets. */
  readonly assertion: Element
}

/**
 * Maximum length of the encoded response in characters, equal to the maximum size of the posted form in
 * bytes.
 */
const MAX_ENCODED = 256 * 1024
const base64 = /^[A-Za-z0-9+/]+={0,2}$/
const utf8 = new TextDecoder('utf-8', { fatal: true })

/**
 * Validates the form field `SAMLResponse` in this order: size; base64; UTF-8; plain well-formed XML; shape,
 * including the places of signatures; signature of the response, if it has one; status; decryption of the
 * assertion, if it is encrypted; signature of the assertion, if it has one. At least one of the signatures is
 * required. Each check relies on the earlier checks. Only signatures by pinned keys are accepted. The
 * assertion is read from the signed octets, so an unsigned assertion in the same response is never used
 * (signature wrapping).
 *
 * @throws SamlError
 */
export const openResponse = (encoded: string, trust: ResponseTrust): Opened => {
  const root = openDocument(decode(encoded))
  if (elementName(root) !== 'samlp:Response') throw new SamlError('bad_shape', 'no response')
  const isResponseSigned = isSigned(root)
  const response = isResponseSigned ? verifySignature(root, trust) : root
  checkStatus(response)
  const encrypted = find(response, 'saml:EncryptedAssertion')
  const plain = find(root, 'saml:Assertion')
  if (encrypted) {
    const inner = openDocument(decrypt(encrypted, trust.decryption_key, trust.allow_cbc))
    if (elementName(inner) !== 'saml:Assertion') throw new SamlError('bad_shape', 'no assertion')
    return { response, assertion: verifiedAssertion(inner, isResponseSigned ? inner : undefined, trust) }
  }
  if (!plain) throw new SamlError('no_assertion')
  const covered = isResponseSigned ? find(response, 'saml:Assertion') : undefined
  return { response, assertion: verifiedAssertion(plain, covered, trust) }
}

/**
 * Returns the signed assertion. If the assertion has no signature of its own, the signature of the response
 * must cover it. `covered` is the assertion from the signed octets of the response, decrypted if it was
 * encrypted. It is undefined if the response is not signed.
 */
const verifiedAssertion = (
  assertion: Element,
  covered: Element | undefined,
  trust: ResponseTrust,
): Element => {
  if (isSigned(assertion)) return verifySignature(assertion, trust)
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

/** Checks the status: https://docs.oasis-open.org/security/saml/v2.0/saml-core-2.0-os.pdf section 3.2.2.2 */
const checkStatus = (response: Element): void => {
  const code = find(find(response, 'samlp:Status'), 'samlp:StatusCode')
  if (attributeOf(code, 'Value') === SUCCESS) return
  const inner = attributeOf(find(code, 'samlp:StatusCode'), 'Value') ?? attributeOf(code, 'Value') ?? ''
  throw new SamlError('status', inner)
}
