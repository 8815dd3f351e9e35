/** Codes of the reasons for which a request is refused. The codes never change. The texts may change. */
export type ErrorCode =
  | 'token_missing'
  | 'token_malformed'
  | 'token_type'
  | 'algorithm_not_allowed'
  | 'unknown_key'
  | 'token_expired'
  | 'token_not_yet_valid'
  | 'invalid_signature'
  | 'claim_missing'
  | 'claim_invalid'
  | 'jwks_unavailable'
  | 'forbidden'
  | 'insufficient_scope'

/**
 * Base class of the errors that refuse a request. `description` may be sent to the caller, because it has no
 * part of the token. `message` adds the found and the expected values, and is meant for your log.
 */
export class AccessError extends Error {
  readonly code: ErrorCode
  /** 401: authenticate (again), 403: not allowed, 503: try later. */
  readonly status: 401 | 403 | 503
  readonly description: string

  constructor(code: ErrorCode, status: 401 | 403 | 503, description: string, detail = '', cause?: unknown) {
    super(detail ? `${description}: ${detail}` : description, cause === undefined ? {} : { cause })
    this.name = new.target.name
    this.code = code
    this.status = status
    this.description = description
  }
}

/** The Authorization header has no bearer token. */
export class TokenMissingError extends AccessError {
  constructor() {
    super('token_missing', 401, 'No access token was sent')
  }
}

/**
 * The token is not a well-formed signed JWT of at most 15 KiB, or its header has a parameter that is never
 * accepted.
 */
export class TokenMalformedError extends AccessError {
  constructor(detail: string, cause?: unknown) {
    super('token_malformed', 401, 'The access token is malformed', detail, cause)
  }
}

/** The token is a JWT of another kind, such as an ID token or logout token. */
export class TokenTypeError extends AccessError {
  constructor(detail: string) {
    super('token_type', 401, 'The token is not an access token', detail)
  }
}

/** `alg` is not one of the six accepted algorithms, or does not match the key. */
export class AlgorithmNotAllowedError extends AccessError {
  constructor(detail: string) {
    super('algorithm_not_allowed', 401, 'The signature algorithm of the access token is not accepted', detail)
  }
}

/**
 * The issuer publishes no usable key with the `kid` of the token. A token without `kid` also gets this error
 * when no published key or more than one published key matches the algorithm of the token.
 */
export class UnknownKeyError extends AccessError {
  constructor(detail: string, cause?: unknown) {
    super('unknown_key', 401, 'The access token is signed with an unknown key', detail, cause)
  }
}

/** `exp` is in the past by at least the tolerance. */
export class TokenExpiredError extends AccessError {
  constructor(detail: string) {
    super('token_expired', 401, 'The access token has expired', detail)
  }
}

/** `nbf` or `iat` is in the future by more than the tolerance. */
export class TokenNotYetValidError extends AccessError {
  constructor(detail: string) {
    super('token_not_yet_valid', 401, 'The access token is not valid yet', detail)
  }
}

/** The signature does not match header and payload. */
export class InvalidSignatureError extends AccessError {
  constructor(cause?: unknown) {
    super('invalid_signature', 401, 'The signature of the access token is invalid', '', cause)
  }
}

/** A required claim is missing. */
export class ClaimMissingError extends AccessError {
  readonly claim: string

  constructor(claim: string) {
    super('claim_missing', 401, `The access token lacks the claim ${claim}`)
    this.claim = claim
  }
}

/** A claim has a value that this service does not accept. */
export class ClaimInvalidError extends AccessError {
  readonly claim: string

  constructor(claim: string, detail: string) {
    super('claim_invalid', 401, `The claim ${claim} of the access token is not accepted`, detail)
    this.claim = claim
  }
}

/**
 * The key set is unavailable, so the token cannot be verified. The status is 503 because the caller did
 * nothing wrong.
 */
export class JwksUnavailableError extends AccessError {
  /** Whole seconds until the next attempt, at least 1. */
  readonly retryAfter: number

  constructor(retryAfter: number, detail: string, cause?: unknown) {
    super('jwks_unavailable', 503, 'The keys of the token issuer are unavailable', detail, cause)
    this.retryAfter = retryAfter
  }
}

/** A valid token lacks the roles that the route requires. */
export class ForbiddenError extends AccessError {
  constructor(detail: string) {
    super('forbidden', 403, 'The access token lacks a required role', detail)
  }
}

/**
 * A valid token lacks the scopes that the route requires
 * (https://www.rfc-editor.org/rfc/rfc6750#section-3.1).
 */
export class InsufficientScopeError extends AccessError {
  readonly scopes: readonly string[]

  constructor(scopes: readonly string[]) {
    super('insufficient_scope', 403, 'The access token lacks a required scope', scopes.join(' '))
    this.scopes = scopes
  }
}

/** Invalid options or environment variables. The error is thrown at start and lists all problems. */
export class ConfigurationError extends Error {
  readonly problems: readonly string[]

  constructor(problems: readonly string[]) {
    super(`gatehouse resource server: ${problems.join('; ')}`)
    this.name = new.target.name
    this.problems = problems
  }
}
