import { randomUUID } from 'node:crypto'
import type { Context, TokenType } from '#src/context.ts'
import { SECOND } from '#src/lib/duration.ts'
import type { SigningAlg } from '#src/protocol/oidc/signing-algs.ts'

/** What every token tells about its making; times in whole seconds. */
export interface Issued {
  issuer: string
  jti: string
  issued_at: number
  expires_at: number
}

export interface IssuedToken {
  token: string
  /** Seconds. */
  expires_in: number
}

/**
 * Signs a token: the only place that does. `claims` gets what the token tells about its making; `lifetime` is in seconds,
 * and the token does not outlive `ends_by` (ms).
 */
export const issueToken = async (
  { config, clock, ports }: Pick<Context, 'config' | 'clock' | 'ports'>,
  token: {
    alg: SigningAlg
    typ: TokenType
    lifetime: number
    ends_by?: number | null
    claims(issued: Issued): Record<string, unknown>
  },
): Promise<IssuedToken> => {
  const issued_at = Math.floor(clock.now() / SECOND)
  const expires_at = Math.min(
    issued_at + token.lifetime,
    Math.floor((token.ends_by ?? Number.POSITIVE_INFINITY) / SECOND),
  )
  const claims = token.claims({ issuer: config.url, jti: randomUUID(), issued_at, expires_at })
  return { token: await ports.keys.sign(claims, token.alg, token.typ), expires_in: expires_at - issued_at }
}
