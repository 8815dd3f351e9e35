import { X509Certificate } from 'node:crypto'
import { z } from 'zod'
import { flag, line, lines, oneOf, reference, set, time } from '#src/directory/fields.ts'
import { idFilter, listOf, listQuery } from '#src/http/list.ts'
import { looksLikeId } from '#src/lib/ids.ts'
import { iso } from '#src/lib/text.ts'
import { userFields } from './presets.ts'
import { address, oauth2Settings, oidcSettings, samlSettings } from './settings.ts'
import type { ProviderWithRoles } from './types.ts'

const providerTypes = ['oidc', 'oauth2', 'saml'] as const

const alias = z
  .string('An alias of 2 to 64 characters.')
  .regex(
    /^[a-z0-9][a-z0-9-]{0,62}[a-z0-9]$/,
    '2 to 64 lower-case letters, digits and hyphens, no hyphen at the ends.',
  )
  .refine(text => !looksLikeId(text), 'It must not read as an id of the server.')

const common = {
  alias,
  name: line(128, 1),
  enabled: flag,
  allow_registration: flag,
  trust_email: flag,
  default_roles: set(line(128), 50).overwrite(names => names.toSorted()),
  attribute_mapping: z.strictObject(
    Object.fromEntries(userFields.map(field => [field, line(256, 1).optional()])),
    'An object of names of claims by field.',
  ) as z.ZodType<Partial<Record<(typeof userFields)[number], string>>>,
}

const secret = lines(8192)

/** In the place of `entity_id`, `sso_url` and `certificates`. */
const metadata = {
  metadata_xml: z.string('A metadata document.').max(1_000_000, 'At most 1,000,000 characters.'),
  metadata_url: address,
}

const created = {
  ...common,
  organization_id: reference.optional(),
  enabled: flag.default(true),
  allow_registration: flag.default(true),
  trust_email: flag.default(false),
  default_roles: common.default_roles.default(['user']),
  attribute_mapping: common.attribute_mapping.default({}),
}

/**
 * Fields that a preset, the metadata or a default can supply are optional here; the service checks the
 * result.
 */
export const CreateIdentityProvider = z.discriminatedUnion(
  'type',
  [
    z.strictObject({
      type: z.literal('oidc'),
      ...created,
      ...z.object(oidcSettings).partial().shape,
      client_secret: secret.default(''),
    }),
    z.strictObject({
      type: z.literal('oauth2'),
      ...created,
      ...z.object(oauth2Settings).partial().shape,
      client_secret: secret.min(1, 'The secret of our client at the provider.'),
    }),
    z.strictObject({
      type: z.literal('saml'),
      ...created,
      ...z.object({ ...samlSettings, ...metadata }).partial().shape,
    }),
  ],
  'One of: oidc, oauth2, saml.',
)
export type CreateIdentityProvider = z.output<typeof CreateIdentityProvider>

export const writable = {
  ...common,
  ...samlSettings,
  ...oauth2Settings,
  ...oidcSettings,
  client_secret: secret,
}

export const UpdateIdentityProvider = z.strictObject({
  ...z.object({ ...writable, ...metadata }).partial().shape,
  preset: oneOf(['', 'google', 'microsoft', 'apple', 'github', 'gitlab', 'discord']).optional(),
  id: z.string().optional(),
  type: z.string().optional(),
  organization_id: z.string().optional(),
  created_at: z.string().optional(),
  updated_at: z.string().optional(),
})
export type UpdateIdentityProvider = z.output<typeof UpdateIdentityProvider>

const shown = {
  id: z.string(),
  organization_id: z.string(),
  ...common,
  default_roles: z.array(z.string()),
  created_at: time,
  updated_at: time,
}

const ShownCertificate = z.object({
  certificate: z.string(),
  subject: z.string(),
  /** SHA-256. */
  fingerprint: z.string(),
  expires_at: time,
  /** Still accepted: the key is what is trusted. */
  expired: z.boolean(),
})

/** A provider without its secret, which cannot be read again. */
export const IdentityProviderAnswer = z.discriminatedUnion('type', [
  z.object({ type: z.literal('oidc'), ...shown, ...oidcSettings }),
  z.object({ type: z.literal('oauth2'), ...shown, ...oauth2Settings }),
  z.object({ type: z.literal('saml'), ...shown, ...samlSettings, certificates: z.array(ShownCertificate) }),
])

const certificateAnswer = (pem: string, now: number): z.output<typeof ShownCertificate> => {
  const { subject, fingerprint256, validTo } = new X509Certificate(pem)
  const expires = Date.parse(validTo)
  return {
    certificate: pem,
    subject: subject.replaceAll('\n', ', '),
    fingerprint: fingerprint256,
    expires_at: iso(expires),
    expired: expires <= now,
  }
}

/** `now` (ms) tells which certificates have expired. */
export const providerAnswer = (
  provider: ProviderWithRoles,
  now: number,
): z.output<typeof IdentityProviderAnswer> => {
  const { default_role_ids: _, client_secret: __, settings: stored, roles, ...row } = provider
  const shown = {
    ...row,
    ...stored,
    default_roles: roles.map(({ name }) => name),
    ...('certificates' in stored && {
      certificates: stored.certificates.map(pem => certificateAnswer(pem, now)),
    }),
    created_at: iso(row.created_at),
    updated_at: iso(row.updated_at),
  }
  return shown as z.output<typeof IdentityProviderAnswer>
}

export const ListIdentityProviders = listQuery({
  type: oneOf(providerTypes).optional(),
  organization_id: idFilter.optional(),
})
export type ListIdentityProviders = z.output<typeof ListIdentityProviders>

export const IdentityProviderList = listOf(IdentityProviderAnswer)
