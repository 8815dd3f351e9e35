import { hash, timingSafeEqual } from 'node:crypto'

const challenge = /^[A-Za-z0-9_-]{43}$/
const verifier = /^[A-Za-z0-9._~-]{43,128}$/

/** True for text in the form of an S256 challenge: 32 bytes in base64url without padding. */
export const isChallenge = (text: string): boolean => challenge.test(text)

/**
 * Compares a code verifier with its S256 challenge in constant time. Returns false when either is malformed
 * or absent, so a code without a challenge cannot be redeemed.
 * https://www.rfc-editor.org/rfc/rfc7636#section-4.6
 */
export const verifies = (presented: string, stored: string | undefined): boolean => {
  if (stored === undefined || !challenge.test(stored) || !verifier.test(presented)) return false
  return timingSafeEqual(Buffer.from(hash('sha256', presented, 'base64url')), Buffer.from(stored))
}
