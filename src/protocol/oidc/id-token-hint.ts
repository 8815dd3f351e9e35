import { isSigningAlg } from './signing-algs.ts'

/** A JWT whose signature has been verified with a key of this server. */
type VerifiedJwt = {
  readonly header: Readonly<Record<string, unknown>>
  readonly payload: Readonly<Record<string, unknown>>
}

/** Whom the hint means: the user and session without their prefixes, and the client it was issued to. */
export type IdTokenHint = {
  readonly sub: string
  readonly sid: string | undefined
  readonly client_id: string
}

/**
 * What an id_token_hint says, or undefined when it is not an ID token of ours, or not of this client when one
 * is given. `exp` is not looked at: a hint may be old
 * (https://openid.net/specs/openid-connect-core-1_0.html#AuthRequest).
 */
export const readIdTokenHint = (
  { header, payload }: VerifiedJwt,
  expected: { readonly issuer: string; readonly client_id?: string | undefined },
): IdTokenHint | undefined => {
  const { iss, sub, aud, sid } = payload
  // An access token may share typ, key and audience with it, but always has a scope.
  const isIdToken = isSigningAlg(header.alg) && header.typ !== 'at+jwt' && !('scope' in payload)
  if (!isIdToken || iss !== expected.issuer || typeof sub !== 'string' || typeof aud !== 'string')
    return undefined
  if (expected.client_id !== undefined && aud !== expected.client_id) return undefined
  return { sub, sid: typeof sid === 'string' ? sid : undefined, client_id: aud }
}
