import { z } from 'zod'
import type { Config } from '#src/config.ts'
import type { Core } from '#src/context.ts'
import type { UnnamedFactor } from '#src/directory/users/factors/service.ts'
import type { Factor } from '#src/directory/users/factors/store.ts'
import type { UserRow } from '#src/directory/users/store.ts'
import { offersPasskeys } from '#src/lib/passkey-site.ts'
import { acrValues } from '#src/protocol/oidc/acr.ts'
import { makerOf } from './passkey-makers.ts'

/** Returns the WebAuthn RP ID. Browsers use a passkey only for the RP ID that it was created for. */
const hostOf = ({ url }: Pick<Config, 'url'>): string => new URL(url).hostname

/** Returns the acr values that this server supports. */
export const supportedAcrs = (config: Pick<Config, 'url'>): string[] =>
  acrValues.filter(value => value !== 'phr' || offersPasskeys(config))

/**
 * Derives the WebAuthn challenge for a purpose and a `subject`. In a login the subject is the pending request
 * with its round. The challenge thus works only once, and only in the browser that has the handle of the
 * request. On the page of an invitation or a link, the subject is the CSRF token of the page.
 */
export const challengeOf = (
  { master }: Core,
  purpose: 'login' | 'second_factor' | 'enrol' | 'invitation' | 'link',
  subject: string,
): string => master.hmac('passkeys').update(`${purpose}\0${subject}`).digest('base64url')

/**
 * Time limit for the user's answer, in milliseconds (5 minutes):
 * https://www.w3.org/TR/webauthn-3/#sctn-timeout-recommended-range
 */
const TIMEOUT = 300_000

/**
 * Returns the request options as JSON. If `passkeys` is undefined, any passkey of this site is accepted.
 * https://www.w3.org/TR/webauthn-3/#dictdef-publickeycredentialrequestoptionsjson
 */
export const requestOptions = (
  config: Config,
  challenge: string,
  passkeys?: readonly Factor[],
  userVerification = passkeys ? 'preferred' : 'required',
): string =>
  JSON.stringify({
    challenge,
    rpId: hostOf(config),
    timeout: TIMEOUT,
    userVerification,
    ...(passkeys && { allowCredentials: passkeys.map(descriptor) }),
  })

const descriptor = ({ credential_id: id, transports }: Factor) => ({ type: 'public-key', id, transports })

// The numbers mean EdDSA, ES256 and RS256. The standard recommends these three, because nearly every
// authenticator supports one of them:
// https://www.w3.org/TR/webauthn-3/#dom-publickeycredentialcreationoptions-pubkeycredparams
const ALGORITHMS = [-8, -7, -257]

/**
 * Returns the creation options as JSON. If `need` is `required`, the user can sign in with the passkey alone.
 * The passkey must therefore be discoverable, and the authenticator must verify the user. No attestation is
 * requested, because no rule depends on the maker of a passkey.
 * https://www.w3.org/TR/webauthn-3/#dictdef-publickeycredentialcreationoptionsjson
 */
export const creationOptions = (
  config: Config,
  challenge: string,
  organization: string,
  user: Pick<UserRow, 'id' | 'username' | 'first_name' | 'last_name'>,
  passkeys: readonly Factor[],
  need: 'preferred' | 'required',
): string =>
  JSON.stringify({
    challenge,
    rp: { id: hostOf(config), name: organization },
    user: {
      id: Buffer.from(user.id).toString('base64url'),
      name: user.username,
      displayName: `${user.first_name} ${user.last_name}`.trim() || user.username,
    },
    pubKeyCredParams: ALGORITHMS.map(alg => ({ type: 'public-key', alg })),
    timeout: TIMEOUT,
    attestation: 'none',
    authenticatorSelection: { residentKey: need, userVerification: need },
    excludeCredentials: passkeys.map(descriptor),
  })

const text = z.string().max(32_768)
const common = {
  id: text,
  rawId: text,
  type: z.literal('public-key'),
  clientExtensionResults: z.record(z.string(), z.unknown()).transform(() => ({})),
}
const Registration = z.object({
  ...common,
  response: z.object({
    clientDataJSON: text,
    attestationObject: text,
    transports: z.array(z.string().max(32)).max(10).default([]),
  }),
})
const Assertion = z.object({
  ...common,
  response: z.object({
    clientDataJSON: text,
    authenticatorData: text,
    signature: text,
    userHandle: text.nullish().transform(handle => handle ?? undefined),
  }),
})
type Assertion = z.output<typeof Assertion>

const parse = <T>(schema: z.ZodType<T>, json: string | undefined): T | undefined => {
  try {
    return schema.safeParse(JSON.parse(json ?? '')).data
  } catch {
    return undefined
  }
}

/**
 * Loads the WebAuthn library at the first use, because it takes longer to load than all other modules of the
 * server.
 */
const library = async () => {
  // @simplewebauthn/server uses a certificate library that needs this module. In the executable, the
  // certificate library does not load the module itself.
  await import('reflect-metadata')
  return import('@simplewebauthn/server')
}

const expectation = ({ config }: Core, challenge: string) => ({
  expectedChallenge: challenge,
  expectedOrigin: config.url,
  expectedRPID: hostOf(config),
})

/**
 * Returns a copy of an attestation object with the format `none` and without a statement. No rule depends on
 * the maker of a passkey, so the statement is not needed. To verify the certificates in a statement, the
 * library would fetch the revocation lists that the certificates name. These fetches would have no limit and
 * no check of the addresses.
 */
const withoutStatement = async (attestationObject: string): Promise<string> => {
  const { decodeAttestationObject, isoBase64URL, isoCBOR } = await import('@simplewebauthn/server/helpers')
  const authData = decodeAttestationObject(isoBase64URL.toBuffer(attestationObject)).get('authData')
  const bare = new Map<string, Uint8Array | string | Map<string, string>>([
    ['fmt', 'none'],
    ['attStmt', new Map<string, string>()],
    ['authData', authData],
  ])
  return isoBase64URL.fromBuffer(isoCBOR.encode(bare))
}

/**
 * Maximum length of a credential id in base64url (1,023 bytes). PostgreSQL cannot index a much longer id.
 * https://www.w3.org/TR/webauthn-3/#credential-id
 */
const MAX_CREDENTIAL_ID = 1_364

/**
 * Verifies a registration for this challenge. Returns the new passkey. Returns undefined for an invalid
 * registration. If `alone` is true, user verification is required, because the passkey replaces both the
 * password and the second factor.
 */
export const verifyRegistration = async (
  context: Core,
  json: string | undefined,
  challenge: string,
  { alone = false } = {},
): Promise<UnnamedFactor | undefined> => {
  const response = parse(Registration, json)
  if (!response) return undefined
  const { verifyRegistrationResponse } = await library()
  const verify = async () => {
    const attestationObject = await withoutStatement(response.response.attestationObject)
    const bare = { ...response, response: { ...response.response, attestationObject } }
    return verifyRegistrationResponse({
      ...expectation(context, challenge),
      response: bare as Parameters<typeof verifyRegistrationResponse>[0]['response'],
      requireUserVerification: alone,
      supportedAlgorithmIDs: ALGORITHMS,
    })
  }
  const { registrationInfo } = await verify().catch(() => ({ registrationInfo: undefined }))
  if (!registrationInfo) return undefined
  const { aaguid, credential, credentialDeviceType } = registrationInfo
  if (credential.id.length > MAX_CREDENTIAL_ID) return undefined
  return {
    type: 'passkey',
    name: makerOf(aaguid),
    credential_id: credential.id,
    public_key: Buffer.from(credential.publicKey),
    sign_count: credential.counter,
    transports: response.response.transports,
    synced: credentialDeviceType === 'multiDevice',
    alone,
  }
}

/** Parses the JSON of a WebAuthn assertion. Returns undefined when the JSON is malformed. */
export const parseAssertion = (json: string | undefined): Assertion | undefined => parse(Assertion, json)

/** Returns the user handle of a discoverable passkey. */
export const handleOf = ({ response }: Assertion): string | undefined =>
  response.userHandle && Buffer.from(response.userHandle, 'base64url').toString()

/** Facts from a verified passkey assertion: the new counter and `amr`. */
export interface ProvenPasskey {
  sign_count: number
  amr: string[]
}

/**
 * ES256 key that is used in place of the key of an unknown passkey. It is the base point of P-256 as a
 * COSE_Key (RFC 9053 section 7.1.1).
 */
const DUMMY_KEY = Buffer.from(
  'a5010203262001' +
    '2158206b17d1f2e12c4247f8bce6e563a440f277037d812deb33a0f4a13945d898c296' +
    '2258204fe342e2fe1a7f9b8ee7eb4a7c0f9e162bce33576b315ececbb6406837bf51f5',
  'hex',
)

/**
 * Verifies the passkey's signature over the challenge. Returns undefined when the signature is invalid. If
 * `passkey` is undefined, the work is the same, so that response times do not reveal known credential ids.
 * `alone` is true when the passkey is the only factor. In this case user verification is required.
 */
export const verifyAssertion = async (
  context: Core,
  assertion: Assertion,
  passkey: Factor | undefined,
  challenge: string,
  { alone }: { alone: boolean },
): Promise<ProvenPasskey | undefined> => {
  const { verifyAuthenticationResponse } = await library()
  const result = await verifyAuthenticationResponse({
    ...expectation(context, challenge),
    response: assertion as Parameters<typeof verifyAuthenticationResponse>[0]['response'],
    // `usePasskey` checks the counter inside the write, because two assertions can be verified at the same
    // time.
    credential: {
      id: assertion.id,
      publicKey: new Uint8Array(passkey?.public_key ?? DUMMY_KEY),
      counter: 0,
    },
    // A passkey alone counts as two factors: the device, and the biometric or PIN that unlocks the device.
    requireUserVerification: alone,
  }).catch(() => undefined)
  if (!passkey?.public_key || !result?.verified) return undefined
  return { sign_count: result.authenticationInfo.newCounter, amr: [passkey.synced ? 'swk' : 'hwk', 'mfa'] }
}
