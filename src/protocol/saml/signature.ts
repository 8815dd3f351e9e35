import type { KeyObject } from 'node:crypto'
import { ExclusiveCanonicalization } from 'xml-crypto'
import { findDigestMethod, findSignatureMethod } from './algorithms.ts'
import { SamlError } from './error.ts'
import { ENVELOPED, EXCLUSIVE } from './names.ts'
import { checkShape } from './shape.ts'
import { attributeOf, elementName, find, findAll, parseXml, textOf } from './xml.ts'

/** Trusted keys and algorithms of a provider. */
export interface Trust {
  /**
   * Keys of the provider's certificates. Keys in a message are ignored, because anyone can sign with a key of
   * their own and put this key into the message.
   */
  readonly keys: readonly KeyObject[]
  readonly allow_sha1: boolean
}

/**
 * Parses a document, checks its shape, and returns its root.
 *
 * @throws SamlError `bad_xml`, `bad_shape`
 */
export const openDocument = (document: string): Element => {
  const root = parseXml(document)
  checkShape(root)
  return root
}

/** True when the element has a signature of its own, valid or not. */
export const isSigned = (element: Element): boolean => find(element, 'ds:Signature') !== undefined

/**
 * Verifies the signature in `element`. Returns the element that results when the digested octets are parsed
 * again. No other part of the document is trusted, because an attacker can add unsigned elements (signature
 * wrapping). The caller must have checked the shape of the document. The checks run from cheap to expensive:
 * algorithms, signature of SignedInfo, digest. https://www.w3.org/TR/xmldsig-core1/#sec-CoreValidation
 *
 * @throws SamlError `no_certificate`, `unsigned`, `bad_algorithm`, `bad_signature`, and `bad_xml` or
 * `bad_shape` for octets that cannot be parsed again
 */
export const verifySignature = (element: Element, { keys, allow_sha1 }: Trust): Element => {
  if (keys.length === 0) throw new SamlError('no_certificate')
  const signature = find(element, 'ds:Signature')
  const info = find(signature, 'ds:SignedInfo')
  if (!signature || !info) throw new SamlError('unsigned')
  const { method, inclusive } = algorithmsOf(info, element, allow_sha1)
  const signedInfo = canonicalize(info, copyOf(info), inclusive)
  if (!method(signedInfo, keys, textOf(find(signature, 'ds:SignatureValue'))))
    throw bad('the signature value does not match')

  const { digest, digestValue, transform } = algorithmsOf(openDocument(signedInfo), element, allow_sha1)
  const enveloped = copyOf(element)
  for (const own of findAll(enveloped, 'ds:Signature')) enveloped.removeChild(own)
  const octets = canonicalize(element, enveloped, transform)
  if (digest(octets) !== digestValue) throw bad('the digest does not match')
  const root = openDocument(octets)
  if (elementName(root) !== elementName(element) || attributeOf(root, 'ID') !== attributeOf(element, 'ID'))
    throw bad('another element was signed')
  return root
}

const copyOf = (element: Element): Element => element.cloneNode(true) as Element

/**
 * Returns the canonical octets of `copy` in the context of `element`. The namespaces of `prefixes` are
 * rendered even if the element does not use them.
 */
const canonicalize = (element: Element, copy: Element, prefixes: string[]): string => {
  const options = { inclusiveNamespacesPrefixList: prefixes, ancestorNamespaces: namespacesAround(element) }
  try {
    return new ExclusiveCanonicalization().process(copy, options)
  } catch (cause) {
    throw bad('canonicalization failed', cause)
  }
}

/**
 * Returns the namespaces that ancestors of the element bind. Prefixes that the element itself binds are left
 * out.
 */
const namespacesAround = (element: Element): { prefix: string; namespaceURI: string }[] => {
  const bound = new Map<string, string>()
  for (let at: Node | null = element; at?.nodeType === 1; at = at.parentNode)
    for (const { prefix, localName, value } of Array.from((at as Element).attributes))
      if (prefix === 'xmlns' && !bound.has(localName)) bound.set(localName, value)
  return [...bound]
    .filter(([prefix]) => !element.hasAttribute(`xmlns:${prefix}`))
    .map(([prefix, namespaceURI]) => ({ prefix, namespaceURI }))
}

/**
 * Returns the algorithms of a SignedInfo. Refuses an algorithm that is not allowed, and a reference that does
 * not point to `element`, which contains the signature.
 */
const algorithmsOf = (info: Element, element: Element, allow_sha1: boolean) => {
  const reference = find(info, 'ds:Reference')
  const id = attributeOf(element, 'ID')
  if (!id || attributeOf(reference, 'URI') !== `#${id}`)
    throw bad('the reference does not point to the element that contains the signature')
  const transforms = findAll(find(reference, 'ds:Transforms'), 'ds:Transform')
  const canonicalization = find(info, 'ds:CanonicalizationMethod')
  if (
    algorithmOf(canonicalization) !== EXCLUSIVE ||
    transforms.map(algorithmOf).join(' ') !== `${ENVELOPED} ${EXCLUSIVE}`
  )
    throw new SamlError('bad_algorithm', 'transforms')
  const methodName = algorithmOf(find(info, 'ds:SignatureMethod'))
  const digestName = algorithmOf(find(reference, 'ds:DigestMethod'))
  const method = findSignatureMethod(methodName, allow_sha1)
  const digest = findDigestMethod(digestName, allow_sha1)
  if (!method || !digest) throw new SamlError('bad_algorithm', `${methodName} ${digestName}`)
  const digestValue = textOf(find(reference, 'ds:DigestValue')).replace(/\s/g, '')
  return {
    method,
    digest,
    digestValue,
    inclusive: prefixList(canonicalization),
    transform: prefixList(transforms[1]),
  }
}

/**
 * Returns the prefixes of an InclusiveNamespaces element:
 * https://www.w3.org/TR/xml-exc-c14n/#def-InclusiveNamespaces-PrefixList
 */
const prefixList = (method: Element | undefined): string[] =>
  (attributeOf(find(method, 'ec:InclusiveNamespaces'), 'PrefixList') ?? '').split(/\s+/).filter(Boolean)

const algorithmOf = (element: Element | undefined): string => attributeOf(element, 'Algorithm') ?? ''

const bad = (detail: string, cause?: unknown): SamlError => new SamlError('bad_signature', detail, { cause })
