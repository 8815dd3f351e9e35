import { X509Certificate } from 'node:crypto'
import { SamlError } from './error.ts'
import { namespaces, REDIRECT_BINDING } from './names.ts'
import { METADATA } from './scan.ts'
import { attributeOf, elementName, find, findAll, parseXml, textOf } from './xml.ts'

/** Settings read from a provider's metadata. */
export interface ProviderMetadata {
  readonly entity_id: string
  /** URL of the single sign-on service for the redirect binding. */
  readonly sso_url: string
  /** Certificates of the signing keys, PEM, without duplicates. */
  readonly certificates: readonly string[]
}

/**
 * Reads the metadata of one identity provider. The signature of the metadata is not verified, because the
 * administrator who supplies the document or its URL is trusted.
 *
 * @throws SamlError `bad_xml`, or `bad_shape` with a description for the administrator
 */
export const readMetadata = (document: string): ProviderMetadata => {
  const root = parseXml(withoutComments(document), METADATA)
  const entities =
    elementName(root) === 'md:EntitiesDescriptor' ? findAll(root, 'md:EntityDescriptor') : [root]
  const providers = entities.filter(entity => find(entity, 'md:IDPSSODescriptor'))
  const [entity] = providers
  if (!entity || elementName(entity) !== 'md:EntityDescriptor')
    throw bad('The metadata contains no identity provider.')
  if (providers.length > 1) throw bad('The metadata contains more than one identity provider.')
  const descriptor = findAll(entity, 'md:IDPSSODescriptor').find(({ attributes }) =>
    attributes.getNamedItem('protocolSupportEnumeration')?.value.split(/\s+/).includes(namespaces.samlp),
  )
  const service = findAll(descriptor, 'md:SingleSignOnService').find(
    element => attributeOf(element, 'Binding') === REDIRECT_BINDING,
  )
  const sso_url = attributeOf(service, 'Location')
  if (!sso_url || !/^https?:\/\//i.test(sso_url) || !URL.canParse(sso_url))
    throw bad('The metadata contains no single sign-on service for the HTTP-Redirect binding.')
  const entity_id = attributeOf(entity, 'entityID')
  if (!entity_id) throw bad('The identity provider has no entityID.')
  const certificates = findAll(descriptor, 'md:KeyDescriptor')
    .filter(element => (attributeOf(element, 'use') ?? 'signing') === 'signing')
    .flatMap(element => findAll(find(element, 'ds:KeyInfo'), 'ds:X509Data'))
    .flatMap(data => findAll(data, 'ds:X509Certificate'))
    .map(element => pemOf(textOf(element)))
  if (certificates.length === 0) throw bad('The metadata contains no signing certificate.')
  return { entity_id, sso_url, certificates: [...new Set(certificates)] }
}

/**
 * Converts the base64 of a DER certificate to PEM.
 *
 * @throws SamlError `bad_shape`
 */
const pemOf = (base64: string): string => {
  try {
    return new X509Certificate(Buffer.from(base64, 'base64')).toString()
  } catch (cause) {
    throw bad('A signing certificate in the metadata cannot be read.', cause)
  }
}

const ignoredMarkup = /<!--|<\?(?!xml )/g

/**
 * Removes comments and processing instructions, which are common in metadata. Signatures of metadata are not
 * verified, so the removal does no harm.
 */
const withoutComments = (document: string): string => {
  const kept: string[] = []
  let at = 0
  for (;;) {
    ignoredMarkup.lastIndex = at
    const open = ignoredMarkup.exec(document)
    if (!open) return kept.join('') + document.slice(at)
    const close = open[0] === '<!--' ? '-->' : '?>'
    const end = document.indexOf(close, ignoredMarkup.lastIndex)
    if (end < 0) throw new SamlError('bad_xml', 'an unterminated comment or processing instruction')
    kept.push(document.slice(at, open.index))
    at = end + close.length
  }
}

const bad = (detail: string, cause?: unknown): SamlError => new SamlError('bad_shape', detail, { cause })
