import { SamlError } from './error.ts'

/** Far above what any identity provider sends, far below what makes a parser or a canonicaliser slow. */
const MAX_DEPTH = 40
/** Elements and attributes. */
const MAX_NODES = 6_000
const MAX_ATTRIBUTES = 40
const MAX_PREFIXES = 50

const S = '[ \\t\\r\\n]'
const NC_NAME = '[A-Za-z_][A-Za-z0-9_.-]*'
const NAME = `${NC_NAME}(?::${NC_NAME})?`
const declaration =
  /^<\?xml version=(?:"1\.0"|'1\.0')(?: encoding=(?:"utf-8"|'utf-8'))?(?: standalone=(?:"(?:yes|no)"|'(?:yes|no)'))? ?\?>/i
const startTag = new RegExp(`<(${NAME})`, 'y')
const attribute = new RegExp(`${S}+(${NAME})${S}*=${S}*(?:"([^"<]*)"|'([^'<]*)')`, 'y')
const startTagEnd = new RegExp(`${S}*(/?)>`, 'y')
const endTag = new RegExp(`</(${NAME})${S}*>`, 'y')
const blank = new RegExp(`^${S}*$`)
// https://www.w3.org/TR/xml/#charsets
const illegal = /[^\t\n\r\u{20}-\u{d7ff}\u{e000}-\u{fffd}\u{10000}-\u{10ffff}]/u
const ampersand = /&(?:(amp|lt|gt|quot|apos);|#([0-9]{1,7});|#x([0-9a-fA-F]{1,6});)?/g
const absolute = /^[A-Za-z][A-Za-z0-9+.-]*:[^\s&]+$/

/** Prefix -> namespace. */
type Scope = ReadonlyMap<string, string>
const outermost: Scope = new Map([['xml', 'http://www.w3.org/XML/1998/namespace']])

/**
 * Reads through a document once, in linear time, and refuses all that is not the plain part of XML: DOCTYPE, processing
 * instructions, comments, CDATA, references to anything but characters, names beyond ASCII, what is not well-formed, a prefix that
 * is unbound or bound twice to different names, a relative namespace, and more of anything than a message can need. What
 * passes reads the same in every parser.
 *
 * @returns the document element's text, without what stands around it
 * @throws SamlError `bad_xml`
 */
export const scan = (document: string): string => {
  const xml = document.replace(declaration, '')
  if (illegal.test(xml)) throw bad('a character that XML does not have')
  const bindings = new Map(outermost)
  const open: { name: string; scope: Scope }[] = []
  let nodes = 0
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
    if (isOutside && nodes > 0) throw bad('markup after the root element')
    if (xml[at + 1] === '/') {
      const ended = take(endTag)?.[1]
      if (ended === undefined || ended !== open.pop()?.name) throw bad('an end tag that ends nothing')
      continue
    }
    const name = take(startTag)?.[1]
    if (name === undefined) throw bad('markup other than elements')
    if (open.length >= MAX_DEPTH) throw bad('elements in elements in elements')
    const attributes: [string, string][] = []
    for (let found = take(attribute); found; found = take(attribute)) {
      attributes.push([found[1] ?? '', checkText(found[2] ?? found[3] ?? '')])
      if (attributes.length > MAX_ATTRIBUTES) throw bad('too many attributes')
    }
    nodes += 1 + attributes.length
    if (nodes > MAX_NODES) throw bad('too many elements')
    const end = take(startTagEnd)
    if (!end) throw bad('a start tag that does not end')
    const scope = scopeOf(attributes, open.at(-1)?.scope ?? outermost, bindings)
    checkNames(name, attributes, scope)
    if (end[1] === '') open.push({ name, scope })
  }
  if (open.length > 0 || nodes === 0) throw bad('no complete root element')
  return xml.slice(xml.indexOf('<'), xml.lastIndexOf('>') + 1)
}

/** The declarations of one element on top of those around it. A prefix has one meaning in the whole document. */
const scopeOf = (attributes: [string, string][], outer: Scope, bindings: Map<string, string>): Scope => {
  let scope: Map<string, string> | undefined
  for (const [name, value] of attributes) {
    if (!name.startsWith('xmlns')) continue
    const prefix = name.slice('xmlns:'.length)
    if (name !== 'xmlns' && (!name.startsWith('xmlns:') || /^xml/i.test(prefix)))
      throw bad('an odd namespace prefix')
    if (!absolute.test(value) && !(value === '' && prefix === '')) throw bad('a relative namespace')
    if (prefix !== '' && (bindings.get(prefix) ?? value) !== value) throw bad('a prefix with two meanings')
    bindings.set(prefix, value)
    if (bindings.size > MAX_PREFIXES) throw bad('too many namespaces')
    scope ??= new Map(outer)
    scope.set(prefix, value)
  }
  return scope ?? outer
}

const checkNames = (name: string, attributes: [string, string][], scope: Scope): void => {
  const resolve = (qualified: string): string => {
    const colon = qualified.indexOf(':')
    const namespace = colon < 0 ? '' : scope.get(qualified.slice(0, colon))
    if (namespace === undefined) throw bad('a prefix without a namespace')
    return `${namespace} ${qualified.slice(colon + 1)}`
  }
  resolve(name)
  const names = attributes.map(([name]) => (name.startsWith('xmlns') ? name : resolve(name)))
  if (new Set(names).size < names.length) throw bad('an attribute given twice')
}

const checkText = (text: string): string => {
  if (text.includes(']]>')) throw bad('the end of a CDATA section')
  for (const [, named, decimal, hex] of text.matchAll(ampersand)) {
    if (named) continue
    const code = decimal ? Number(decimal) : hex ? Number.parseInt(hex, 16) : 0
    if (code > 0x10ffff || illegal.test(String.fromCodePoint(code))) throw bad('a reference to no character')
  }
  return text
}

/** Whether a text is white space alone. */
export const isBlank = (text: string): boolean => blank.test(text)

const bad = (detail: string): SamlError => new SamlError('bad_xml', detail)
