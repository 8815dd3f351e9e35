/** https://developers.google.com/identity/openid-connect/openid-connect */
export const google = {
  type: 'oidc',
  settings: { issuer: 'https://accounts.google.com' },
  claims: {},
} as const
