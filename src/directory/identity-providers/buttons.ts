import type { OrganizationId } from '#src/lib/ids.ts'
import type { Store } from '#src/storage/store.ts'
import { findEnabledProviders } from './store.ts'
import type { IdentityProvider } from './types.ts'

/** Returns the path that starts a login through the provider. */
export const entryPath = ({ type, alias }: Pick<IdentityProvider, 'type' | 'alias'>): string =>
  type === 'saml' ? `/saml/${alias}/login` : `/oauth/social/${alias}`

/** Returns the icon of the button: the preset, else the type. */
export const kindOf = ({ type, settings }: IdentityProvider): string =>
  ('preset' in settings && settings.preset) || type

export interface Button {
  name: string
  url: string
  kind: string
}

/**
 * Returns the buttons of an organization's login page; `request` is the handle of the authorization request
 * to continue.
 */
export const listButtons = async (
  store: Store,
  organization_id: OrganizationId,
  request: string,
): Promise<Button[]> =>
  (await findEnabledProviders(store, organization_id)).map(provider => ({
    name: provider.name,
    url: `${entryPath(provider)}?request=${request}`,
    kind: kindOf(provider),
  }))
