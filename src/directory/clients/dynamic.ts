import { DEFAULT_ORGANIZATION } from '#src/lib/ids.ts'
import type { ClientKeys } from '#src/protocol/oauth/client-keys.ts'
import { dynamicScopes, keysOf, type Registration } from '#src/protocol/oauth/dynamic-client.ts'
import { DOCUMENT_DYNAMIC, type Origin } from '#src/protocol/oauth/dynamic-id.ts'
import { checkRegistrable, host } from '#src/protocol/oauth/redirect-uri.ts'
import type { Tables } from '#src/storage/tables.ts'
import type { DynamicClient } from './dynamic-store.ts'
import { noLogouts, plainPresentation } from './plain-fields.ts'

export type HasKeys = { readonly keys?: ClientKeys }

/**
 * Returns a dynamic client in the form of a stored client. The client needs the consent of each user, because
 * no administrator has checked it. A client without an organization gets the default organization here. The
 * authorization request of such a client can name another organization, or an API of another organization.
 */
export const asClientRow = ({
  client_id,
  organization_id,
  secret_hash,
  name,
  registration,
  created_at,
  changed_at,
}: DynamicClient): Tables['clients']['$inferSelect'] & Pick<Origin, 'from_document'> & HasKeys => {
  const keys = keysOf(registration)
  const { token_endpoint_auth_method } = registration
  return {
    client_id,
    ...(client_id.startsWith(DOCUMENT_DYNAMIC) && { from_document: true }),
    ...(keys && { keys }),
    organization_id: organization_id ?? DEFAULT_ORGANIZATION,
    secret_hash,
    name,
    description: '',
    type: secret_hash === null && !keys?.is_required ? 'public' : 'confidential',
    kind: null,
    redirect_uris: [...registration.redirect_uris],
    post_logout_redirect_uris: [],
    web_origins: [],
    grant_types: [...registration.grant_types],
    scopes: [...dynamicScopes],
    token_endpoint_auth_method:
      token_endpoint_auth_method === 'private_key_jwt' ? 'none' : token_endpoint_auth_method,
    // In seconds. This is a quarter of the default for registered clients, because no administrator has
    // checked this client.
    access_token_ttl: 900,
    refresh_token_ttl: 2_592_000,
    // Seconds for which a used refresh token is still accepted. The processes of a command-line client may
    // share a refresh token, and an answer may get lost.
    refresh_token_reuse_window: 10,
    id_token_on_refresh: false,
    ...plainPresentation,
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
    updated_at: changed_at ?? created_at,
  }
}

/** Returns the metadata of a document as a dynamic client to which nobody has consented yet. */
export const asDocumentClient = (
  client_id: string,
  registration: Registration,
  now: number,
): DynamicClient => ({
  client_id,
  organization_id: null,
  secret_hash: null,
  name: registration.client_name ?? host(client_id),
  registration,
  used_at: null,
  created_at: now,
  changed_at: null,
})

/**
 * Returns the client that is used until its metadata document is read. Its only redirect URI is that of the
 * request. If clients may not register this URI, the client has no redirect URI. `consent_required` is false,
 * so that no consent page is shown before the document is read.
 */
export const asUnread = (client_id: string, redirect_uri: string | undefined, now: number) => {
  const isUsable = redirect_uri !== undefined && checkRegistrable(redirect_uri, 'any_scheme') === undefined
  const registration: Registration = {
    redirect_uris: isUsable ? [redirect_uri] : [],
    token_endpoint_auth_method: 'none',
    grant_types: ['authorization_code'],
  }
  return { ...asClientRow(asDocumentClient(client_id, registration, now)), consent_required: false }
}
