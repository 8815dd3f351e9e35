/**
 * Google has no `prompt=login`. The strongest prompt that a request can demand is the choice of an account.
 * https://developers.google.com/identity/openid-connect/openid-connect
 */
export const google = {
  settings: { issuer: 'https://accounts.google.com' },
  reauthenticate: { prompt: 'select_account' },
  claims: {},
} as const
