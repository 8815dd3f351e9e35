import { offered } from './encryption.ts'
import { escapeXml } from './escape.ts'
import { namespaces, POST_BINDING } from './names.ts'

/** What we tell a provider about ourselves. */
export interface ServiceProvider {
  readonly entity_id: string
  readonly acs_url: string
  /** DER in base64. */
  readonly certificate: string
  readonly sign_requests: boolean
}

/** https://docs.oasis-open.org/security/saml/v2.0/saml-metadata-2.0-os.pdf section 2.4.4 */
export const renderMetadata = (sp: ServiceProvider): string => {
  const key = (use: string, methods = '') =>
    `<md:KeyDescriptor use="${use}"><ds:KeyInfo><ds:X509Data><ds:X509Certificate>${sp.certificate}` +
    `</ds:X509Certificate></ds:X509Data></ds:KeyInfo>${methods}</md:KeyDescriptor>`
  const methods = offered.map(name => `<md:EncryptionMethod Algorithm="${name}"/>`).join('')
  return (
    `<?xml version="1.0" encoding="UTF-8"?>\n` +
    `<md:EntityDescriptor xmlns:md="${namespaces.md}" xmlns:ds="${namespaces.ds}" entityID="${escapeXml(sp.entity_id)}">` +
    `<md:SPSSODescriptor AuthnRequestsSigned="${sp.sign_requests}" WantAssertionsSigned="true"` +
    ` protocolSupportEnumeration="${namespaces.samlp}">${key('signing')}${key('encryption', methods)}` +
    `<md:AssertionConsumerService Binding="${POST_BINDING}" Location="${escapeXml(sp.acs_url)}" index="0" isDefault="true"/>` +
    `</md:SPSSODescriptor></md:EntityDescriptor>\n`
  )
}
