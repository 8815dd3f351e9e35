import { expect, test } from 'bun:test'
import { idTokenClaims, profileAttributes, userinfoClaims } from '#src/protocol/oidc/claims.ts'
import { discoveryDocument } from '#src/protocol/oidc/discovery.ts'

const server = {
  issuer: 'https://id.example',
  scopes: ['openid', 'profile', 'email'],
  id_token_algs: ['RS256', 'ES256'] as const,
  acr_values: ['1', '2'],
  ui_locales: ['en', 'de'],
}

test('FRM-09, O-23, O-53 exactly the documented fields', () => {
  const { claims_supported, ...document } = discoveryDocument(server)
  expect(claims_supported).toContain('sub')
  expect(document).toEqual({
    issuer: 'https://id.example',
    authorization_endpoint: 'https://id.example/oauth/authorize',
    token_endpoint: 'https://id.example/oauth/token',
    userinfo_endpoint: 'https://id.example/oauth/userinfo',
    jwks_uri: 'https://id.example/.well-known/jwks.json',
    revocation_endpoint: 'https://id.example/oauth/revoke',
    introspection_endpoint: 'https://id.example/oauth/introspect',
    end_session_endpoint: 'https://id.example/oauth/logout',
    scopes_supported: ['openid', 'profile', 'email'],
    response_types_supported: ['code'],
    response_modes_supported: ['query', 'form_post'],
    grant_types_supported: ['authorization_code', 'refresh_token', 'client_credentials'],
    subject_types_supported: ['public'],
    id_token_signing_alg_values_supported: ['RS256', 'ES256'],
    token_endpoint_auth_methods_supported: ['client_secret_basic', 'client_secret_post', 'none'],
    revocation_endpoint_auth_methods_supported: ['client_secret_basic', 'client_secret_post', 'none'],
    introspection_endpoint_auth_methods_supported: ['client_secret_basic', 'client_secret_post'],
    code_challenge_methods_supported: ['S256'],
    prompt_values_supported: ['none', 'login', 'consent', 'select_account'],
    acr_values_supported: ['1', '2'],
    ui_locales_supported: ['en', 'de'],
    claim_types_supported: ['normal'],
    claims_parameter_supported: false,
    request_parameter_supported: false,
    request_uri_parameter_supported: false,
    backchannel_logout_supported: true,
    backchannel_logout_session_supported: true,
    authorization_response_iss_parameter_supported: true,
  })
})

test('claims_supported are exactly those of ID token and userinfo', () => {
  const user = {
    id: 'usr_1',
    organization_id: 'org_1',
    username: 'ann',
    email: 'ann@a.example',
    email_verified: true,
    first_name: 'Ann',
    last_name: 'Lee',
    attributes: {
      ...Object.fromEntries(profileAttributes.map(name => [name, 'x'])),
      phone_number: '+1',
      address: 'Main Street 1',
    },
    updated_at: 1,
  }
  const idToken = idTokenClaims({
    ...{ issuer: 'i', client_id: 'c', issued_at: 1, expires_at: 2, user, session_id: 'sess_1', auth_time: 1 },
    ...{ acr: '1', amr: ['pwd'], nonce: 'n', access_token: 't', alg: 'ES256' },
  })
  const claims = new Set([
    ...Object.keys(idToken),
    ...Object.keys(
      userinfoClaims(user, ['profile', 'email', 'phone', 'address'], {
        mapped: {},
        memberships: { groups: [], roles: [] },
      }),
    ),
  ])
  expect([...discoveryDocument(server).claims_supported].sort()).toEqual([...claims].sort())
})

test('back-channel endpoints can have another address; browser endpoints and the issuer stay', () => {
  const { issuer, authorization_endpoint, end_session_endpoint, ...others } = discoveryDocument({
    ...server,
    backchannel_url: 'http://gatehouse:8080',
  })
  expect([issuer, authorization_endpoint, end_session_endpoint]).toEqual([
    'https://id.example',
    'https://id.example/oauth/authorize',
    'https://id.example/oauth/logout',
  ])
  const urls = Object.values(others).filter(value => String(value).includes('://'))
  expect(urls).toEqual(
    ['/oauth/token', '/oauth/userinfo', '/.well-known/jwks.json', '/oauth/revoke', '/oauth/introspect'].map(
      path => `http://gatehouse:8080${path}`,
    ),
  )
})
