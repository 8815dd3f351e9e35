import type { Core } from '#src/context.ts'
import type { Client } from '#src/directory/clients/store.ts'
import type { SessionId } from '#src/lib/ids.ts'
import type { FurtherClaims } from '#src/oauth/further-claims.ts'
import { type ClaimsUser, idTokenClaims } from '#src/protocol/oidc/claims.ts'
import type { TokenForm } from '#src/tokens/issue.ts'

/**
 * Content of an ID token. `auth_time` is in seconds. `ends_by` is the time by which the session must end, in
 * milliseconds.
 */
interface Identity {
  user: ClaimsUser
  session_id: SessionId
  ends_by: number | null
  further: FurtherClaims
  auth_time: number
  acr: string
  amr: readonly string[]
  nonce: string | undefined
  /** The access token that is issued together with the ID token. */
  access_token: string
}

/**
 * Returns the ID token of a login or refresh: https://openid.net/specs/openid-connect-core-1_0.html#IDToken
 *
 * The ID token has the lifetime of the client's access tokens. Most applications read an ID token once, at
 * the login. An application that uses it longer renews both tokens together (`id_token_on_refresh`).
 */
export const idTokenOf = ({ config }: Core, client: Client, identity: Identity): TokenForm => {
  const { ends_by, further, ...facts } = identity
  const alg = client.id_token_signed_response_alg ?? config.id_token_alg
  return {
    alg,
    typ: 'JWT',
    lifetime: client.access_token_ttl,
    ends_by,
    claims: issued =>
      idTokenClaims({
        ...issued,
        ...facts,
        client_id: client.client_id,
        alg,
        further: { ...further.mapped, ...further.memberships },
      }),
  }
}
