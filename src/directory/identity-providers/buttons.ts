import type { OrganizationId } from '#src/lib/ids.ts'
import type { Store } from '#src/storage/store.ts'
import { findEnabledProviders } from './store.ts'
import type { IdentityProvider, ShownProvider } from './types.ts'

/** Returns the path that starts a login through the provider. */
export const entryPath = ({ type, alias }: Pick<IdentityProvider, 'type' | 'alias'>): string =>
  type === 'saml' ? `/saml/${alias}/login` : `/oauth/social/${alias}`

/** Icons of providers that have no preset, by host. */
const hosts: Record<string, string> = {
  'facebook.com': 'facebook',
  'linkedin.com': 'linkedin',
  'slack.com': 'slack',
  'x.com': 'x',
  'twitter.com': 'x',
}

/**
 * Returns the name of the button's icon. It is the preset, otherwise the entry of `hosts` for the provider's
 * host, otherwise the type.
 */
export const kindOf = ({ type, settings }: Pick<ShownProvider, 'type' | 'settings'>): string => {
  const { preset, issuer, authorization_endpoint } = settings as Partial<Record<string, string>>
  if (preset) return preset
  const host = URL.parse(authorization_endpoint ?? issuer ?? '')?.hostname.replace(/^www\./, '')
  return hosts[host ?? ''] ?? type
}

/** The button of a provider on the login page. */
export interface Button {
  alias: string
  name: string
  url: string
  kind: string
}

/**
 * Returns the buttons of an organization's login page. `request` is the handle of the authorization request
 * that continues after the login.
 */
export const listButtons = async (
  store: Store,
  organization_id: OrganizationId,
  request: string,
): Promise<Button[]> =>
  (await findEnabledProviders(store, organization_id)).map(provider => ({
    alias: provider.alias,
    name: provider.name,
    url: `${entryPath(provider)}?request=${request}`,
    kind: kindOf(provider),
  }))
