/**
 * Apple sends names and addresses only with `form_post`. The secret is a JWT signed with a key from Apple:
 * `client_secret` is that key (PEM), `team_id` and `key_id` identify it.
 * https://developer.apple.com/documentation/signinwithapplerestapi
 */
export const apple = {
  settings: {
    issuer: 'https://appleid.apple.com',
    scopes: ['openid', 'name', 'email'],
    response_mode: 'form_post',
  },
  claims: {},
} as const
