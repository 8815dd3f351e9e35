import type { KeyObject } from 'node:crypto'
import { SignedXml } from 'xml-crypto'
import { findDigestMethod, findSignatureMethod } from './algorithms.ts'
import { SamlError } from './error.ts'
import { namespaces } from './names.ts'
import { checkShape } from './shape.ts'
import { attributeOf, find, findAll, nameOf, parseXml } from './xml.ts'

/** What a provider's signatures are judged by. */
export interface Trust {
  /** The keys of the provider's certificates. What a message says of keys counts for nothing. */
  readonly keys: readonly KeyObject[]
  readonly allow_sha1: boolean
}

const ENVELOPED = `${namespaces.ds}enveloped-signature`
const EXCLUSIVE = namespaces.ec

/** A well-formed document of known shape. @throws SamlError `bad_xml`, `bad_shape` */
export const openDocument = (document: string): { root: Element; xml: string } => {
  const opened = parseXml(document)
  checkShape(opened.root)
  return opened
}

export const isSigned = (element: Element): boolean => find(element, 'ds:Signature') !== undefined

/**
 * What the signature in `element` covers, read again from the very octets that were digested: nothing else of the document may be
 * believed. `xml` is the whole document, of known shape.
 *
 * @throws SamlError `no_certificate`, `bad_algorithm`, `bad_signature`
 */
export const verifySignature = (xml: string, element: Element, { keys, allow_sha1 }: Trust): Element => {
  const [key] = keys
  if (!key) throw new SamlError('no_certificate')
  const signature = find(element, 'ds:Signature')
  if (!signature) throw new SamlError('unsigned')
  const { method, digest, methodName, digestName } = algorithmsOf(signature, element, allow_sha1)

  const signed = new SignedXml({ publicCert: key, getCertFromKeyInfo: () => null })
  const { CanonicalizationAlgorithms: all } = signed
  signed.CanonicalizationAlgorithms = {
    [ENVELOPED]: all[ENVELOPED],
    [EXCLUSIVE]: all[EXCLUSIVE],
  } as typeof all
  signed.HashAlgorithms = { [digestName]: made({ getAlgorithmName: () => digestName, getHash: digest }) }
  signed.SignatureAlgorithms = {
    [methodName]: made({
      getAlgorithmName: () => methodName,
      getSignature: () => {
        throw new Error('only verifies')
      },
      verifySignature: (material: string, _key: unknown, value: string) => method(material, keys, value),
    }),
  }
  const octets = check(signed, signature, xml)
  const { root } = openDocument(octets)
  if (nameOf(root) !== nameOf(element) || attributeOf(root, 'ID') !== attributeOf(element, 'ID'))
    throw bad('another element was signed')
  return root
}

/** xml-crypto makes its algorithms with `new`. */
const made = <T extends object>(algorithm: T): (new () => T) => {
  function Made() {
    return algorithm
  }
  return Made as unknown as new () => T
}

/** The allowed algorithms that the signature names. Its one reference is to the element that holds it. */
const algorithmsOf = (signature: Element, element: Element, allow_sha1: boolean) => {
  const info = find(signature, 'ds:SignedInfo')
  const reference = find(info, 'ds:Reference')
  const id = attributeOf(element, 'ID')
  if (!id || attributeOf(reference, 'URI') !== `#${id}`) throw bad('the reference is not to its parent')
  const transforms = findAll(find(reference, 'ds:Transforms'), 'ds:Transform').map(algorithmOf)
  const canonicalization = algorithmOf(find(info, 'ds:CanonicalizationMethod'))
  if (canonicalization !== EXCLUSIVE || transforms.join(' ') !== `${ENVELOPED} ${EXCLUSIVE}`)
    throw new SamlError('bad_algorithm', 'transforms')
  const methodName = algorithmOf(find(info, 'ds:SignatureMethod'))
  const digestName = algorithmOf(find(reference, 'ds:DigestMethod'))
  const method = findSignatureMethod(methodName, allow_sha1)
  const digest = findDigestMethod(digestName, allow_sha1)
  if (!method || !digest) throw new SamlError('bad_algorithm', `${methodName} ${digestName}`)
  return { method, digest, methodName, digestName }
}

const algorithmOf = (element: Element | undefined): string => attributeOf(element, 'Algorithm') ?? ''

const check = (signed: SignedXml, signature: Element, xml: string): string => {
  try {
    signed.loadSignature(signature)
    if (!signed.checkSignature(xml)) throw bad('the value does not fit')
  } catch (error) {
    throw error instanceof SamlError ? error : bad(String(error), error)
  }
  const [octets, ...more] = signed.getSignedReferences()
  if (!octets || more.length > 0) throw bad('not exactly one reference')
  return octets
}

const bad = (detail: string, cause?: unknown): SamlError => new SamlError('bad_signature', detail, { cause })
