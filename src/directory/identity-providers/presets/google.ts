/** https://developers.google.com/identity/openid-connect/openid-connect */
export const google = {
  settings: { issuer: 'https://accounts.google.com' },
  claims: {},
} as const
