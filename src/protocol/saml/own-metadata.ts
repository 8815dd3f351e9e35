import { buildXml } from './build-xml.ts'
import { offered } from './encryption.ts'
import { namespaces, POST_BINDING } from './names.ts'

/** Properties of this service provider that its metadata contains. */
export interface ServiceProvider {
  readonly entity_id: string
  readonly acs_url: string
  /** DER in base64. */
  readonly certificate: string
  readonly sign_requests: boolean
}

/**
 * Returns the metadata document: https://docs.oasis-open.org/security/saml/v2.0/saml-metadata-2.0-os.pdf
 * section 2.4.4
 */
export const renderMetadata = (sp: ServiceProvider): string => {
  const key = (use: string, methods: readonly string[] = []) => ({
    '@use': use,
    'ds:KeyInfo': { 'ds:X509Data': { 'ds:X509Certificate': sp.certificate } },
    'md:EncryptionMethod': methods.map(name => ({ '@Algorithm': name })),
  })
  const body = buildXml({
    'md:EntityDescriptor': {
      '@xmlns:md': namespaces.md,
      '@xmlns:ds': namespaces.ds,
      '@entityID': sp.entity_id,
      'md:SPSSODescriptor': {
        '@AuthnRequestsSigned': String(sp.sign_requests),
        '@WantAssertionsSigned': 'true',
        '@protocolSupportEnumeration': namespaces.samlp,
        'md:KeyDescriptor': [key('signing'), key('encryption', offered)],
        'md:AssertionConsumerService': {
          '@Binding': POST_BINDING,
          '@Location': sp.acs_url,
          '@index': '0',
          '@isDefault': 'true',
        },
      },
    },
  })
  return `<?xml version="1.0" encoding="UTF-8"?>\n${body}\n`
}
