/**
 * Accepts any Microsoft account. With the `issuer` of a tenant, only accounts of that tenant are accepted.
 * Administrators of a tenant can set `email`, and Microsoft does not verify it. No claim is therefore used
 * for `email_verified`. https://learn.microsoft.com/entra/identity-platform/v2-protocols-oidc
 */
export const microsoft = {
  settings: { issuer: 'https://login.microsoftonline.com/common/v2.0' },
  claims: { email_verified: [] },
} as const
