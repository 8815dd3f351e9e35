/**
 * Google has no `prompt=login`. The chooser of accounts is the strongest page that a request can demand.
 * https://developers.google.com/identity/openid-connect/openid-connect
 */
export const google = {
  settings: { issuer: 'https://accounts.google.com' },
  reauthenticate: { prompt: 'select_account' },
  claims: {},
} as const
