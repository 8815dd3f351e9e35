import { OAuthError } from './error.ts'

/** Scopes that an authorization request without the parameter `scope` asks for. */
export const defaultScopes: readonly string[] = ['openid']

/**
 * Maximum length of `scope` in characters. The value is stored with each session and sent in each access
 * token.
 */
const maxLength = 4096
const token = /^[\x21\x23-\x5b\x5d-\x7e]+$/
const tokens = /^[\x20\x21\x23-\x5b\x5d-\x7e]+$/

/** True for one scope-token: https://www.rfc-editor.org/rfc/rfc6749#section-3.3 */
export const isScopeToken = (text: string): boolean => token.test(text)

/**
 * Returns the scope-tokens of `text` in their order and without duplicates. Surplus spaces are ignored.
 *
 * @throws OAuthError `invalid_scope`
 */
export const parseScope = (text: string): readonly string[] => {
  if (text.length > maxLength || !tokens.test(text)) throw new OAuthError('invalid_scope')
  const scopes = new Set(text.split(' '))
  scopes.delete('')
  if (scopes.size === 0) throw new OAuthError('invalid_scope')
  return [...scopes]
}

/**
 * Joins scopes into the value of the `scope` parameter: https://www.rfc-editor.org/rfc/rfc6749#section-3.3
 */
export const formatScope = (scopes: readonly string[]): string => scopes.join(' ')

/** True when every scope is allowed. */
export const isSubset = (scopes: readonly string[], allowed: readonly string[]): boolean =>
  scopes.every(scope => allowed.includes(scope))

/**
 * Returns the granted scopes. These are the requested scopes, or `fallback` when no scope is requested.
 *
 * @throws OAuthError `invalid_scope` for a scope outside `allowed`; the description of the error names the
 * allowed scopes
 */
export const grantScopes = (
  requested: readonly string[] | undefined,
  allowed: readonly string[],
  fallback: readonly string[] = allowed,
): readonly string[] => {
  const scopes = requested ?? fallback
  if (isSubset(scopes, allowed)) return scopes
  throw new OAuthError(
    'invalid_scope',
    `A requested scope is not allowed. Allowed: ${formatScope(allowed) || 'none'}.`,
  )
}

/**
 * Returns the requested scopes that are allowed. When no scope is requested, returns the scopes of `fallback`
 * that are allowed. Scopes that are not allowed are ignored, because dynamic clients ask for every scope that
 * they know.
 *
 * @throws OAuthError `invalid_scope` when none of the scopes is allowed
 */
export const grantKnownScopes = (
  requested: readonly string[] | undefined,
  allowed: readonly string[],
  fallback: readonly string[],
): readonly string[] => {
  const scopes = (requested ?? fallback).filter(scope => allowed.includes(scope))
  if (scopes.length === 0) throw new OAuthError('invalid_scope')
  return scopes
}
