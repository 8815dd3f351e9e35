import { promptValues, responseModes } from '#src/protocol/oauth/authorize-request.ts'
import { clientAuthMethods } from '#src/protocol/oauth/client-auth.ts'
import { assertionAlgs } from '#src/protocol/oauth/client-keys.ts'
import { grantTypes } from '#src/protocol/oauth/token-request.ts'
import { profileAttributes } from './claims.ts'
import type { SigningAlg } from './signing-algs.ts'

/** Claims that ID tokens and userinfo can contain, without the claims that the mappings of clients add. */
const claimsSupported = [
  ...[
    'iss',
    'sub',
    'aud',
    'azp',
    'exp',
    'iat',
    'auth_time',
    'nonce',
    'acr',
    'amr',
    'at_hash',
    'sid',
    'org_id',
  ],
  ...['name', 'preferred_username', 'given_name', 'family_name', 'updated_at', 'email', 'email_verified'],
  ...[...profileAttributes, 'phone_number', 'phone_number_verified', 'address', 'groups', 'roles'],
]

/**
 * Returns the document of both well-known paths: OpenID Connect Discovery 1.0 section 3 and RFC 8414 section
 * 2 use the same names. `backchannel_url` is the address at which other servers call this server. It can
 * differ from the issuer, for example between containers. Default: the issuer. `scopes` must not contain
 * `offline_access`. Clients get refresh tokens without this scope, and the MCP SDK would request consent at
 * each login if the document listed it.
 */
export const discoveryDocument = (server: {
  readonly issuer: string
  readonly backchannel_url?: string
  /** True when clients may register themselves. */
  readonly registers?: boolean
  /** True when the id of a client may be the URL of its metadata document. */
  readonly reads_documents?: boolean
  readonly scopes: readonly string[]
  readonly id_token_algs: readonly SigningAlg[]
  readonly acr_values: readonly string[]
  readonly ui_locales: readonly string[]
}) => {
  const { issuer, backchannel_url = issuer } = server
  const authMethods = [...clientAuthMethods, ...(server.reads_documents ? ['private_key_jwt'] : [])]
  const assertions = server.reads_documents ? assertionAlgs : undefined
  return {
    issuer,
    authorization_endpoint: `${issuer}/oauth/authorize`,
    token_endpoint: `${backchannel_url}/oauth/token`,
    userinfo_endpoint: `${backchannel_url}/oauth/userinfo`,
    jwks_uri: `${backchannel_url}/.well-known/jwks.json`,
    revocation_endpoint: `${backchannel_url}/oauth/revoke`,
    introspection_endpoint: `${backchannel_url}/oauth/introspect`,
    end_session_endpoint: `${issuer}/oauth/logout`,
    ...(server.registers && { registration_endpoint: `${backchannel_url}/oauth/register` }),
    ...(server.reads_documents && { client_id_metadata_document_supported: true }),
    scopes_supported: server.scopes,
    response_types_supported: ['code'],
    response_modes_supported: responseModes,
    grant_types_supported: grantTypes,
    subject_types_supported: ['public'],
    id_token_signing_alg_values_supported: server.id_token_algs,
    token_endpoint_auth_methods_supported: authMethods,
    ...(assertions && { token_endpoint_auth_signing_alg_values_supported: assertions }),
    revocation_endpoint_auth_methods_supported: authMethods,
    ...(assertions && { revocation_endpoint_auth_signing_alg_values_supported: assertions }),
    introspection_endpoint_auth_methods_supported: clientAuthMethods.filter(method => method !== 'none'),
    code_challenge_methods_supported: ['S256'],
    prompt_values_supported: promptValues,
    acr_values_supported: server.acr_values,
    ui_locales_supported: server.ui_locales,
    claim_types_supported: ['normal'],
    claims_supported: claimsSupported,
    claims_parameter_supported: false,
    request_parameter_supported: false,
    request_uri_parameter_supported: false,
    backchannel_logout_supported: true,
    backchannel_logout_session_supported: true,
    authorization_response_iss_parameter_supported: true,
  }
}
