import { SamlError, type SamlReason } from '#src/protocol/saml/error.ts'
import { type Expected, readResponse } from '#src/protocol/saml/response.ts'
import { party } from '#test/support/saml/genuine.ts'
import { newPair } from '#test/support/saml/identity-provider.ts'

/** The key pair of the service provider. Identity providers encrypt assertions with the public key. */
export const ourPair = newPair()

/** Returns the expectations for a response to the stored request. */
export const expecting = (more: Partial<Expected> & Pick<Expected, 'keys'>): Expected => ({
  allow_sha1: false,
  allow_cbc: false,
  decryption_key: ourPair.privateKey,
  issuer: party.issuer,
  audience: party.audience,
  acs_url: party.acs_url,
  request: { id: party.request_id ?? '', sent_at: party.now, force: false },
  clock_tolerance: 60_000,
  ...more,
})

/**
 * Returns the reason of a refusal, or undefined when the response is accepted. Throws other errors, because
 * they are bugs.
 */
export const refusal = (encoded: string, expected: Expected, now = party.now): SamlReason | undefined => {
  try {
    readResponse(encoded, expected, now)
    return undefined
  } catch (error) {
    if (error instanceof SamlError) return error.reason
    throw error
  }
}
