import { X509Certificate } from 'node:crypto'
import type { CalledFor, Context } from '#src/context.ts'
import { settingsFrom } from '#src/directory/identity-providers/metadata.ts'
import { subjectOf, usableKeyOf } from '#src/directory/identity-providers/settings.ts'
import type { SamlProvider } from '#src/directory/identity-providers/types.ts'
import { type ConnectionCheck, checkAddress, finding } from '#src/federation/connection-checks.ts'
import { DAY } from '#src/lib/duration.ts'
import { samlAddress } from './service-provider.ts'

/**
 * The check warns when a certificate expires within this number of days, because both sides need time to
 * install a new certificate.
 */
const SOON = 30

const checkCertificate = (pem: string, now: number): ConnectionCheck => {
  const certificate = new X509Certificate(pem)
  const { validFrom, validTo } = certificate
  const [from, to] = [Date.parse(validFrom), Date.parse(validTo)]
  const until = new Date(to).toISOString().slice(0, 10)
  const value = subjectOf(certificate)
  if (!usableKeyOf(certificate))
    return finding(
      'certificate',
      'bad',
      'No signature can be verified with the key of the certificate.',
      value,
    )
  if (to <= now)
    return finding(
      'certificate',
      'warning',
      `The certificate expired on ${until}. Its key is still trusted.`,
      value,
    )
  if (from > now) return finding('certificate', 'warning', 'The certificate is not valid yet.', value)
  return finding(
    'certificate',
    to - now < SOON * DAY ? 'warning' : 'good',
    `The certificate is valid until ${until}.`,
    value,
  )
}

/** Compares a metadata document with the stored settings. */
const checkMetadata = async (
  context: Context,
  organization: CalledFor,
  { settings }: SamlProvider,
  metadata_url: string | undefined,
): Promise<ConnectionCheck[]> => {
  if (metadata_url === undefined) return []
  const { found, problems } = await settingsFrom(context, organization, { metadata_url })
  if (problems[0]) return [finding('metadata', 'bad', problems[0].message)]
  const { certificates = [], entity_id } = found
  const isTrusted = certificates.every(each => settings.certificates.includes(each))
  const same = entity_id === settings.entity_id
  return [
    finding('metadata', 'good', 'The metadata was read; it has a sign-on service for HTTP-Redirect.'),
    finding(
      'entity_id',
      same ? 'good' : 'bad',
      same
        ? 'The metadata has the expected entity id.'
        : 'The entity id in the metadata differs from the stored one.',
      entity_id,
    ),
    ...(found.sso_url === settings.sso_url
      ? []
      : [
          finding(
            'sign_on',
            'bad',
            'The address for logins in the metadata differs from the stored one.',
            found.sso_url,
          ),
        ]),
    ...(isTrusted
      ? []
      : [
          finding(
            'certificate',
            'bad',
            'The metadata has a certificate that is not stored here: import the metadata again.',
          ),
        ]),
  ]
}

/** Checks a SAML provider: its address, its certificates and, if `metadata_url` is given, its metadata. */
export const testSaml = async (
  context: Context,
  organization: CalledFor,
  provider: SamlProvider,
  metadata_url: string | undefined,
): Promise<ConnectionCheck[]> => {
  const { sso_url, certificates } = provider.settings
  const [metadata, sign_on] = await Promise.all([
    checkMetadata(context, organization, provider, metadata_url),
    checkAddress(context, organization, 'sign_on', sso_url),
  ])
  return [
    ...metadata,
    sign_on,
    ...certificates.map(pem => checkCertificate(pem, context.clock.now())),
    finding(
      'own_metadata',
      'info',
      'Address at which the provider reads the metadata of Gatehouse.',
      samlAddress(context, provider, 'metadata'),
    ),
    finding(
      'redirect_uri',
      'info',
      'Address to which the provider sends its responses (assertion consumer service).',
      samlAddress(context, provider, 'acs'),
    ),
  ]
}
