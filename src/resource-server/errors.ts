/** Stable names of everything that can refuse a request. They never change; the texts may. */
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
 * What all refusals have in common. `description` is fixed text that may be sent to the caller; `message` adds what was
 * found and what was expected, and belongs in your log.
 */
export class AccessError extends Error {
  readonly code: ErrorCode
  /** 401 authenticate (again), 403 not allowed, 503 try later. */
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

/** No bearer token in the Authorization header. */
export class TokenMissingError extends AccessError {
  constructor() {
    super('token_missing', 401, 'No access token was sent')
  }
}

/** Not one well-formed signed JWT of at most 8 KiB, or its header asks for what this verifier never does. */
export class TokenMalformedError extends AccessError {
  constructor(detail: string, cause?: unknown) {
    super('token_malformed', 401, 'The access token is malformed', detail, cause)
  }
}

/** A genuine token of another kind: an ID token, a logout token. */
export class TokenTypeError extends AccessError {
  constructor(detail: string) {
    super('token_type', 401, 'The token is not an access token', detail)
  }
}

/** `alg` is none of the six accepted ones, or the key it names is not for it. */
export class AlgorithmNotAllowedError extends AccessError {
  constructor(detail: string) {
    super('algorithm_not_allowed', 401, 'The signature algorithm of the access token is not accepted', detail)
  }
}

/** The issuer does not publish the key that the token names. */
export class UnknownKeyError extends AccessError {
  constructor(detail: string, cause?: unknown) {
    super('unknown_key', 401, 'The access token is signed with an unknown key', detail, cause)
  }
}

/** `exp` lies in the past, the tolerance included. */
export class TokenExpiredError extends AccessError {
  constructor(detail: string) {
    super('token_expired', 401, 'The access token has expired', detail)
  }
}

/** `nbf` or `iat` lies in the future, the tolerance included. */
export class TokenNotYetValidError extends AccessError {
  constructor(detail: string) {
    super('token_not_yet_valid', 401, 'The access token is not valid yet', detail)
  }
}

/** The signature does not belong to this header and payload. */
export class InvalidSignatureError extends AccessError {
  constructor(cause?: unknown) {
    super('invalid_signature', 401, 'The signature of the access token is invalid', '', cause)
  }
}

/** A required claim is not there. */
export class ClaimMissingError extends AccessError {
  readonly claim: string

  constructor(claim: string) {
    super('claim_missing', 401, `The access token lacks the claim ${claim}`)
    this.claim = claim
  }
}

/** A claim is there with a value that this service does not accept. */
export class ClaimInvalidError extends AccessError {
  readonly claim: string

  constructor(claim: string, detail: string) {
    super('claim_invalid', 401, `The claim ${claim} of the access token is not accepted here`, detail)
    this.claim = claim
  }
}

/** The key set cannot be had, so nothing can be said about the token. Never a 401: the caller did nothing wrong. */
export class JwksUnavailableError extends AccessError {
  /** Whole seconds until the next attempt, at least 1. */
  readonly retryAfter: number

  constructor(retryAfter: number, detail: string, cause?: unknown) {
    super('jwks_unavailable', 503, 'The keys of the token issuer are unavailable', detail, cause)
    this.retryAfter = retryAfter
  }
}

/** A good token without the roles that the route asks for. */
export class ForbiddenError extends AccessError {
  constructor(detail: string) {
    super('forbidden', 403, 'The access token lacks a role that is needed here', detail)
  }
}

/** A good token without the scopes that the route asks for (RFC 6750 section 3.1). */
export class InsufficientScopeError extends AccessError {
  readonly scopes: readonly string[]

  constructor(scopes: readonly string[]) {
    super('insufficient_scope', 403, 'The access token lacks a scope that is needed here', scopes.join(' '))
    this.scopes = scopes
  }
}

/** Options or environment variables that cannot work; thrown while starting, naming all problems at once. */
export class ConfigurationError extends Error {
  readonly problems: readonly string[]

  constructor(problems: readonly string[]) {
    super(`gatehouse resource server: ${problems.join('; ')}`)
    this.name = new.target.name
    this.problems = problems
  }
}
