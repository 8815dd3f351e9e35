import { createPrivateKey, type KeyObject, X509Certificate } from 'node:crypto'
import { z } from 'zod'
import { flag, integer, isWebUrl, line, oneOf, set } from '#src/directory/fields.ts'
import { isScopeToken } from '#src/protocol/oauth/scope.ts'

export const address = z
  .string('An https address.')
  .max(2048, 'At most 2048 characters.')
  .refine(isWebUrl, 'An https address without user name, fragment or spaces.')

const scope = z
  .string('A scope.')
  .max(255, 'At most 255 characters.')
  .refine(isScopeToken, 'A scope is printable ASCII without spaces, double quotes or backslashes.')

const oauth = {
  client_id: line(255, 1).describe('Client id of Gatehouse at the provider.'),
  scopes: set(scope, 50).describe('Scopes that are requested.'),
}

const PRESET =
  'A well-known provider; empty for none. A newly chosen preset supplies the settings that the request lacks.'

export const oidcSettings = {
  ...oauth,
  preset: oneOf(['', 'google', 'microsoft', 'apple']).describe(PRESET),
  issuer: address.describe('Issuer; its discovery document has the endpoints.'),
  response_mode: oneOf(['query', 'form_post']).describe('How the provider sends its answer.'),
  team_id: line(64).describe(
    'For Apple: id of the team. If `team_id` and `key_id` are set, `client_secret` is a private key (PKCS #8, PEM). Gatehouse signs the secret that it sends with this key.',
  ),
  key_id: line(64).describe('For Apple: id of the private key.'),
}

/** True for a text that holds a private key, which must never be sent as a client secret. */
export const holdsPrivateKey = (secret: string): boolean => /-----BEGIN [A-Z ]*PRIVATE KEY-----/.test(secret)

/**
 * Returns the key with which Gatehouse signs the client secret for Apple. Returns undefined unless it is a
 * P-256 key.
 */
export const signingKeyOf = (pem: string): KeyObject | undefined => {
  try {
    const key = createPrivateKey(pem)
    return key.asymmetricKeyDetails?.namedCurve === 'prime256v1' ? key : undefined
  } catch {
    return undefined
  }
}

export const SECRET_NEEDED = 'The secret of the client registered at the provider.'

export const oauth2Settings = {
  ...oauth,
  preset: oneOf(['', 'github', 'gitlab', 'discord']).describe(PRESET),
  authorization_endpoint: address.describe('Authorization endpoint (RFC 6749 section 3.1).'),
  token_endpoint: address.describe('Token endpoint (RFC 6749 section 3.2).'),
  userinfo_endpoint: address.describe('Endpoint that returns the profile of the user as JSON.'),
  emails_endpoint: z
    .union([z.literal(''), address], 'An https address, or an empty text.')
    .describe(
      'Endpoint that returns the e-mail addresses of the user, in the format of GitHub. Empty if there is no such endpoint.',
    ),
}

const parseCertificate = (pem: string): X509Certificate | undefined => {
  try {
    return new X509Certificate(pem)
  } catch {
    return undefined
  }
}

/**
 * Returns the subject of a certificate as one line. For a certificate without a subject the runtime returns
 * undefined, although the declared type is string.
 */
export const subjectOf = ({ subject }: { subject?: string }): string => subject?.replaceAll('\n', ', ') ?? ''

/**
 * Returns the public key of a certificate if the key can verify signatures. Such a key is an RSA key, or an
 * EC key on a curve that the runtime supports.
 */
export const usableKeyOf = (certificate: X509Certificate): KeyObject | undefined => {
  try {
    const { publicKey } = certificate
    return ['rsa', 'ec'].includes(publicKey.asymmetricKeyType ?? '') ? publicKey : undefined
  } catch {
    return undefined
  }
}

/** A certificate in PEM, or as the object that answers contain. */
const certificate = z
  .union([z.string(), z.looseObject({ certificate: z.string() })], 'A certificate in PEM.')
  .transform((given, issues) => {
    const pem = parseCertificate(typeof given === 'string' ? given : given.certificate)?.toString() ?? ''
    if (!pem) issues.addIssue({ code: 'custom', message: 'A certificate in PEM.' })
    return pem.trim()
  })

export const samlSettings = {
  entity_id: line(1024, 1).describe('Entity id of the provider.'),
  sso_url: address.describe('Address of the provider for requests by redirect.'),
  // At most 10, because a signature is checked with each certificate in turn until one matches.
  certificates: z
    .array(certificate, 'A list of certificates in PEM.')
    .min(1, 'At least one certificate. Without a certificate no signature can be verified.')
    .max(10, 'At most 10 certificates.')
    .describe('Signing certificates of the provider, in PEM, or as the objects that this API returns.'),
  sign_requests: flag.describe('Whether Gatehouse signs its requests.'),
  allow_idp_initiated: flag.describe('Whether Gatehouse accepts a response although it has sent no request.'),
  allow_sha1: flag.describe('Whether signatures with SHA-1 are accepted.'),
  allow_cbc: flag.describe('Whether encryption with CBC is accepted.'),
  clock_tolerance: integer(0, 600).describe(
    'Seconds by which the clocks of the provider and of Gatehouse may differ.',
  ),
}

/** The complete stored settings of each type. */
export const settingsSchemas = {
  oidc: z.strictObject(oidcSettings),
  oauth2: z.strictObject(oauth2Settings),
  saml: z.strictObject(samlSettings),
}
export type OidcSettings = z.output<typeof settingsSchemas.oidc>
export type OAuth2Settings = z.output<typeof settingsSchemas.oauth2>
export type SamlSettings = z.output<typeof settingsSchemas.saml>

export const defaults = {
  oidc: {
    preset: '',
    scopes: ['openid', 'profile', 'email'],
    response_mode: 'query',
    team_id: '',
    key_id: '',
  },
  oauth2: { preset: '', scopes: [], emails_endpoint: '' },
  // Weak options are off by default. An attacker can plant an unsolicited response in another person's
  // browser. SHA-1 has collisions. CBC does not protect integrity.
  saml: {
    sign_requests: true,
    allow_idp_initiated: false,
    allow_sha1: false,
    allow_cbc: false,
    clock_tolerance: 60,
  },
}
