/** Verifies access tokens of a Gatehouse server with the Fetch API; jose is the only dependency. */
export {
  type Answer,
  answerTo,
  authorize,
  type ClaimsFor,
  type CredentialSource,
  type Handlers,
  type RefusalAnswer,
  type ResourceChallenge,
  type Rules,
} from './access.ts'
export { type Claims, hasAllRoles, hasAllScopes, hasAnyRole, hasRole, hasScope } from './claims.ts'
export * from './errors.ts'
export type { Fetch } from './fetch-json.ts'
export type { Environment, VerifierOptions } from './options.ts'
export { createVerifier, fromEnv, type Guarded, type GuardOptions, type Verifier } from './verifier.ts'
