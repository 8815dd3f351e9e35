import { XMLBuilder } from 'fast-xml-parser'

/**
 * Names of attributes begin with `@`, `#text` is the text of the element, and an array repeats its element.
 * Texts and attributes are escaped.
 */
export type XmlTree = { [name: string]: string | XmlTree | XmlTree[] }

const builder = new XMLBuilder({
  ignoreAttributes: false,
  attributeNamePrefix: '@',
  suppressEmptyNode: true,
  suppressBooleanAttributes: false,
})

/** XML that Gatehouse sends. No foreign XML is read by this library. */
export const buildXml = (tree: XmlTree): string => builder.build(tree)
