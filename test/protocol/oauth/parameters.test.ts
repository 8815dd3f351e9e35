import { describe, expect, test } from 'bun:test'
import {
  checkRegular,
  decodeForm,
  parseForm,
  parseParameters,
  requireParameter,
  requireRegular,
} from '#src/protocol/oauth/parameters.ts'
import { refusal } from './refusal.ts'

test.each([
  ['', {}],
  ['a=1&b=2', { a: '1', b: '2' }],
  ['a=1&&b=2&', { a: '1', b: '2' }],
  ['a=&b&c=3', { c: '3' }],
  ['a=b=c', { a: 'b=c' }],
  ['a=x+y%2Bz%26%3D', { a: 'x y+z&=' }],
  ['%61=%C3%A9%F0%9F%98%80', { a: 'é😀' }],
  ['a=%EF%BF%BD', { a: '\ufffd' }],
  ['a=%EF%BB%BFb', { a: '\ufeffb' }],
  ['__proto__=1&constructor=2', JSON.parse('{"__proto__":"1","constructor":"2"}')],
])('form %p', (body, expected) => {
  expect([...parseForm(body)]).toEqual(Object.entries(expected))
})

describe('O-40 a repeated parameter', () => {
  test.each([
    ['same value', 'a=1&a=1'],
    ['different value', 'a=1&a=2'],
    ['three times', 'a=1&a=1&a=1'],
    ['once empty', 'a=&a=1'],
    ['empty last', 'a=1&a='],
    ['differently escaped name', 'a=1&%61=2'],
    ['an unknown one', 'x=1&known=1&x=2'],
    ['malformed first', 'a=%zz&a=1'],
  ])('%s', (_, body) => {
    expect(refusal(() => parseForm(body))).toBe('invalid_request')
  })

  test('in query and body', () => {
    const { values, irregular } = parseParameters('a=1&b=2', 'a=1&c=3')
    expect(Object.fromEntries(values)).toEqual({ b: '2', c: '3' })
    expect(Object.fromEntries(irregular)).toEqual({ a: 'repeated' })
  })

  test('is reported when it is read; the others stay readable', () => {
    const parameters = parseParameters('redirect_uri=a&redirect_uri=b&client_id=c')
    expect(requireRegular(parameters, 'client_id')).toBe('c')
    expect(() => requireRegular(parameters, 'redirect_uri')).toThrow(
      'The parameter redirect_uri is sent twice.',
    )
    expect(refusal(() => checkRegular(parameters))).toBe('invalid_request')
  })
})

describe('O-58 hostile text', () => {
  test.each([
    ['NUL', 'a=%00'],
    ['raw NUL', 'a=\0'],
    ['NUL in resource', 'resource=%00'],
    ['NUL in another resource', 'resource=a&resource=b%00'],
    ['bad escape', 'a=%zz'],
    ['cut escape', 'a=%4'],
    ['lone percent', 'a=100%'],
    ['bad escape in the name', '%zz=1'],
    ['invalid UTF-8', 'a=%ff'],
    ['cut UTF-8', 'a=%C3'],
    ['overlong UTF-8', 'a=%C0%AF'],
    ['escaped surrogate', 'a=%ED%A0%80'],
    ['lone surrogate', 'a=\ud800'],
    ['bytes that were not UTF-8', 'a=\ufffd'],
  ])('%s', (_, body) => {
    expect(refusal(() => parseForm(body))).toBe('invalid_request')
  })

  test('NUL is accepted only in state, which is returned unchanged', () => {
    expect(parseForm('state=a%00b').get('state')).toBe('a\0b')
  })
})

describe('O-57 the number of parameters', () => {
  const many = (count: number) => Array.from({ length: count }, (_, i) => `p${i}=1`).join('&')
  test('100 are accepted', () => expect(parseForm(many(100)).size).toBe(100))
  test('101 are refused', () => expect(refusal(() => parseForm(many(101)))).toBe('invalid_request'))
  test('so are 51 in the query and 50 in the body', () =>
    expect(refusal(() => parseParameters(many(51), many(50)))).toBe('invalid_request'))
  test('and 100 000 separators, of which only the first hundred are read', () =>
    expect(refusal(() => parseForm('&'.repeat(1e5)))).toBe('invalid_request'))
})

test('a missing or empty parameter is named', () => {
  expect(() => requireParameter(parseForm('code='), 'code')).toThrow('The parameter code is missing.')
})

test.each([
  ['a+b', 'a b'],
  ['%3A%25%2B', ':%+'],
  ['%C3%A9', 'é'],
  ['plain', 'plain'],
  ['%', undefined],
  ['%C3', undefined],
])('decodeForm %p', (text, expected) => {
  expect(decodeForm(text)).toBe(expected)
})
