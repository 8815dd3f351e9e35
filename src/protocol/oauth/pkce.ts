import { hash, timingSafeEqual } from 'node:crypto'

const challenge = /^[A-Za-z0-9_-]{43}$/
const verifier = /^[A-Za-z0-9._~-]{43,128}$/

/** Whether the text can be an S256 challenge: 32 bytes in base64url without padding. */
export const isChallenge = (text: string): boolean => challenge.test(text)

/**
 * Whether the verifier is the one behind the S256 challenge, in constant time. False for either of them
 * malformed or absent: a code without a challenge is redeemable by nobody.
 * https://www.rfc-editor.org/rfc/rfc7636#section-4.6
 */
export const verifies = (presented: string, stored: string | undefined): boolean => {
  if (stored === undefined || !challenge.test(stored) || !verifier.test(presented)) return false
  return timingSafeEqual(Buffer.from(hash('sha256', presented, 'base64url')), Buffer.from(stored))
}
