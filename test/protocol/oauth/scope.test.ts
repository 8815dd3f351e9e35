import { describe, expect, test } from 'bun:test'
import { formatScope, grantScopes, isScopeToken, isSubset, parseScope } from '#src/protocol/oauth/scope.ts'
import { refusal } from './refusal.ts'

test.each([
  ['openid', ['openid']],
  ['openid profile email', ['openid', 'profile', 'email']],
  ['b a b a', ['b', 'a']],
  [' openid  email ', ['openid', 'email']],
  ['users:read https://api.example/x !#[]~', ['users:read', 'https://api.example/x', '!#[]~']],
  ['x'.repeat(4096), ['x'.repeat(4096)]],
])('scope %p', (text, expected) => expect(parseScope(text)).toEqual(expected))

test.each(['', ' ', 'a"b', 'a\\b', 'a\tb', 'a\nb', 'openid\n', 'é', 'a\0', 'a\u00a0b', 'x'.repeat(4097)])(
  'O-58 scope %p is refused',
  text => expect(refusal(() => parseScope(text))).toBe('invalid_scope'),
)

test.each([
  ['users:read', true],
  ['~!#[]', true],
  ['', false],
  ['a b', false],
  ['a"', false],
  ['a\\', false],
  ['é', false],
])('scope-token %p: %p', (text, expected) => expect(isScopeToken(text)).toBe(expected))

test('a list and its text form', () => {
  expect(formatScope(['openid', 'email'])).toBe('openid email')
  expect(formatScope([])).toBe('')
})

test.each([
  [[], [], true],
  [[], ['a'], true],
  [['a'], ['a', 'b'], true],
  [['b', 'a'], ['a', 'b'], true],
  [['a', 'c'], ['a', 'b'], false],
  [['A'], ['a'], false],
])('%p within %p: %p', (scopes, allowed, expected) => expect(isSubset(scopes, allowed)).toBe(expected))

describe('O-20 what is granted', () => {
  test.each([
    ['narrower', ['a'], ['a', 'b'], undefined, ['a']],
    ['in the order asked for', ['b', 'a'], ['a', 'b'], undefined, ['b', 'a']],
    ['all when none is named', undefined, ['a', 'b'], undefined, ['a', 'b']],
    ['the fallback when none is named', undefined, ['a', 'b'], ['b'], ['b']],
  ])('%s', (_, requested, allowed, fallback, expected) => {
    expect(grantScopes(requested, allowed, fallback)).toEqual(expected)
  })

  test.each([
    ['broader', ['a', 'c'], undefined],
    ['a fallback that the client lacks', undefined, ['openid']],
  ])('%s is refused', (_, requested, fallback) => {
    expect(refusal(() => grantScopes(requested, ['a', 'b'], fallback))).toBe('invalid_scope')
  })
})
