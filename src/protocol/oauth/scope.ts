import { OAuthError } from './error.ts'

/** What an authorization request without `scope` asks for. */
export const defaultScopes: readonly string[] = ['openid']

const maxLength = 4096
const token = /^[\x21\x23-\x5b\x5d-\x7e]+$/
const tokens = /^[\x20\x21\x23-\x5b\x5d-\x7e]+$/

/** Whether the text is one scope-token of https://www.rfc-editor.org/rfc/rfc6749#section-3.3 */
export const isScopeToken = (text: string): boolean => token.test(text)

/** The scope-tokens in the order sent, each once; surplus spaces are forgiven. Throws invalid_scope. */
export const parseScope = (text: string): readonly string[] => {
  if (text.length > maxLength || !tokens.test(text)) throw new OAuthError('invalid_scope')
  const scopes = new Set(text.split(' '))
  scopes.delete('')
  if (scopes.size === 0) throw new OAuthError('invalid_scope')
  return [...scopes]
}

export const formatScope = (scopes: readonly string[]): string => scopes.join(' ')

export const isSubset = (scopes: readonly string[], allowed: readonly string[]): boolean =>
  scopes.every(scope => allowed.includes(scope))

/**
 * What is granted: the requested scopes, or the fallback when none are. Throws invalid_scope beyond
 * `allowed`.
 */
export const grantScopes = (
  requested: readonly string[] | undefined,
  allowed: readonly string[],
  fallback: readonly string[] = allowed,
): readonly string[] => {
  const scopes = requested ?? fallback
  if (!isSubset(scopes, allowed)) throw new OAuthError('invalid_scope')
  return scopes
}
