import { example } from '#src/http/example.ts'

/** Example bodies and answers of the OpenAPI document. */

/** A certificate for the examples. Its private key was deleted. */
const certificate = [
  '-----BEGIN CERTIFICATE-----',
  'MIIBiTCCAS+gAwIBAgIUfiSBb10jBPxfDsRymbIICpOA+RYwCgYIKoZIzj0EAwIw',
  'GjEYMBYGA1UEAwwPaWRwLmV4YW1wbGUuY29tMB4XDTI2MTEyMzA2MTkzN1oXDTM2',
  'MTEyMDA2MTkzN1owGjEYMBYGA1UEAwwPaWRwLmV4YW1wbGUuY29tMFkwEwYHKoZI',
  'zj0CAQYIKoZIzj0DAQcDQgAEvczIiC43K0z9+CHmgdNzIgbCbXP/CcwazOP7qvgp',
  'FCyyzvr3FoEbeGKHf8YqvDJPoG0SyNuF0h1yRnKPbiivtaNTMFEwHQYDVR0OBBYE',
  'FAeDYHX/6Rz1CiF/5Xy+ZkloMevIMB8GA1UdIwQYMBaAFAeDYHX/6Rz1CiF/5Xy+',
  'ZkloMevIMA8GA1UdEwEB/wQFMAMBAf8wCgYIKoZIzj0EAwIDSAAwRQIhAOsMUpIK',
  'pIWEZOJh1prbx3mtRFJpncmNWGqJM+nuVdB1AiAwbFaOQW8aV45r4J+1mMFd5rhS',
  '+30Y45lb3zJKttceBA==',
  '-----END CERTIFICATE-----',
].join('\n')

export const newOidc = {
  type: 'oidc',
  alias: 'google',
  name: 'Google',
  preset: 'google',
  client_id: '1234567890.apps.googleusercontent.com',
  client_secret: 'the secret that Google shows',
}

export const newOAuth2 = {
  type: 'oauth2',
  alias: 'github',
  name: 'GitHub',
  preset: 'github',
  client_id: 'Iv1.8a61f9b3a7aba766',
  client_secret: 'the secret that GitHub shows',
}

export const newSaml = {
  type: 'saml',
  alias: 'acme-sso',
  name: 'Acme SSO',
  entity_id: 'https://idp.example.com/metadata',
  sso_url: 'https://idp.example.com/sso',
  certificates: [certificate],
}

const shown = {
  organization_id: example.organization_id,
  enabled: true,
  allow_registration: true,
  trust_email: false,
  default_roles: ['user'],
  attribute_mapping: {},
  created_at: example.time,
  updated_at: example.time,
}

const { client_secret: _, ...google } = newOidc
export const shownOidc = {
  ...shown,
  ...google,
  id: 'idp_019c1310-e407-7e31-a4c6-90d5b8f2173a',
  issuer: 'https://accounts.google.com',
  scopes: ['openid', 'profile', 'email'],
  response_mode: 'query',
  team_id: '',
  key_id: '',
}

const { client_secret: __, ...github } = newOAuth2
export const shownOAuth2 = {
  ...shown,
  ...github,
  id: 'idp_019c1310-e408-7f42-8b15-3ce7a96d0f52',
  scopes: ['read:user', 'user:email'],
  authorization_endpoint: 'https://github.com/login/oauth/authorize',
  token_endpoint: 'https://github.com/login/oauth/access_token',
  userinfo_endpoint: 'https://api.github.com/user',
  emails_endpoint: 'https://api.github.com/user/emails',
}

export const shownSaml = {
  ...shown,
  ...newSaml,
  id: 'idp_019c1310-e409-7053-9d28-b64f0e8c71a9',
  certificates: [
    {
      certificate,
      subject: 'CN=idp.example.com',
      fingerprint:
        '01:54:6A:7B:7C:74:5A:0E:0B:A5:F8:6B:32:45:13:9C:B4:3C:E8:93:BF:AB:26:A9:8E:87:5D:45:8A:80:4C:F9',
      expires_at: '2036-11-20T06:19:37.000Z',
      expired: false,
    },
  ],
  sign_requests: true,
  allow_idp_initiated: false,
  allow_sha1: false,
  allow_cbc: false,
  clock_tolerance: 60,
}
