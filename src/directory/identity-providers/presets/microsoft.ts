/**
 * Any Microsoft account; `issuer` limits it to one tenant. Microsoft does not verify addresses
 * (administrators of a tenant can set `email`), so there is no `email_verified` here.
 * https://learn.microsoft.com/entra/identity-platform/v2-protocols-oidc
 */
export const microsoft = {
  settings: { issuer: 'https://login.microsoftonline.com/common/v2.0' },
  claims: { email_verified: [] },
} as const
