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

/** Builds the XML that Gatehouse sends. `fast-xml-parser` never reads XML from other parties. */
export const buildXml = (tree: XmlTree): string => builder.build(tree)
