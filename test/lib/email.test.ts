import { describe, expect, test } from 'bun:test'
import { canonicalDomain, canonicalEmail, foldIdentifier } from '#src/lib/email.ts'

describe('O-60 an e-mail address has one canonical form', () => {
  test.each([
    ['Alice@Example.COM', 'alice@example.com'],
    ['a.l.i.c.e@example.com', 'a.l.i.c.e@example.com'],
    ['alice+tag@example.com', 'alice+tag@example.com'],
    ['alice@bücher.example', 'alice@xn--bcher-kva.example'],
    ['alice@BÜCHER.example', 'alice@xn--bcher-kva.example'],
    ['alice@xn--bcher-kva.example', 'alice@xn--bcher-kva.example'],
    ['alice@faß.example', 'alice@xn--fa-hia.example'],
    [`${'a'.repeat(64)}@example.com`, `${'a'.repeat(64)}@example.com`],
  ])('%s', (text, canonical) => {
    expect(canonicalEmail(text)).toBe(canonical)
  })

  test.each([
    'alice',
    '@example.com',
    'alice@',
    'alice@localhost',
    'alice@example.com.',
    'alice@.example.com',
    'alice@example..com',
    '"alice"@example.com',
    'al ice@example.com',
    '.alice@example.com',
    'alice.@example.com',
    'al..ice@example.com',
    'alice@[192.0.2.1]',
    'alice@192.0.2.1',
    'alice@exa_mple.com',
    'alice@-example.com',
    'alice@example.com/evil',
    'alice@exa%6dple.com',
    'alice@evil.com@example.com',
    'ąlice@example.com',
    'ａlice@example.com',
    'alice@ｅxample.com',
    'alice@exam\u00adple.com',
    'alice＠example.com',
    'Alice <alice@example.com>',
    'alice@example.com\n',
    `${'a'.repeat(65)}@example.com`,
    `alice@${'a'.repeat(64)}.com`,
    `a@${'abcdefghi.'.repeat(26)}com`,
  ])('USR-28 %j is not an address', text => {
    expect(canonicalEmail(text)).toBeUndefined()
  })
})

test('a domain is compared exactly, in lower case and xn-- form', () => {
  expect(canonicalDomain('Example.COM')).toBe('example.com')
  expect(canonicalDomain('bücher.example')).toBe('xn--bcher-kva.example')
  for (const text of ['com', '*.example.com', '.example.com', 'example.com.', '', '1.2.3.4'])
    expect(canonicalDomain(text)).toBeUndefined()
})

test('typed addresses are looked up in the stored form', () => {
  expect(foldIdentifier(' Alice@BÜCHER.example ')).toBe('alice@xn--bcher-kva.example')
  expect(foldIdentifier('ALICE')).toBe('alice')
  expect(foldIdentifier('ａｌｉｃｅ')).toBe('alice')
})
