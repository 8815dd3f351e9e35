import { DEFAULT_ORGANIZATION } from '#src/lib/ids.ts'
import { dynamicScopes } from '#src/protocol/oauth/dynamic-client.ts'
import type { Tables } from '#src/storage/tables.ts'
import type { DynamicClient } from './dynamic-store.ts'
import { noLogouts } from './logout-fields.ts'

/**
 * Returns a client that registered itself in the form of all clients. It always asks for consent.
 * Without an organization the default one is only that of requests that name none.
 */
export const asClientRow = ({
  client_id,
  organization_id,
  secret_hash,
  name,
  registration,
  created_at,
}: DynamicClient): Tables['clients']['$inferSelect'] => ({
  client_id,
  organization_id: organization_id ?? DEFAULT_ORGANIZATION,
  secret_hash,
  name,
  description: '',
  type: secret_hash === null ? 'public' : 'confidential',
  kind: null,
  redirect_uris: [...registration.redirect_uris],
  post_logout_redirect_uris: [],
  web_origins: [],
  grant_types: [...registration.grant_types],
  scopes: [...dynamicScopes],
  token_endpoint_auth_method: registration.token_endpoint_auth_method,
  access_token_ttl: 900,
  refresh_token_ttl: 2_592_000,
  // Command-line clients refresh in several processes at once, and lose answers.
  refresh_token_reuse_window: 10,
  ...noLogouts,
  attributes: {},
  claims: {},
  allowed_roles: [],
  allowed_groups: [],
  capabilities: [],
  consent_required: true,
  access_token_typ: 'at+jwt',
  access_token_signed_response_alg: null,
  id_token_signed_response_alg: null,
  created_at,
  updated_at: created_at,
})
