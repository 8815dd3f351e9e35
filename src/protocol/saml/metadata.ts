import { X509Certificate } from 'node:crypto'
import { SamlError } from './error.ts'
import { namespaces, REDIRECT_BINDING } from './names.ts'
import { METADATA } from './scan.ts'
import { attributeOf, find, findAll, nameOf, parseXml, textOf } from './xml.ts'

/** What a provider's metadata tells us. */
export interface ProviderMetadata {
  readonly entity_id: string
  /** Of its single sign-on service for the redirect binding. */
  readonly sso_url: string
  /** Of its signing keys, PEM, each once. */
  readonly certificates: readonly string[]
}

/**
 * Reads the metadata of one identity provider. Its own signature is not looked at: the administrator who gives it vouches for it.
 *
 * @throws SamlError `bad_xml`, `bad_shape` with a sentence for the administrator
 */
export const readMetadata = (document: string): ProviderMetadata => {
  const root = parseXml(withoutRemarks(document), METADATA)
  const entities = nameOf(root) === 'md:EntitiesDescriptor' ? findAll(root, 'md:EntityDescriptor') : [root]
  const providers = entities.filter(entity => find(entity, 'md:IDPSSODescriptor'))
  const [entity] = providers
  if (!entity || nameOf(entity) !== 'md:EntityDescriptor') throw bad('There is no identity provider in it.')
  if (providers.length > 1) throw bad('There is more than one identity provider in it.')
  const descriptor = findAll(entity, 'md:IDPSSODescriptor').find(({ attributes }) =>
    attributes.getNamedItem('protocolSupportEnumeration')?.value.split(/\s+/).includes(namespaces.samlp),
  )
  const service = findAll(descriptor, 'md:SingleSignOnService').find(
    element => attributeOf(element, 'Binding') === REDIRECT_BINDING,
  )
  const sso_url = attributeOf(service, 'Location')
  if (!sso_url || !/^https?:\/\//i.test(sso_url) || !URL.canParse(sso_url))
    throw bad('There is no single sign-on service for the HTTP-Redirect binding in it.')
  const entity_id = attributeOf(entity, 'entityID')
  if (!entity_id) throw bad('The identity provider has no entityID.')
  const certificates = findAll(descriptor, 'md:KeyDescriptor')
    .filter(element => (attributeOf(element, 'use') ?? 'signing') === 'signing')
    .flatMap(element => findAll(find(element, 'ds:KeyInfo'), 'ds:X509Data'))
    .flatMap(data => findAll(data, 'ds:X509Certificate'))
    .map(element => pemOf(textOf(element)))
  if (certificates.length === 0) throw bad('There is no signing certificate in it.')
  return { entity_id, sso_url, certificates: [...new Set(certificates)] }
}

/** A certificate as PEM, from the base64 of its DER. @throws SamlError `bad_shape` */
const pemOf = (base64: string): string => {
  try {
    return new X509Certificate(Buffer.from(base64, 'base64')).toString()
  } catch (cause) {
    throw bad('A signing certificate in it cannot be read.', cause)
  }
}

const remark = /<!--|<\?(?!xml )/g

/** People comment their metadata and tools give it a stylesheet; nothing signed is read from it. */
const withoutRemarks = (document: string): string => {
  const kept: string[] = []
  let at = 0
  for (;;) {
    remark.lastIndex = at
    const open = remark.exec(document)
    if (!open) return kept.join('') + document.slice(at)
    const close = open[0] === '<!--' ? '-->' : '?>'
    const end = document.indexOf(close, remark.lastIndex)
    if (end < 0) throw new SamlError('bad_xml', 'a comment that does not end')
    kept.push(document.slice(at, open.index))
    at = end + close.length
  }
}

const bad = (detail: string, cause?: unknown): SamlError => new SamlError('bad_shape', detail, { cause })
