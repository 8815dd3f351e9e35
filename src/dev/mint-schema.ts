import { z } from 'zod'
import { integer, line, lines, oneOf, set } from '#src/directory/fields.ts'
import { DAY, SECOND } from '#src/lib/duration.ts'
import type { BadToken } from '#src/resource-server/bad-tokens.ts'

/**
 * Names of the invalid tokens. They are repeated here because importing them from the resource-server package
 * would load jose together with the controls.
 */
export const badTokenNames = [
  'expired',
  'not-yet-valid',
  'wrong-iss',
  'wrong-aud',
  'wrong-signature',
  'unknown-kid',
  'alg-none',
  'hs256-with-public-key',
  'id-token',
  'missing-claim',
  'tampered',
] as const satisfies BadToken[]

export const Mint = z.strictObject({
  /**
   * User name, e-mail address or id. If no user has this name, the token is for an invented user. If `user`
   * is undefined, the subject of the token is the client.
   */
  user: line(256, 1).optional(),
  organization: line(64).default('default'),
  /** Client of the token. Default: the `client_id` of `dev.json`. */
  client_id: line(128, 1).optional(),
  /** Default: all scopes of the client, or `openid profile email` for a client that does not exist. */
  scope: lines(2_000).optional(),
  /**
   * Claim `roles` of an access token, in place of the user's roles. The stored user does not change. An ID
   * token ignores this field.
   */
  roles: set(line(128), 100).optional(),
  /**
   * Claims to add to the token. A claim replaces the token's own claim of the same name. The value null
   * removes the claim.
   */
  claims: z.record(z.string(), z.json()).default({}),
  /**
   * Seconds. Default: the client's `access_token_ttl`, or 3600 for a client that does not exist. The maximum
   * is a year, so that tokens in test fixtures seldom have to be replaced.
   */
  expires_in: integer(1, (365 * DAY) / SECOND).optional(),
  kind: oneOf(['access_token', 'id_token']).default('access_token'),
  /** Makes the token invalid in the named way, so that a verifier has to refuse it. */
  bad: oneOf(badTokenNames).optional(),
})
export type Mint = z.output<typeof Mint>
export type MintInput = z.input<typeof Mint>
