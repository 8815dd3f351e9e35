import { bareId } from '#src/lib/ids.ts'

const EVENT = 'http://schemas.openid.net/event/backchannel-logout'

/**
 * Returns the claims of a logout token. The claims never contain a nonce, so that no client can mistake the
 * token for an ID token: https://openid.net/specs/openid-connect-backchannel-1_0.html#LogoutToken
 */
export const logoutTokenClaims = (
  token: { readonly issuer: string; readonly issued_at: number; readonly expires_at: number },
  logout: {
    readonly jti: string
    readonly client_id: string
    readonly user_id: string
    readonly session_id: string
  },
) => ({
  iss: token.issuer,
  sub: bareId(logout.user_id),
  aud: logout.client_id,
  iat: token.issued_at,
  exp: token.expires_at,
  jti: logout.jti,
  events: { [EVENT]: {} },
  sid: bareId(logout.session_id),
})
