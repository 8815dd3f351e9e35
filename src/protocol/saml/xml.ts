import { DOMParser } from '@xmldom/xmldom'
import { SamlError } from './error.ts'
import { type NamespacePrefix, namespaces } from './names.ts'
import { type Bounds, describe, MESSAGE, scan } from './scan.ts'

const throwParseError = (_level: string, detail: unknown): never => {
  throw new SamlError('bad_xml', String(detail))
}

/**
 * Scans and parses a document. The scanner checks the document, and callers read the elements that the parser
 * found. Scanner and parser must find the same elements, so that nothing unchecked is read.
 *
 * @returns the document element
 * @throws SamlError `bad_xml`
 */
export const parseXml = (document: string, bounds: Bounds = MESSAGE): Element => {
  const { xml, elements } = scan(document, bounds)
  const root = new DOMParser({ errorHandler: throwParseError }).parseFromString(
    xml,
    'text/xml',
  ).documentElement
  if (!Bun.deepEquals(listElements(root), elements)) throw new SamlError('bad_xml', 'ambiguous markup')
  return root
}

const listElements = (element: Element): string[] => [
  describe(`${element.namespaceURI ?? ''} ${element.localName}`, element.attributes.length),
  ...childrenOf(element).flatMap(listElements),
]

/** Returns the child elements in document order. */
export const childrenOf = (parent: Element): Element[] =>
  Array.from(parent.childNodes).filter((node): node is Element => node.nodeType === 1)

/**
 * Returns a name such as `samlp:Response`. The prefix in the document does not matter. Returns an empty
 * string for an element of a foreign namespace.
 */
export const elementName = (element: Element): string => {
  const prefix = prefixes.get(element.namespaceURI ?? '')
  return prefix ? `${prefix}:${element.localName}` : ''
}

const prefixes = new Map(Object.entries(namespaces).map(([prefix, uri]) => [uri as string, prefix]))

export type Name = `${NamespacePrefix}:${string}`

/** Returns the child elements of that name. */
export const findAll = (parent: Element | undefined, name: Name): Element[] =>
  parent ? childrenOf(parent).filter(child => elementName(child) === name) : []

/** Returns the first child with that name. */
export const find = (parent: Element | undefined, name: Name): Element | undefined => findAll(parent, name)[0]

/**
 * Returns the value of an attribute that has no namespace. Returns undefined when the attribute is absent.
 */
export const attributeOf = (element: Element | undefined, name: string): string | undefined =>
  element?.hasAttribute(name) ? (element.getAttribute(name) ?? undefined) : undefined

/** Returns the text of an element and its descendants. Returns '' when `element` is undefined. */
export const textOf = (element: Element | undefined): string => element?.textContent ?? ''
