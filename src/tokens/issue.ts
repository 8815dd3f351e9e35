import { randomUUID } from 'node:crypto'
import type { Issuer, TokenType } from '#src/context.ts'
import { SECOND } from '#src/lib/duration.ts'
import type { SigningAlg } from '#src/protocol/oidc/signing-algs.ts'

/** The values from which `claims` builds the payload of a token. Times are in seconds since the epoch. */
export interface Issued {
  issuer: string
  jti: string
  issued_at: number
  expires_at: number
}

/** A signed token. */
export interface IssuedToken {
  token: string
  /** Seconds. */
  expires_in: number
}

/**
 * A token to be signed. `claims` builds the payload (protocol/oidc/claims.ts, protocol/oidc/logout-token.ts).
 * `lifetime` is in seconds. The token expires at `ends_by` (ms) at the latest, because no token may outlive
 * the limit of its session (`session_ttl`).
 */
export interface TokenForm {
  alg: SigningAlg
  typ: TokenType
  lifetime: number
  ends_by?: number | null
  claims(issued: Issued): Record<string, unknown>
}

/** Returns the claims of a token as it would be issued now, and its lifetime in seconds. */
export const unsignedToken = ({ config, clock }: Pick<Issuer, 'config' | 'clock'>, token: TokenForm) => {
  const issued_at = Math.floor(clock.now() / SECOND)
  const expires_at = Math.min(
    issued_at + token.lifetime,
    Math.floor((token.ends_by ?? Number.POSITIVE_INFINITY) / SECOND),
  )
  const claims = token.claims({ issuer: config.url, jti: randomUUID(), issued_at, expires_at })
  return { claims, expires_in: expires_at - issued_at }
}

/**
 * Signs a token. All tokens of this server are signed here, so that each has an issuer and an expiry. Only
 * the invalid tokens that development mode mints for tests are signed elsewhere (dev/mint.ts).
 */
export const issueToken = async (context: Issuer, token: TokenForm): Promise<IssuedToken> => {
  const { claims, expires_in } = unsignedToken(context, token)
  return { token: await context.keys.sign(claims, token.alg, token.typ), expires_in }
}
