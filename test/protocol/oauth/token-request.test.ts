import { describe, expect, test } from 'bun:test'
import { parseForm } from '#src/protocol/oauth/parameters.ts'
import { checkGrantType, parseTokenRequest } from '#src/protocol/oauth/token-request.ts'
import { refusal } from './refusal.ts'

test.each([
  [
    'grant_type=authorization_code&code=c&redirect_uri=https%3A%2F%2Fa.example&code_verifier=v&client_id=app',
    { grant_type: 'authorization_code', code: 'c', redirect_uri: 'https://a.example', code_verifier: 'v' },
  ],
  [
    'grant_type=refresh_token&refresh_token=r',
    { grant_type: 'refresh_token', refresh_token: 'r', scopes: undefined },
  ],
  [
    'grant_type=refresh_token&refresh_token=r&scope=a+b',
    { grant_type: 'refresh_token', refresh_token: 'r', scopes: ['a', 'b'] },
  ],
  ['grant_type=client_credentials&scope=', { grant_type: 'client_credentials', scopes: undefined }],
  ['grant_type=client_credentials&scope=a', { grant_type: 'client_credentials', scopes: ['a'] }],
])('%s', (body, expected) => expect(parseTokenRequest(parseForm(body))).toEqual(expected as never))

describe('a missing parameter is named', () => {
  test.each([
    ['the grant', '', 'grant_type'],
    ['the grant, sent empty', 'grant_type=', 'grant_type'],
    ['the code', 'grant_type=authorization_code&redirect_uri=u&code_verifier=v', 'code'],
    ['O-12 the redirect_uri', 'grant_type=authorization_code&code=c&code_verifier=v', 'redirect_uri'],
    ['O-08 the verifier', 'grant_type=authorization_code&code=c&redirect_uri=u', 'code_verifier'],
    ['the refresh token', 'grant_type=refresh_token', 'refresh_token'],
  ])('%s', (_, body, name) => {
    const parse = () => parseTokenRequest(parseForm(body))
    expect(refusal(parse)).toBe('invalid_request')
    expect(parse).toThrow(`The parameter ${name} is missing.`)
  })
})

test.each([
  'password',
  'implicit',
  'Refresh_token',
  '__proto__',
  'constructor',
  'urn:ietf:params:oauth:grant-type:device_code',
])('grant_type %s is not supported', grant =>
  expect(refusal(() => parseTokenRequest(new Map([['grant_type', grant]])))).toBe('unsupported_grant_type'),
)

test.each(['grant_type=client_credentials&scope=%22', 'grant_type=refresh_token&refresh_token=r&scope=+'])(
  'a malformed scope is refused: %s',
  body => expect(refusal(() => parseTokenRequest(parseForm(body)))).toBe('invalid_scope'),
)

test('O-22 a grant that the client may not use', () => {
  const client = { grant_types: ['authorization_code'] }
  expect(refusal(() => checkGrantType(client, 'authorization_code'))).toBe('none')
  expect(refusal(() => checkGrantType(client, 'refresh_token'))).toBe('unauthorized_client')
})
