/**
 * For a self-hosted GitLab, an administrator sets the three endpoints.
 * https://docs.gitlab.com/api/oauth2/
 */
export const gitlab = {
  settings: {
    authorization_endpoint: 'https://gitlab.com/oauth/authorize',
    token_endpoint: 'https://gitlab.com/oauth/token',
    userinfo_endpoint: 'https://gitlab.com/api/v4/user',
    scopes: ['read_user'],
  },
  claims: { subject: ['id'], username: ['username'] },
} as const
