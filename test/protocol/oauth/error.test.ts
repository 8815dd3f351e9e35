import { expect, test } from 'bun:test'
import { OAuthError } from '#src/protocol/oauth/error.ts'

// RFC 6749 sections 4.1.2.1 and 5.2, RFC 6750 section 3.1, OpenID Connect Core 3.1.2.6
test.each([
  ['invalid_request', 400],
  ['invalid_client', 401],
  ['invalid_grant', 400],
  ['unauthorized_client', 400],
  ['unsupported_grant_type', 400],
  ['unsupported_response_type', 400],
  ['invalid_scope', 400],
  ['access_denied', 403],
  ['login_required', 400],
  ['consent_required', 400],
  ['interaction_required', 400],
  ['request_not_supported', 400],
  ['request_uri_not_supported', 400],
  ['registration_not_supported', 400],
  ['invalid_token', 401],
  ['insufficient_scope', 403],
  ['server_error', 500],
  ['temporarily_unavailable', 503],
] as const)('%s is %i and describes itself', (code, status) => {
  const error = new OAuthError(code)
  expect(error).toMatchObject({ code, status })
  expect(error.description).toMatch(/^[\x20\x21\x23-\x5b\x5d-\x7e]{10,}$/)
})

test('a description uses only the characters of error_description', () => {
  expect(new OAuthError('invalid_request', 'a"b\\c\r\nd\0é ~!').description).toBe('a?b?c??d?? ~!')
})

test('the private cause is not in the description', () => {
  const error = new OAuthError('server_error', undefined, { cause: 'disk' })
  expect(error.cause).toBe('disk')
  expect(error.description).toBe('Something went wrong on the server.')
})
