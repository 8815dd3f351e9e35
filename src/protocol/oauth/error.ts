/**
 * Error codes of OAuth and OpenID Connect with their HTTP status and default description. Sources: RFC 6749
 * sections 4.1.2.1 and 5.2, RFC 6750 section 3.1, RFC 7591 section 3.2.2, RFC 8707 section 2, RFC 9470
 * section 5, OpenID Connect Core section 3.1.2.6.
 */
const errors = {
  invalid_request: [400, 'The request is malformed.'],
  invalid_client: [401, 'Client authentication failed.'],
  invalid_grant: [400, 'The grant is invalid, expired or already used.'],
  unauthorized_client: [400, 'The client may not use this grant.'],
  unsupported_grant_type: [400, 'The grant type is not supported.'],
  unsupported_response_type: [400, 'Only the response type code is supported.'],
  invalid_scope: [400, 'The requested scope is malformed or not allowed.'],
  invalid_target: [400, 'The requested resource is unknown, or this client may not ask for it.'],
  access_denied: [403, 'The user denied the request, or the client does not admit the user.'],
  login_required: [400, 'The user has to sign in.'],
  consent_required: [400, 'The user has to consent.'],
  interaction_required: [400, 'An interaction with the user is required.'],
  unmet_authentication_requirements: [
    400,
    'The user cannot authenticate as strongly as the request requires.',
  ],
  request_not_supported: [400, 'A request object is not supported (parameter request).'],
  request_uri_not_supported: [400, 'A request object is not supported (parameter request_uri).'],
  registration_not_supported: [400, 'The parameter registration is not supported.'],
  invalid_redirect_uri: [400, 'A redirect URI cannot be registered.'],
  invalid_client_metadata: [400, 'The metadata of the client cannot be registered.'],
  invalid_token: [401, 'The token is invalid, expired or revoked.'],
  insufficient_scope: [403, 'The token lacks a scope that this request needs.'],
  server_error: [500, 'Something went wrong on the server.'],
  temporarily_unavailable: [503, 'The server is busy. Try again later.'],
} as const satisfies Record<string, readonly [number, string]>

export type OAuthErrorCode = keyof typeof errors

/**
 * A refusal with an error code of the standards. `description` is public. It never contains input of the
 * request, so that the author of a link cannot put a text on a page or into a log. Characters that RFC 6749
 * forbids in `error_description` are replaced. `cause` is for the log only.
 */
export class OAuthError extends Error {
  override readonly name = 'OAuthError'
  readonly code: OAuthErrorCode
  readonly status: number

  constructor(code: OAuthErrorCode, description: string = errors[code][1], options?: ErrorOptions) {
    super(description.replace(/[^\x20\x21\x23-\x5b\x5d-\x7e]/g, '?'), options)
    this.code = code
    this.status = errors[code][0]
  }

  get description(): string {
    return this.message
  }
}
