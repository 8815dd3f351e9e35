/**
 * The type and the grant that each kind of application implies:
 * https://www.rfc-editor.org/rfc/rfc6749#section-2.1
 */
export const clientKinds = {
  web: { type: 'confidential', grant: 'authorization_code' },
  spa: { type: 'public', grant: 'authorization_code' },
  native: { type: 'public', grant: 'authorization_code' },
  service: { type: 'confidential', grant: 'client_credentials' },
} as const

export type Kind = keyof typeof clientKinds

/** Returns the origins of the http and https URIs, without duplicates. */
const originsOf = (uris: string[]): string[] => {
  const urls = uris.flatMap(uri => URL.parse(uri) ?? [])
  return [...new Set(urls.flatMap(({ protocol, origin }) => (/^https?:$/.test(protocol) ? origin : [])))]
}

/**
 * Returns the fields that the console and `gatehouse client create` propose for a new application of this
 * kind. A service gets no scopes and no URIs. For other kinds the scopes include `offline_access`, because
 * libraries ask for it. The proposed target of a logout is the front page of the application. A single-page
 * application gets web origins too, because its scripts call the token endpoint.
 */
export const proposed = (kind: Kind, redirect_uris: string[]) => {
  const { type, grant } = clientKinds[kind]
  if (kind === 'service') return { kind, type, grant_types: [grant], scopes: [] as string[] }
  const origins = originsOf(redirect_uris)
  return {
    kind,
    type,
    grant_types: [grant, 'refresh_token' as const],
    scopes: ['openid', 'profile', 'email', 'offline_access'],
    redirect_uris,
    post_logout_redirect_uris: origins.map(origin => `${origin}/`),
    web_origins: kind === 'spa' ? origins : [],
    consent_required: true,
  }
}
