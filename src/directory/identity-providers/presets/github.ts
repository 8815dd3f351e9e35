/** https://docs.github.com/apps/oauth-apps/building-oauth-apps/authorizing-oauth-apps */
export const github = {
  settings: {
    authorization_endpoint: 'https://github.com/login/oauth/authorize',
    token_endpoint: 'https://github.com/login/oauth/access_token',
    userinfo_endpoint: 'https://api.github.com/user',
    emails_endpoint: 'https://api.github.com/user/emails',
    scopes: ['read:user', 'user:email'],
  },
  reauthenticate: { prompt: 'select_account' },
  claims: { subject: ['id'], username: ['login'] },
} as const
