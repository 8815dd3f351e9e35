import { XMLBuilder } from 'fast-xml-parser'

/**
 * Attributes begin with `@`, `#text` is the text beside them; an array repeats its element. Texts and
 * attributes are escaped.
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
