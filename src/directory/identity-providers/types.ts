import type { RoleId } from '#src/lib/ids.ts'
import type { Tables } from '#src/storage/tables.ts'
import type { OAuth2Settings, OidcSettings, SamlSettings } from './settings.ts'

type Row = Omit<Tables['identity_providers']['$inferSelect'], 'type' | 'settings'>

export type OidcProvider = Row & { type: 'oidc'; settings: OidcSettings }
export type OAuth2Provider = Row & { type: 'oauth2'; settings: OAuth2Settings }
export type SamlProvider = Row & { type: 'saml'; settings: SamlSettings }
export type SocialProvider = OidcProvider | OAuth2Provider
export type IdentityProvider = SocialProvider | SamlProvider

/**
 * The parts of a provider that pages show. The settings have no certificates, because the certificates of all
 * providers of an organization can take megabytes.
 */
export type ShownProvider = Pick<IdentityProvider, 'id' | 'alias' | 'name' | 'type'> & { settings: object }

/** A provider with the roles that its new users get. */
export type ProviderWithRoles = IdentityProvider & {
  roles: { id: RoleId; name: string; permissions: string[] }[]
}
