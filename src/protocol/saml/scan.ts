import { SamlError } from './error.ts'

/**
 * Limits of a document. They keep parsing and canonicalization fast. A usual response has about 50 elements,
 * 50 attributes and 50 names.
 */
export interface Bounds {
  readonly elements: number
  /** Attributes of all elements, including namespace declarations. */
  readonly attributes: number
  /**
   * Distinct names of elements and attributes. This limit is needed, because xmldom searches the whole
   * document for each name.
   */
  readonly names: number
}

/** Limits of a SAML response. */
export const MESSAGE: Bounds = { elements: 1_000, attributes: 3_000, names: 150 }
/** Limits of a metadata document. */
export const METADATA: Bounds = { elements: 3_000, attributes: 6_000, names: 250 }

/** Maximum depth of nested elements. An encrypted response with its signatures has a depth of about ten. */
const MAX_DEPTH = 20
/**
 * Maximum number of attributes of one element, including namespace declarations. The root of a response has
 * about ten attributes.
 */
const MAX_ATTRIBUTES = 30
/**
 * Maximum number of namespace prefixes in a document. For each element, canonicalization copies all prefixes
 * that are in scope.
 */
const MAX_PREFIXES = 30

const S = '[ \\t\\r\\n]'
const NC_NAME = '[A-Za-z_][A-Za-z0-9_.-]{0,127}'
const NAME = `${NC_NAME}(?::${NC_NAME})?`
const declaration =
  /^<\?xml version=(?:"1\.0"|'1\.0')(?: encoding=(?:"utf-8"|'utf-8'))?(?: standalone=(?:"(?:yes|no)"|'(?:yes|no)'))? ?\?>/i
const startTag = new RegExp(`<(${NAME})`, 'y')
const attribute = new RegExp(`${S}+(${NAME})${S}*=${S}*(?:"([^"<]*)"|'([^'<]*)')`, 'y')
const startTagEnd = new RegExp(`${S}*(/?)>`, 'y')
const endTag = new RegExp(`</(${NAME})${S}*>`, 'y')
const blank = new RegExp(`^${S}*$`)
// Matches any character that https://www.w3.org/TR/xml/#charsets does not allow. It also matches U+0085 and
// U+2028, because xmldom turns these characters into line ends. It matches U+2029 too, because a later
// version of xmldom may turn this character into a line end.
const illegal = /[^\t\n\r\u{20}-\u{84}\u{86}-\u{2027}\u{202a}-\u{d7ff}\u{e000}-\u{fffd}\u{10000}-\u{10ffff}]/u
const ampersand = /&(?:(amp|lt|gt|quot|apos);|#([0-9]{1,7});|#x([0-9a-fA-F]{1,6});)?/g
const absolute = /^[A-Za-z][A-Za-z0-9+.-]*:[^\s&]+$/

/**
 * xmldom parses elements of this namespace as HTML, so the tree would differ from the elements that this
 * scanner finds.
 */
const XHTML = 'http://www.w3.org/1999/xhtml'

/** Namespaces by prefix. */
type Scope = ReadonlyMap<string, string>
const outermost: Scope = new Map([['xml', 'http://www.w3.org/XML/1998/namespace']])

/**
 * Scans a document once in linear time and accepts only plain XML. It refuses DOCTYPE, processing
 * instructions, comments, CDATA, and references to entities other than the five predefined entities. It
 * refuses names outside ASCII, malformed text, duplicate attributes, unbound prefixes, relative namespaces
 * and the namespace of XHTML. It also refuses anything above `bounds` or the maximums in this file. Every
 * parser reads an accepted document in the same way.
 *
 * @returns the text of the document element, and the list of all elements in document order
 * @throws SamlError `bad_xml`
 */
export const scan = (document: string, bounds: Bounds): { xml: string; elements: string[] } => {
  const xml = document.replace(declaration, '')
  if (illegal.test(xml)) throw bad('an illegal character')
  const open: { name: string; scope: Scope }[] = []
  const elements: string[] = []
  const names = new Set<string>()
  const prefixes = new Set<string>()
  let given = 0
  let at = 0
  const take = (token: RegExp): RegExpExecArray | undefined => {
    token.lastIndex = at
    const found = token.exec(xml) ?? undefined
    if (found) at = token.lastIndex
    return found
  }
  while (at < xml.length) {
    const next = xml.indexOf('<', at)
    const text = xml.slice(at, next < 0 ? xml.length : next)
    checkText(text)
    at += text.length
    const isOutside = open.length === 0
    if (isOutside && !isBlank(text)) throw bad('text outside the root element')
    if (next < 0) break
    if (isOutside && elements.length > 0) throw bad('markup after the root element')
    if (xml[at + 1] === '/') {
      const ended = take(endTag)?.[1]
      if (ended === undefined || ended !== open.pop()?.name) throw bad('an unmatched end tag')
      continue
    }
    const name = take(startTag)?.[1]
    if (name === undefined) throw bad('markup other than elements')
    if (open.length >= MAX_DEPTH) throw bad('elements nested too deeply')
    const attributes: [string, string][] = []
    for (let found = take(attribute); found; found = take(attribute)) {
      attributes.push([found[1] ?? '', checkText(found[2] ?? found[3] ?? '')])
      if (attributes.length > MAX_ATTRIBUTES) throw bad('too many attributes')
    }
    given += attributes.length
    for (const each of [name, ...attributes.map(([name]) => name)]) names.add(each)
    if (elements.length >= bounds.elements || given > bounds.attributes || names.size > bounds.names)
      throw bad('too many elements, attributes or names')
    const end = take(startTagEnd)
    if (!end) throw bad('an unterminated start tag')
    const scope = scopeOf(attributes, open.at(-1)?.scope ?? outermost, prefixes)
    elements.push(describe(checkNames(name, attributes, scope), attributes.length))
    if (end[1] === '') open.push({ name, scope })
  }
  if (open.length > 0 || elements.length === 0) throw bad('no complete root element')
  return { xml: xml.slice(xml.indexOf('<'), xml.lastIndexOf('>') + 1), elements }
}

/**
 * Returns the entry of an element in the list that `scan` returns. `name` is the namespace, a space and the
 * local name.
 */
export const describe = (name: string, attributes: number): string => `${name} ${attributes}`

/** Returns the namespaces in scope of an element. */
const scopeOf = (attributes: [string, string][], outer: Scope, prefixes: Set<string>): Scope => {
  let scope: Map<string, string> | undefined
  for (const [name, value] of attributes) {
    if (!name.startsWith('xmlns')) continue
    const prefix = name.slice('xmlns:'.length)
    if (name !== 'xmlns' && (!name.startsWith('xmlns:') || /^xml/i.test(prefix)))
      throw bad('an invalid namespace prefix')
    if (!absolute.test(value) && !(value === '' && prefix === '')) throw bad('a relative namespace')
    if (value === XHTML) throw bad('the namespace of XHTML')
    prefixes.add(prefix)
    if (prefixes.size > MAX_PREFIXES) throw bad('too many namespaces')
    scope ??= new Map(outer)
    scope.set(prefix, value)
  }
  return scope ?? outer
}

/** Checks the names of an element and its attributes. Returns the element's namespace and local name. */
const checkNames = (name: string, attributes: [string, string][], scope: Scope): string => {
  // The default namespace applies to elements, not attributes: https://www.w3.org/TR/xml-names/#defaulting
  const resolve = (qualified: string, unprefixed = ''): string => {
    const colon = qualified.indexOf(':')
    const namespace = colon < 0 ? unprefixed : scope.get(qualified.slice(0, colon))
    if (namespace === undefined) throw bad('a prefix without a namespace')
    return `${namespace} ${qualified.slice(colon + 1)}`
  }
  const names = attributes.map(([name]) => (name.startsWith('xmlns') ? name : resolve(name)))
  if (new Set(names).size < names.length) throw bad('a duplicate attribute')
  return resolve(name, scope.get(''))
}

const checkText = (text: string): string => {
  if (text.includes(']]>')) throw bad('the end of a CDATA section')
  for (const [, named, decimal, hex] of text.matchAll(ampersand)) {
    if (named) continue
    const code = decimal ? Number(decimal) : hex ? Number.parseInt(hex, 16) : 0
    if (code > 0x10ffff || illegal.test(String.fromCodePoint(code)))
      throw bad('an invalid character reference')
  }
  return text
}

/** True for text that is only white space. */
export const isBlank = (text: string): boolean => blank.test(text)

const bad = (detail: string): SamlError => new SamlError('bad_xml', detail)
