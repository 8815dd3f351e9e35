import { X509Certificate } from 'node:crypto'
import type { CalledFor, Core } from '#src/context.ts'
import { isAllowed } from '#src/http/outbound.ts'
import type { Detail } from '#src/lib/app-error.ts'
import { findPreset } from './presets.ts'
import {
  defaults,
  holdsPrivateKey,
  SECRET_NEEDED,
  settingsSchemas as schemas,
  signingKeyOf,
  usableKeyOf,
} from './settings.ts'
import type { IdentityProvider } from './types.ts'

type Type = IdentityProvider['type']
export type GivenSettings = Record<string, unknown>

const pemsOf = ({ certificates }: GivenSettings): string[] => (certificates ?? []) as string[]

/**
 * Maximum number of characters of a certificate in PEM. A certificate of an RSA key of 16,384 bits has about
 * 6,000 characters.
 */
const CERTIFICATE_LENGTH = 16_384

/**
 * Maximum number of characters of all certificates of a provider. A list of 100 providers thus has at most
 * about 3 MiB of certificates. Ten certificates of RSA keys of 4,096 bits have about 20,000 characters.
 */
const CERTIFICATES_LENGTH = 32_768

/** Returns the reason why a certificate is refused. */
const certificateProblem = (pem: string): string | undefined => {
  if (pem.length > CERTIFICATE_LENGTH)
    return `A certificate in PEM of at most ${CERTIFICATE_LENGTH} characters.`
  if (!usableKeyOf(new X509Certificate(pem)))
    return 'A certificate with an RSA key, or an EC key on P-256, P-384 or P-521.'
  return undefined
}

/**
 * Returns the problems of the certificates. Stored certificates are not checked, because an earlier version
 * may have accepted them.
 */
const certificateProblems = (after: GivenSettings = {}, before: GivenSettings = {}): Detail[] => {
  const [pems, stored] = [pemsOf(after), pemsOf(before)]
  const problems = pems.flatMap((pem, index) => {
    const message = stored.includes(pem) ? undefined : certificateProblem(pem)
    return message ? [{ field: `certificates.${index}`, code: 'custom', message }] : []
  })
  if (pems.join('').length > Math.max(CERTIFICATES_LENGTH, stored.join('').length)) {
    const message = `Certificates of at most ${CERTIFICATES_LENGTH} characters together.`
    problems.push({ field: 'certificates', code: 'custom', message })
  }
  return problems
}

const BOTH_IDS = 'The private key of `client_secret` needs `team_id` and `key_id`.'

/**
 * Returns the problems of the key with which Gatehouse signs the client secret for Apple. Unchanged values
 * are not checked, because an earlier version may have accepted them. A missing secret is no problem here,
 * because it may be set later.
 */
const signingKeyProblems = (after: GivenSettings, before: GivenSettings): Detail[] => {
  const names = ['team_id', 'key_id', 'client_secret'] as const
  if (names.every(name => (after[name] ?? '') === (before[name] ?? ''))) return []
  const [team_id, key_id, secret] = names.map(name => String(after[name] ?? ''))
  if (secret && team_id && key_id)
    return signingKeyOf(secret)
      ? []
      : [{ field: 'client_secret', code: 'custom', message: 'The private key of `key_id`: P-256, in PEM.' }]
  const missing = names.slice(0, 2).filter(name => !after[name])
  return missing.length === 1 || holdsPrivateKey(secret ?? '')
    ? missing.map(field => ({ field, code: 'custom', message: BOTH_IDS }))
    : []
}

/**
 * Returns the complete settings of a provider. Each value comes from the first source that has it: `given`, a
 * newly chosen preset, the stored settings, the defaults.
 */
export const completeSettings = (type: Type, given: GivenSettings, before: GivenSettings = {}) => {
  const isNewPreset = given.preset !== undefined && given.preset !== before.preset
  const filled: GivenSettings = {
    ...defaults[type],
    ...before,
    ...(isNewPreset && findPreset(given.preset)?.settings),
    ...given,
  }
  const names = Object.keys(schemas[type].shape)
  const whole: GivenSettings = Object.fromEntries(names.map(name => [name, filled[name]]))
  const result = schemas[type].safeParse(whole)
  const problems = (result.error?.issues ?? []).map(issue => ({
    field: issue.path.join('.'),
    code: filled[String(issue.path[0])] === undefined ? 'required' : issue.code,
    message: issue.message,
  }))
  problems.push(...certificateProblems(result.data, before))
  if (type === 'oidc') problems.push(...signingKeyProblems(filled, before))
  return { settings: result.data, whole, problems }
}

/**
 * Returns a problem for each plain http address whose host and port are missing from `outbound_allow`. A
 * stored address is no problem, because it may be older than the list. Gatehouse calls no http address that
 * the list does not name.
 */
export const addressProblems = (
  { config }: Core,
  organization: CalledFor,
  given: GivenSettings,
  before: GivenSettings = {},
): Detail[] =>
  Object.entries(given).flatMap(([field, value]) => {
    const isAddress = /^(?:issuer|\w+_endpoint|\w+_url)$/.test(field) && value !== before[field]
    const url = isAddress ? URL.parse(String(value)) : null
    return url?.protocol === 'http:' && !isAllowed(config, url, organization)
      ? [
          {
            field,
            code: 'http',
            message:
              'https is needed, unless GATEHOUSE_OUTBOUND_ALLOW names the host and port for the organization.',
          },
        ]
      : []
  })

/** Returns a detail for each given setting that the provider type does not have. */
export const fieldProblems = (type: Type, given: GivenSettings): Detail[] => {
  const fields = { ...schemas.oidc.shape, ...schemas.oauth2.shape, ...schemas.saml.shape }
  const others = Object.keys(fields).filter(name => !Object.hasOwn(schemas[type].shape, name))
  const foreign = [...others, ...(type === 'saml' ? ['client_secret'] : ['metadata_xml', 'metadata_url'])]
  return foreign
    .filter(field => given[field] !== undefined)
    .map(field => ({
      field,
      code: 'unknown_field',
      message: `A provider of type ${type} has no such field.`,
    }))
}

/** Addresses that receive the secret or tokens. */
const SECRET_RECEIVERS = ['issuer', 'token_endpoint', 'userinfo_endpoint', 'emails_endpoint'] as const

/**
 * Requires the secret again when one of the `SECRET_RECEIVERS` changes. Otherwise a caller could send the
 * stored secret to a server of their own. An OAuth 2.0 provider always needs a secret, because Gatehouse
 * authenticates with it at the token endpoint.
 */
export const secretProblems = (
  provider: IdentityProvider,
  given: GivenSettings,
  after: GivenSettings = {},
): Detail[] => {
  if (provider.type === 'oauth2' && given.client_secret === '')
    return [{ field: 'client_secret', code: 'too_small', message: SECRET_NEEDED }]
  const before: GivenSettings = { ...provider.settings }
  const isMoved = SECRET_RECEIVERS.some(name => after[name] && after[name] !== before[name])
  return provider.client_secret && given.client_secret === undefined && isMoved
    ? [
        {
          field: 'client_secret',
          code: 'required',
          message: 'An address of the provider changes. Send the secret again.',
        },
      ]
    : []
}
