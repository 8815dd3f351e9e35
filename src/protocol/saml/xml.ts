import { DOMParser } from '@xmldom/xmldom'
import { SamlError } from './error.ts'
import { namespaces, type Prefix } from './names.ts'
import { scan } from './scan.ts'

const refuse = (_level: string, detail: unknown): never => {
  throw new SamlError('bad_xml', String(detail))
}

/**
 * A document that passed `scan`, by the very parser that xml-crypto reads with (package.json pins the version that both
 * share): the tree that is checked is the tree that is verified.
 *
 * @returns the document element, and the text that was parsed
 * @throws SamlError `bad_xml`
 */
export const parseXml = (document: string): { root: Element; xml: string } => {
  const xml = scan(document)
  return { root: new DOMParser({ errorHandler: refuse }).parseFromString(xml).documentElement, xml }
}

export const childrenOf = (parent: Element): Element[] =>
  Array.from(parent.childNodes).filter((node): node is Element => node.nodeType === 1)

/** `samlp:Response` for an element of that namespace under whatever prefix; a foreign one has no name. */
export const nameOf = (element: Element): string => {
  const prefix = prefixes.get(element.namespaceURI ?? '')
  return prefix ? `${prefix}:${element.localName}` : ''
}

const prefixes = new Map(Object.entries(namespaces).map(([prefix, uri]) => [uri as string, prefix]))

export type Name = `${Prefix}:${string}`

export const findAll = (parent: Element | undefined, name: Name): Element[] =>
  parent ? childrenOf(parent).filter(child => nameOf(child) === name) : []

/** The first child of that name. */
export const find = (parent: Element | undefined, name: Name): Element | undefined => findAll(parent, name)[0]

export const attributeOf = (element: Element | undefined, name: string): string | undefined =>
  element?.hasAttribute(name) ? (element.getAttribute(name) ?? undefined) : undefined

export const textOf = (element: Element | undefined): string => element?.textContent ?? ''

const entities: Record<string, string> = {
  '&': '&amp;',
  '<': '&lt;',
  '>': '&gt;',
  '"': '&quot;',
  "'": '&apos;',
}

/** A text for element content or an attribute value. */
export const escapeXml = (text: string): string => text.replace(/[&<>"']/g, c => entities[c] ?? c)
