import { expect, test } from 'bun:test'
import {
  accessTokenClaims,
  accessTokenHash,
  clientTokenClaims,
  idTokenClaims,
  userinfoClaims,
} from '#src/protocol/oidc/claims.ts'

const user = {
  id: 'usr_018f3c1e-0000-7000-8000-000000000001',
  organization_id: 'org_018f3c1e-0000-7000-8000-000000000002',
  username: 'ann',
  email: 'ann@a.example',
  email_verified: true,
  first_name: 'Ann',
  last_name: 'Lee',
}
const identity = {
  org_id: '018f3c1e-0000-7000-8000-000000000002',
  preferred_username: 'ann',
  email: 'ann@a.example',
  email_verified: true,
  given_name: 'Ann',
  family_name: 'Lee',
}
const issued = { issuer: 'https://id.example', client_id: 'app', issued_at: 1000, expires_at: 4600 }
const access = { ...issued, scopes: ['openid', 'users:read'], jti: 'j1' }
const session_id = 'sess_018f3c1e-0000-7000-8000-000000000003'

test('O-55 the claims of an access token, and no others', () => {
  expect(accessTokenClaims({ ...access, user, roles: ['user', 'ops'], session_id })).toEqual({
    iss: 'https://id.example',
    sub: '018f3c1e-0000-7000-8000-000000000001',
    aud: 'app',
    exp: 4600,
    iat: 1000,
    nbf: 1000,
    jti: 'j1',
    scope: 'openid users:read',
    client_id: 'app',
    sid: '018f3c1e-0000-7000-8000-000000000003',
    ...identity,
    roles: ['user', 'ops'],
  })
  expect(accessTokenClaims({ ...access, user, roles: [], session_id, auth_time: 900 })).toMatchObject({
    auth_time: 900,
  })
})

test('O-55 the claims of a client credentials token, and no others', () => {
  expect(clientTokenClaims({ ...access, organization_id: 'org_default' })).toEqual({
    iss: 'https://id.example',
    sub: 'app',
    aud: 'app',
    exp: 4600,
    iat: 1000,
    nbf: 1000,
    jti: 'j1',
    scope: 'openid users:read',
    client_id: 'app',
    org_id: 'default',
  })
})

// The example of OpenID Connect Core, appendix A.4: https://openid.net/specs/openid-connect-core-1_0.html#code-id_tokenExample
const access_token = 'jHkWEdUXMU1BwAsC4vtUsZwnNvTIxEl0z9K3vx5KF0Y'
const idToken = {
  ...issued,
  user,
  session_id,
  auth_time: 900,
  acr: '1',
  amr: ['pwd'],
  access_token,
  alg: 'RS256' as const,
}

test('the claims of an ID token, and no others', () => {
  const expected = {
    iss: 'https://id.example',
    sub: '018f3c1e-0000-7000-8000-000000000001',
    aud: 'app',
    azp: 'app',
    exp: 4600,
    iat: 1000,
    auth_time: 900,
    acr: '1',
    amr: ['pwd'],
    at_hash: '77QmUPtjPfzWtF2AnpK9RQ',
    sid: '018f3c1e-0000-7000-8000-000000000003',
    ...identity,
  }
  expect(JSON.parse(JSON.stringify(idTokenClaims({ ...idToken, nonce: undefined })))).toEqual(expected)
  expect(idTokenClaims({ ...idToken, nonce: 'n' })).toEqual({ ...expected, nonce: 'n' })
})

test.each([
  ['RS256', 'sha256'],
  ['ES256', 'sha256'],
  ['RS384', 'sha384'],
  ['ES384', 'sha384'],
  ['RS512', 'sha512'],
  ['ES512', 'sha512'],
] as const)('TOK-19 at_hash under %s is half a %s', (alg, name) => {
  const digest = new Bun.CryptoHasher(name).update(access_token).digest()
  expect(accessTokenHash(access_token, alg)).toBe(digest.subarray(0, digest.length / 2).toString('base64url'))
})

const sub = '018f3c1e-0000-7000-8000-000000000001'
const profile = {
  name: 'Ann Lee',
  preferred_username: 'ann',
  given_name: 'Ann',
  family_name: 'Lee',
  updated_at: 500,
}
const email = { email: 'ann@a.example', email_verified: true }
test.each([
  [['openid'], { sub }],
  [['openid', 'profile'], { sub, ...profile }],
  [['openid', 'email'], { sub, ...email }],
  [['email', 'openid', 'profile', 'users:read'], { sub, ...profile, ...email }],
])('userinfo for %p', (scopes, expected) => {
  expect(userinfoClaims({ ...user, attributes: {}, updated_at: 500 }, scopes)).toEqual(expected)
})

test('userinfo omits absent values, but not false ones', () => {
  const bare = { ...user, first_name: '', last_name: '', email_verified: false, updated_at: 500 }
  expect(userinfoClaims({ ...bare, attributes: {} }, ['openid', 'profile', 'email'])).toEqual({
    sub,
    preferred_username: 'ann',
    updated_at: 500,
    email: 'ann@a.example',
    email_verified: false,
  })
})
