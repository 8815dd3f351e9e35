import { X509Certificate } from 'node:crypto'
import type { Context } from '#src/context.ts'
import { usableKeyOf } from '#src/directory/identity-providers/settings.ts'
import type { SamlProvider } from '#src/directory/identity-providers/types.ts'
import type { CallbackRequest } from '#src/federation/callback.ts'
import type { UpstreamProfile } from '#src/federation/profile.ts'
import { CallbackError } from '#src/federation/refusal.ts'
import type { BuildAuthorizationUrl } from '#src/federation/start-login.ts'
import { boundHandle } from '#src/federation/upstream-request.ts'
import type { Call } from '#src/http/call.ts'
import { SECOND } from '#src/lib/duration.ts'
import { hashSecret, newSecret } from '#src/lib/secrets.ts'
import { redirectUrl } from '#src/protocol/saml/authn-request.ts'
import { SamlError } from '#src/protocol/saml/error.ts'
import { renderMetadata } from '#src/protocol/saml/own-metadata.ts'
import { assertedProfileOf } from '#src/protocol/saml/profile.ts'
import type { Assertion } from '#src/protocol/saml/response.ts'
import { useAssertion } from '#src/tokens/assertion-store.ts'
import { signingThread } from '#src/tokens/signing-thread.ts'

/**
 * Returns a URL of the service provider. Gatehouse has a separate entity id and separate endpoints for each
 * identity provider, so that a response of one provider is never accepted as a response of another.
 */
export const samlAddress = (
  { config }: Context,
  { alias }: Pick<SamlProvider, 'alias'>,
  what: 'metadata' | 'login' | 'acs',
): string => `${config.url}/saml/${alias}/${what}`

/** Returns the entry of a provider in GET /saml/providers. */
export const summaryOf = (context: Context, provider: Pick<SamlProvider, 'alias' | 'name'>) => ({
  alias: provider.alias,
  name: provider.name,
  login_url: samlAddress(context, provider, 'login'),
  metadata_url: samlAddress(context, provider, 'metadata'),
})

/** Renders the service provider metadata for an identity provider. */
export const metadataOf = async (context: Context, provider: SamlProvider): Promise<string> =>
  renderMetadata({
    entity_id: samlAddress(context, provider, 'metadata'),
    acs_url: samlAddress(context, provider, 'acs'),
    certificate: (await context.samlKey()).certificate,
    sign_requests: provider.settings.sign_requests,
  })

/** Returns the ID of the AuthnRequest with this RelayState. Only this server can compute it. */
const requestId = (context: Context, relay_state: string): string =>
  `_${boundHandle(context, 'saml_request', relay_state)}`

const SEPARATOR = '.'

/** Returns the state in a RelayState of the form `state.random`. */
export const stateOf = (relay_state: string): string => relay_state.split(SEPARATOR, 1)[0] ?? ''

/**
 * Builds the redirect to the provider with an AuthnRequest. The RelayState is the state and 16 random
 * characters. The request ID is derived from the RelayState, so each redirect of an upstream request has its
 * own ID. Providers refuse an ID that they have seen. The RelayState stays within the 80 bytes of section
 * 3.4.3 of https://docs.oasis-open.org/security/saml/v2.0/saml-bindings-2.0-os.pdf
 */
export const buildAuthnRequest =
  (context: Context): BuildAuthorizationUrl<SamlProvider> =>
  async ({ provider, state, reauthenticate }) => {
    const { sso_url, sign_requests } = provider.settings
    const relay_state = `${state}${SEPARATOR}${newSecret().slice(0, 16)}`
    const request = {
      id: requestId(context, relay_state),
      issued_at: context.clock.now(),
      issuer: samlAddress(context, provider, 'metadata'),
      acs_url: samlAddress(context, provider, 'acs'),
      destination: sso_url,
      force: reauthenticate,
    }
    return redirectUrl(request, relay_state, sign_requests ? await signer(context) : undefined)
  }

/** Signs on the signing thread, because an RSA-3072 signature takes more than a millisecond. */
const signer = async (context: Context) => {
  const { id, private_key } = await context.samlKey()
  return async (input: string) =>
    Buffer.from(await signingThread.sign(id, private_key, 'RS256', input), 'base64url').toString('base64')
}

/**
 * Verifies a response and returns its assertion.
 *
 * @param upstream_request facts about the upstream request; undefined for an unsolicited response
 * @throws CallbackError with the reason of a refusal; AppError when too many responses wait for the XML
 * reader
 */
export const checkResponse = async (
  context: Context,
  { ip_address }: Call,
  provider: SamlProvider,
  encoded: string,
  upstream_request: (CallbackRequest & { relay_state: string }) | undefined,
): Promise<Assertion> => {
  const { settings } = provider
  const expected = {
    keys: pinnedKeys(context, provider),
    allow_sha1: settings.allow_sha1,
    allow_cbc: settings.allow_cbc,
    decryption_key: await decryptionKey(context),
    issuer: settings.entity_id,
    audience: samlAddress(context, provider, 'metadata'),
    acs_url: samlAddress(context, provider, 'acs'),
    request: upstream_request && {
      id: requestId(context, upstream_request.relay_state),
      sent_at: upstream_request.sent_at,
      force: upstream_request.reauthenticate,
    },
    clock_tolerance: settings.clock_tolerance * SECOND,
  }
  return context.xml
    .run(provider.organization_id, 'response', { encoded, expected, now: context.clock.now() }, ip_address)
    .catch(asCallbackError)
}

/**
 * Returns the profile of an assertion and marks the assertion as used.
 *
 * @throws CallbackError `saml_replayed` for an assertion that was used before, or with the reason why its
 * profile is refused
 */
export const verifySamlCallback = async (
  context: Context,
  provider: SamlProvider,
  assertion: Assertion,
): Promise<UpstreamProfile> => {
  const profile = withReason(() => assertedProfileOf(assertion, provider.attribute_mapping))
  const { id, expires_at, authn_instant, session_ends_at } = assertion
  const assertion_hash = hashSecret(`${provider.id} ${id}`)
  if (!(await context.store.write(tx => useAssertion(tx, { assertion_hash, expires_at }))))
    throw new CallbackError('saml_replayed')
  return { ...profile, auth_time: authn_instant, until: session_ends_at }
}

const withReason = <T>(body: () => T): T => {
  try {
    return body()
  } catch (error) {
    return asCallbackError(error)
  }
}

const asCallbackError = (cause: unknown): never => {
  throw cause instanceof SamlError ? new CallbackError(`saml_${cause.reason}`, { cause }) : cause
}

const decryptionKey = async (context: Context): Promise<string> =>
  (await context.samlKey()).private_key.export({ format: 'pem', type: 'pkcs8' }).toString()

/**
 * Returns the public keys of the pinned certificates. Only the keys are trusted, so an expired certificate
 * still works. A refusal would lock out all users of the provider at once. The server logs a warning about an
 * expired certificate. A key that cannot verify signatures is skipped, so that the other keys still work.
 */
const pinnedKeys = ({ clock, log }: Context, { alias, settings }: SamlProvider) =>
  settings.certificates.flatMap(pem => {
    const certificate = new X509Certificate(pem)
    const { validTo, fingerprint256 } = certificate
    if (Date.parse(validTo) <= clock.now())
      log.warn(
        { event: 'certificate_expired', provider: alias, fingerprint: fingerprint256 },
        "an identity provider's pinned certificate has expired",
      )
    return usableKeyOf(certificate)?.export({ format: 'pem', type: 'spki' }).toString() ?? []
  })
