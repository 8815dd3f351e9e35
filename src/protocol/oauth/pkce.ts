import { hash, timingSafeEqual } from 'node:crypto'
import { invalidParameter, requireParameter } from './parameters.ts'

const challenge = /^[A-Za-z0-9_-]{43}$/
const verifier = /^[A-Za-z0-9._~-]{43,128}$/

/**
 * Returns the challenge of an authorization request. Confidential clients need PKCE too, because a stolen
 * code is useless without the verifier. The method must be S256, because with `plain` the challenge is the
 * verifier itself. https://www.rfc-editor.org/rfc/rfc9700#section-2.1.1
 *
 * @throws OAuthError `invalid_request`
 */
export const readChallenge = (values: ReadonlyMap<string, string>): string => {
  const text = requireParameter(values, 'code_challenge')
  if (requireParameter(values, 'code_challenge_method') !== 'S256')
    throw invalidParameter('code_challenge_method')
  // A SHA-256 hash has 32 bytes, which are 43 characters of base64url without padding.
  if (!challenge.test(text)) throw invalidParameter('code_challenge')
  return text
}

/**
 * Compares a code verifier with its S256 challenge in constant time. Returns false when the verifier or the
 * challenge is malformed. Also returns false when there is no challenge, so a code without a challenge cannot
 * be redeemed. https://www.rfc-editor.org/rfc/rfc7636#section-4.6
 */
export const verifies = (presented: string, stored: string | undefined): boolean => {
  if (stored === undefined || !challenge.test(stored) || !verifier.test(presented)) return false
  return timingSafeEqual(Buffer.from(hash('sha256', presented, 'base64url')), Buffer.from(stored))
}
