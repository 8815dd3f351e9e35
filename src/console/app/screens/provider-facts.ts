import { issuer } from '../session.ts'

/** A provider, as the admin API returns it. Each type adds fields. */
export interface Provider {
  id: string
  organization_id: string
  alias: string
  name: string
  type: 'oidc' | 'oauth2' | 'saml'
  enabled: boolean
  allow_registration: boolean
  trust_email: boolean
  client_id?: string
  /** Id of the private key with which Gatehouse signs its secret; '' for a provider other than Apple. */
  key_id?: string
  issuer?: string
  entity_id?: string
  sso_url?: string
  certificates?: { subject: string; fingerprint: string; expires_at: string; expired: boolean }[]
}

export const typeNames = { oidc: 'OpenID Connect', oauth2: 'OAuth 2.0', saml: 'SAML 2.0' }

/** Returns the callback URL to register at the provider. */
export const returnAddress = ({ type, alias }: Pick<Provider, 'type' | 'alias'>): string =>
  type === 'saml' ? `${issuer}/saml/${alias}/acs` : `${issuer}/oauth/social/${alias}/callback`
