import { XMLBuilder } from 'fast-xml-parser'

/**
 * A member whose name begins with `@` is an attribute. `#text` is the text of the element. An array repeats
 * the element. Texts and attributes are escaped.
 */
export type XmlTree = { [name: string]: string | XmlTree | XmlTree[] }

const builder = new XMLBuilder({
  ignoreAttributes: false,
  attributeNamePrefix: '@',
  suppressEmptyNode: true,
  suppressBooleanAttributes: false,
})

/**
 * Builds the XML that Gatehouse sends. Gatehouse uses `fast-xml-parser` only to build XML, and never to parse
 * a message.
 */
export const buildXml = (tree: XmlTree): string => builder.build(tree)
