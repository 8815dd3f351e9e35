import { SamlError } from './error.ts'
import { isBlank } from './scan.ts'
import { attributeOf, childrenOf, elementName } from './xml.ts'

/** Maximum length of a prefix list in characters. Providers list up to five prefixes. */
const MAX_PREFIX_LIST = 256
/**
 * Content model that allows text and elements whose local names are not in `listedNames`. An AttributeValue
 * may also contain a NameID.
 */
const OPEN = 'open'
const TEXT = 'text'

/**
 * Allowed content of each element, in the order of the schemas. One assertion is allowed, and one signature
 * for each element. Advice, ds:Object, encrypted identifiers and other elements are refused, because an
 * attacker could hide a second, unsigned assertion in them (signature wrapping).
 * https://docs.oasis-open.org/security/saml/v2.0/saml-core-2.0-os.pdf
 */
const contents: Record<string, string> = {
  'samlp:Response':
    'saml:Issuer? ds:Signature? samlp:Extensions? samlp:Status (saml:Assertion|saml:EncryptedAssertion)?',
  'samlp:Extensions': OPEN,
  'samlp:Status': 'samlp:StatusCode samlp:StatusMessage? samlp:StatusDetail?',
  'samlp:StatusCode': 'samlp:StatusCode?',
  'samlp:StatusMessage': TEXT,
  'samlp:StatusDetail': OPEN,
  'saml:Assertion':
    'saml:Issuer ds:Signature? saml:Subject saml:Conditions (saml:AuthnStatement|saml:AttributeStatement)*',
  'saml:Issuer': TEXT,
  'saml:Subject': 'saml:NameID? saml:SubjectConfirmation+',
  'saml:NameID': TEXT,
  'saml:SubjectConfirmation': 'saml:NameID? saml:SubjectConfirmationData?',
  'saml:SubjectConfirmationData': '',
  'saml:Conditions': '(saml:AudienceRestriction|saml:OneTimeUse|saml:ProxyRestriction)*',
  'saml:AudienceRestriction': 'saml:Audience+',
  'saml:Audience': TEXT,
  'saml:OneTimeUse': '',
  'saml:ProxyRestriction': 'saml:Audience*',
  'saml:AuthnStatement': 'saml:SubjectLocality? saml:AuthnContext',
  'saml:SubjectLocality': '',
  'saml:AuthnContext':
    'saml:AuthnContextClassRef? (saml:AuthnContextDecl|saml:AuthnContextDeclRef)? saml:AuthenticatingAuthority*',
  'saml:AuthnContextClassRef': TEXT,
  'saml:AuthnContextDecl': OPEN,
  'saml:AuthnContextDeclRef': TEXT,
  'saml:AuthenticatingAuthority': TEXT,
  'saml:AttributeStatement': 'saml:Attribute*',
  'saml:Attribute': 'saml:AttributeValue*',
  'saml:AttributeValue': OPEN,
  'saml:EncryptedAssertion': 'xenc:EncryptedData xenc:EncryptedKey?',
  'ds:Signature': 'ds:SignedInfo ds:SignatureValue ds:KeyInfo?',
  'ds:SignedInfo': 'ds:CanonicalizationMethod ds:SignatureMethod ds:Reference',
  'ds:CanonicalizationMethod': 'ec:InclusiveNamespaces?',
  'ds:SignatureMethod': '',
  'ds:Reference': 'ds:Transforms ds:DigestMethod ds:DigestValue',
  'ds:Transforms': 'ds:Transform ds:Transform',
  'ds:Transform': 'ec:InclusiveNamespaces?',
  'ec:InclusiveNamespaces': '',
  'ds:DigestMethod': '',
  'ds:DigestValue': TEXT,
  'ds:SignatureValue': TEXT,
  'ds:KeyInfo': '(ds:KeyName|ds:KeyValue|ds:X509Data|ds:RetrievalMethod|xenc:EncryptedKey)*',
  'ds:KeyName': TEXT,
  'ds:KeyValue': OPEN,
  'ds:X509Data': OPEN,
  'ds:RetrievalMethod': '',
  'xenc:EncryptedData': 'xenc:EncryptionMethod ds:KeyInfo xenc:CipherData',
  'xenc:EncryptedKey':
    'xenc:EncryptionMethod ds:KeyInfo? xenc:CipherData xenc:ReferenceList? xenc:CarriedKeyName?',
  'xenc:EncryptionMethod': 'xenc:KeySize? ds:DigestMethod? xenc11:MGF?',
  'xenc:KeySize': TEXT,
  'xenc11:MGF': '',
  'xenc:CipherData': 'xenc:CipherValue',
  'xenc:CipherValue': TEXT,
  'xenc:ReferenceList': 'xenc:DataReference*',
  'xenc:DataReference': '',
  'xenc:CarriedKeyName': TEXT,
}

/**
 * The content models, such as `a? (b|c)*`, as regular expressions. An expression matches the names of the
 * children, each followed by a space.
 */
const models = new Map(
  Object.entries(contents).map(([name, content]) => [
    name,
    new RegExp(`^${content.replace(/([^ ?*+]+)([?*+]?) ?/g, '(?:(?:$1) )$2')}$`),
  ]),
)

// xml-crypto finds some elements by local name only, so foreign elements must not have the local name of a
// listed element.
const listedNames = new Set(
  Object.keys(contents)
    .map(name => name.slice(name.indexOf(':') + 1))
    .concat('Object'),
)

/**
 * Checks an element and its descendants: their content against `contents`, and their identifiers.
 *
 * @throws SamlError `bad_shape`
 */
export const checkShape = (root: Element): void => {
  const ids = new Set<string>()
  const check = (element: Element): void => {
    checkId(element, ids)
    if ((attributeOf(element, 'PrefixList') ?? '').length > MAX_PREFIX_LIST) throw bad('a long PrefixList')
    const name = elementName(element)
    const model = models.get(name)
    if (!model) throw bad(`<${element.localName}> is not allowed here`)
    const children = childrenOf(element)
    const content = contents[name]
    if (content === OPEN) {
      for (const child of children) {
        const isNameId = name === 'saml:AttributeValue' && elementName(child) === 'saml:NameID'
        isNameId ? check(child) : checkForeign(child, ids)
      }
      return
    }
    if (content !== TEXT && hasText(element)) throw bad(`text in <${element.localName}>`)
    if (
      content === TEXT
        ? children.length > 0
        : !model.test(children.map(child => `${elementName(child)} `).join(''))
    )
      throw bad(`the content of <${element.localName}>`)
    children.forEach(check)
  }
  check(root)
}

const checkForeign = (element: Element, ids: Set<string>): void => {
  checkId(element, ids)
  if (listedNames.has(element.localName)) throw bad(`<${element.localName}> is not allowed here`)
  for (const child of childrenOf(element)) checkForeign(child, ids)
}

const hasText = (element: Element): boolean =>
  Array.from(element.childNodes).some(node => node.nodeType !== 1 && !isBlank(node.nodeValue ?? ''))

const isId = /^[A-Za-z_][A-Za-z0-9_.-]{0,255}$/

/**
 * Checks that identifiers are unique. The identifier must be the attribute `ID` in SAML elements, and the
 * attribute `Id` in all other elements. The reference of a signature thus identifies exactly one element.
 */
const checkId = (element: Element, ids: Set<string>): void => {
  for (const { name, localName, value } of Array.from(element.attributes)) {
    if (localName?.toLowerCase() !== 'id') continue
    const expected = /^samlp?:/.test(elementName(element)) ? 'ID' : 'Id'
    if (name !== expected || !isId.test(value) || ids.has(value))
      throw bad('an invalid or duplicate identifier')
    ids.add(value)
  }
}

const bad = (detail: string): SamlError => new SamlError('bad_shape', detail)
