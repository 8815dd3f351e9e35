/**
 * Any Microsoft account; `issuer` narrows it to one tenant. Microsoft vouches for no address (`email` can be set by
 * whoever administers a tenant), so there is no `email_verified` here.
 * https://learn.microsoft.com/entra/identity-platform/v2-protocols-oidc
 */
export const microsoft = {
  settings: { issuer: 'https://login.microsoftonline.com/common/v2.0' },
  claims: { email_verified: [] },
} as const
