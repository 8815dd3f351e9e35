/**
 * Apple sends names and e-mail addresses only with `form_post`. Gatehouse sends a JWT as its client secret.
 * The setting `client_secret` is the private key (PEM) from Apple with which Gatehouse signs this JWT.
 * `team_id` and `key_id` identify the key. https://developer.apple.com/documentation/signinwithapplerestapi
 */
export const apple = {
  settings: {
    issuer: 'https://appleid.apple.com',
    scopes: ['openid', 'name', 'email'],
    response_mode: 'form_post',
  },
  claims: {},
} as const
