import { isSigningAlg } from './signing-algs.ts'

/** A JWT whose signature was verified with a key of this server. */
type VerifiedJwt = {
  readonly header: Readonly<Record<string, unknown>>
  readonly payload: Readonly<Record<string, unknown>>
}

/**
 * The id of the user and the id of the session, both without prefix, and the client for which the ID token
 * was issued.
 */
export type IdTokenHint = {
  readonly sub: string
  readonly sid: string | undefined
  readonly client_id: string
}

/**
 * Returns the content of an id_token_hint. Returns undefined when the hint is not an ID token of this issuer.
 * If `client_id` is given, also returns undefined when the ID token is for another client. `exp` is not
 * checked, because a hint may be old (https://openid.net/specs/openid-connect-core-1_0.html#AuthRequest).
 */
export const readIdTokenHint = (
  { header, payload }: VerifiedJwt,
  expected: { readonly issuer: string; readonly client_id?: string | undefined },
): IdTokenHint | undefined => {
  const { iss, sub, aud, sid } = payload
  // An access token may have the same typ, key and audience as an ID token, but only an access token has a
  // scope.
  const isIdToken = isSigningAlg(header.alg) && header.typ !== 'at+jwt' && !('scope' in payload)
  if (!isIdToken || iss !== expected.issuer || typeof sub !== 'string' || typeof aud !== 'string')
    return undefined
  if (expected.client_id !== undefined && aud !== expected.client_id) return undefined
  return { sub, sid: typeof sid === 'string' ? sid : undefined, client_id: aud }
}
