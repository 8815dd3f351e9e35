/** https://discord.com/developers/docs/topics/oauth2 */
export const discord = {
  settings: {
    authorization_endpoint: 'https://discord.com/oauth2/authorize',
    token_endpoint: 'https://discord.com/api/oauth2/token',
    userinfo_endpoint: 'https://discord.com/api/users/@me',
    scopes: ['identify', 'email'],
  },
  reauthenticate: { prompt: 'consent' },
  claims: { subject: ['id'], username: ['username'], name: ['global_name'] },
} as const
