import { X509Certificate } from 'node:crypto'
import { z } from 'zod'
import {
  flag,
  line,
  lines,
  oneOf,
  owner,
  readOnly,
  readOnlyStored,
  set,
  stored,
  time,
} from '#src/directory/fields.ts'
import { listOf, listQuery, ofOrganization } from '#src/http/list.ts'
import { looksLikeId } from '#src/lib/ids.ts'
import { iso } from '#src/lib/text.ts'
import * as examples from './examples.ts'
import { userFields } from './presets.ts'
import { address, oauth2Settings, oidcSettings, SECRET_NEEDED, samlSettings, subjectOf } from './settings.ts'
import type { ProviderWithRoles } from './types.ts'

const providerTypes = ['oidc', 'oauth2', 'saml'] as const

const alias = z
  .string('An alias of 2 to 64 characters.')
  .regex(
    /^[a-z0-9][a-z0-9-]{0,62}[a-z0-9]$/,
    '2 to 64 lower-case letters, digits and hyphens, without a hyphen at the beginning or end.',
  )
  .refine(text => !looksLikeId(text), 'The value must not look like a generated id.')

const common = {
  alias: alias.describe('Unique in the instance; part of the callback URL.'),
  name: line(128, 1).describe('Shown on the login page.'),
  enabled: flag.describe('Whether users may sign in through the provider.'),
  allow_registration: flag.describe(
    'Whether the first login of a person creates a user. The user waits for approval if `settings.registration` of the organization is `approval`.',
  ),
  trust_email: flag.describe(
    'Whether Gatehouse trusts a statement of the provider that an address is verified.',
  ),
  default_roles: set(line(128), 50)
    .overwrite(names => names.toSorted())
    .describe('Names of the roles that new users of the provider get, sorted.'),
  attribute_mapping: z
    .strictObject(
      Object.fromEntries(
        userFields.map(field => [
          field,
          line(256, 1).optional().describe(`Claim whose value becomes \`${field}\`.`),
        ]),
      ),
      'An object with a claim name for each field.',
    )
    .meta({
      id: 'AttributeMapping',
      description: 'Claim names, by user field. A field without an entry has the default claim name.',
    }) as z.ZodType<Partial<Record<(typeof userFields)[number], string>>>,
}

const secret = lines(8192).describe(
  'Secret of the client registered at the provider. It cannot be read again.',
)

/** Fields that replace `entity_id`, `sso_url` and `certificates`. */
const metadata = {
  metadata_xml: z
    .string('A metadata document.')
    .max(1_000_000, 'At most 1,000,000 characters.')
    .describe('Metadata of the provider, in place of `entity_id`, `sso_url` and `certificates`.'),
  metadata_url: address.describe(
    'Address of the metadata document of the provider. The document is read once.',
  ),
}

const created = {
  ...common,
  organization_id: owner,
  enabled: common.enabled.default(true),
  allow_registration: common.allow_registration.default(true),
  trust_email: common.trust_email.default(false),
  default_roles: common.default_roles.default(['user']),
  attribute_mapping: common.attribute_mapping.default({}),
}

/**
 * Fields that a preset, the metadata or a default can supply are optional here. The service checks the
 * completed settings.
 */
export const CreateIdentityProvider = z
  .discriminatedUnion(
    'type',
    [
      z
        .strictObject({
          type: z.literal('oidc'),
          ...created,
          ...z.object(oidcSettings).partial().shape,
          client_secret: secret.default(''),
        })
        .meta({
          id: 'CreateOidcProvider',
          description: 'A new OpenID Connect provider.',
          example: examples.newOidc,
        }),
      z
        .strictObject({
          type: z.literal('oauth2'),
          ...created,
          ...z.object(oauth2Settings).partial().shape,
          client_secret: secret.min(1, SECRET_NEEDED),
        })
        .meta({
          id: 'CreateOAuth2Provider',
          description: 'A new OAuth 2.0 provider.',
          example: examples.newOAuth2,
        }),
      z
        .strictObject({
          type: z.literal('saml'),
          ...created,
          ...z.object({ ...samlSettings, ...metadata }).partial().shape,
        })
        .meta({ id: 'CreateSamlProvider', description: 'A new SAML provider.', example: examples.newSaml }),
    ],
    'One of: oidc, oauth2, saml.',
  )
  .meta({ id: 'CreateIdentityProvider', description: 'A new identity provider.' })
export type CreateIdentityProvider = z.output<typeof CreateIdentityProvider>

export const writable = {
  ...common,
  ...samlSettings,
  ...oauth2Settings,
  ...oidcSettings,
  client_secret: secret,
}

export const UpdateIdentityProvider = z
  .strictObject({
    ...z.object({ ...writable, ...metadata }).partial().shape,
    preset: oneOf(['', 'google', 'microsoft', 'apple', 'github', 'gitlab', 'discord'])
      .optional()
      .describe('A well-known provider of the same type as this provider; empty for none.'),
    ...readOnlyStored,
    type: readOnly(z.string()),
  })
  .meta({
    id: 'UpdateIdentityProvider',
    description: 'The fields of an identity provider to change.',
    example: { name: 'Google Workspace', allow_registration: false },
  })
export type UpdateIdentityProvider = z.output<typeof UpdateIdentityProvider>

const shown = { ...stored, ...common }

const ShownCertificate = z
  .object({
    certificate: z.string().describe('The certificate in PEM.'),
    subject: z.string().describe('Distinguished name of the subject; empty if the certificate has none.'),
    fingerprint: z.string().describe('SHA-256 of the certificate in hexadecimal digits.'),
    expires_at: time.describe('Time at which the certificate expires (ISO 8601, UTC).'),
    expired: flag.describe(
      'Whether the certificate has expired. Gatehouse still trusts the key of an expired certificate.',
    ),
  })
  .meta({ id: 'Certificate', description: 'A certificate of a SAML provider.' })

export const IdentityProviderAnswer = z
  .discriminatedUnion('type', [
    z
      .object({ type: z.literal('oidc'), ...shown, ...oidcSettings })
      .meta({ id: 'OidcProvider', description: 'An OpenID Connect provider.', example: examples.shownOidc }),
    z
      .object({ type: z.literal('oauth2'), ...shown, ...oauth2Settings })
      .meta({ id: 'OAuth2Provider', description: 'An OAuth 2.0 provider.', example: examples.shownOAuth2 }),
    z
      .object({
        type: z.literal('saml'),
        ...shown,
        ...samlSettings,
        certificates: z.array(ShownCertificate).describe('Certificates that the provider signs with.'),
      })
      .meta({ id: 'SamlProvider', description: 'A SAML provider.', example: examples.shownSaml }),
  ])
  .meta({
    id: 'IdentityProvider',
    description: 'A provider that an organization trusts, without its secret.',
  })

const certificateAnswer = (pem: string, now: number): z.output<typeof ShownCertificate> => {
  const certificate = new X509Certificate(pem)
  const { fingerprint256, validTo } = certificate
  const expires = Date.parse(validTo)
  return {
    certificate: pem,
    subject: subjectOf(certificate),
    fingerprint: fingerprint256,
    expires_at: iso(expires),
    expired: expires <= now,
  }
}

/**
 * Returns a provider in the form of the admin API's answer. `now` (ms) decides which certificates have
 * expired.
 */
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
  type: oneOf(providerTypes).optional().describe('Only providers of this type.'),
  organization_id: ofOrganization,
})
export type ListIdentityProviders = z.output<typeof ListIdentityProviders>

export const IdentityProviderList = listOf('IdentityProviderList', IdentityProviderAnswer)
