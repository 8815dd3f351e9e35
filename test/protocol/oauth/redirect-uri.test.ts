import { describe, expect, test } from 'bun:test'
import {
  checkRegistrable,
  matches,
  usesPrivateScheme,
  webOriginOf,
  withParameters,
} from '#src/protocol/oauth/redirect-uri.ts'

describe('O-04 what may be registered', () => {
  test.each([
    'https://app.example',
    'https://app.example/cb',
    'https://app.example:8443/cb?x=1&y=%20',
    'https://app.example/@user',
    'https://xn--bcher-kva.example/cb',
    'http://localhost/cb',
    'http://localhost:3000/cb',
    'http://127.0.0.1/cb',
    'http://127.0.0.1:1/cb',
    'http://[::1]/cb',
    'http://[::1]:8080',
    'com.example.app:/cb',
    'com.example.app://cb',
    `https://app.example/${'a'.repeat(2048 - 20)}`,
  ])('%s', uri => expect(checkRegistrable(uri)).toBeUndefined())

  test.each([
    ['', 'must contain only URI characters'],
    ['/cb', 'must be an absolute URI'],
    ['//app.example/cb', 'must be an absolute URI'],
    ['app.example/cb', 'must be an absolute URI'],
    ['https://app.example:99999/cb', 'must be an absolute URI'],
    ['https://', 'must be an absolute URI'],
    ['https://app.example/cb#', 'must not have a fragment'],
    ['https://app.example/cb#x', 'must not have a fragment'],
    ['https://*.example/cb', 'must not have a wildcard'],
    ['https://app.example/*', 'must not have a wildcard'],
    ['https://user@app.example/cb', 'must not contain a user name or password'],
    ['https://@app.example/cb', 'must not contain a user name or password'],
    ['http://localhost@evil.example/cb', 'must not contain a user name or password'],
    ['com.example.app://user@cb', 'must not contain a user name or password'],
    ['https:app.example/cb', 'must name a host'],
    ['https:/app.example/cb', 'must name a host'],
    ['https:///app.example/cb', 'must name a host'],
    ['https://app.example/c b', 'must contain only URI characters'],
    ['https://app.example/cb\n', 'must contain only URI characters'],
    ['https://app.example/\tcb', 'must contain only URI characters'],
    ['https://app.example/\0', 'must contain only URI characters'],
    ['https://app.example\\@evil.example', 'must contain only URI characters'],
    ['https://bücher.example/cb', 'must contain only URI characters'],
    ['https://app.example/<script>', 'must contain only URI characters'],
    [`https://app.example/${'a'.repeat(2048 - 19)}`, 'must be at most 2048 characters long'],
  ])('%s %s', (uri, reason) => expect(checkRegistrable(uri)).toBe(reason))

  test.each([
    'http://app.example/cb',
    'http://localhost.evil.example/cb',
    'http://127.0.0.1.evil.example/cb',
    'http://2130706433/cb',
    'http://0x7f.0.0.1/cb',
    'http://127.1/cb',
    'http://127.0.0.2/cb',
    'http://0.0.0.0/cb',
    'http://[::ffff:127.0.0.1]/cb',
    'http:localhost/cb',
    'javascript:alert(1)',
    'javascript://app.example/%0aalert(1)',
    'JavaScript:alert(1)',
    'data:text/html,x',
    'vbscript:x',
    'file:///etc/passwd',
    'blob:https://app.example/x',
    'about:blank',
    'urn:ietf:wg:oauth:2.0:oob',
    'ftp://app.example/cb',
    'ws://app.example/cb',
    'intent://app.example',
    'myapp:/cb',
  ])('refused for its scheme or host: %s', uri => {
    expect(checkRegistrable(uri)).toStartWith('must use https')
  })
})

describe('O-02 the match is exact', () => {
  const registered = 'https://app.example/Cb'
  test('itself', () => expect(matches(registered, registered)).toBe(true))
  test.each([
    'https://app.example/cb',
    'https://app.example/Cb/',
    'https://app.example/Cb?',
    'https://app.example/Cb?x=1',
    'https://app.example:443/Cb',
    'https://app.example:8443/Cb',
    'http://app.example/Cb',
    'HTTPS://app.example/Cb',
    'https://APP.example/Cb',
    'https://app.example./Cb',
    'https://app.example/x/../Cb',
    'https://app.example/%2e%2e/Cb',
    'https://app.example/%43b',
    'https://app.example%2FCb',
    'https://app.example/Cb#',
    'https://app.example/Cb#x',
    'https://user@app.example/Cb',
    'https://app.example@evil.example/Cb',
    'https://a@app.example@evil.example/Cb',
    'https://evil.example#@app.example/Cb',
    'https://evil.example/https://app.example/Cb',
    'https://app.example\\@evil.example/Cb',
    'https://app.example/\tCb',
    'https://app.example/Cb\n',
    ' https://app.example/Cb',
    'https://xn--pp-example/Cb',
    'https://аpp.example/Cb',
    '//app.example/Cb',
    'https:///app.example/Cb',
    '',
  ])('not %p', requested => expect(matches(registered, requested)).toBe(false))
})

describe('O-03 a loopback IP without a port matches any port', () => {
  test.each([
    ['http://127.0.0.1/cb', 'http://127.0.0.1/cb', true],
    ['http://127.0.0.1/cb', 'http://127.0.0.1:1/cb', true],
    ['http://127.0.0.1/cb', 'http://127.0.0.1:65535/cb', true],
    ['http://[::1]/cb', 'http://[::1]:49152/cb', true],
    ['http://127.0.0.1', 'http://127.0.0.1:8080', true],
    ['http://127.0.0.1?a=1', 'http://127.0.0.1:8080?a=1', true],
    ['http://127.0.0.1/cb', 'http://127.0.0.1:/cb', false],
    ['http://127.0.0.1/cb', 'http://127.0.0.1:0/cb', false],
    ['http://127.0.0.1/cb', 'http://127.0.0.1:080/cb', false],
    ['http://127.0.0.1/cb', 'http://127.0.0.1:65536/cb', false],
    ['http://127.0.0.1/cb', 'http://127.0.0.1:123456/cb', false],
    ['http://127.0.0.1/cb', 'http://127.0.0.1:80@evil.example/cb', false],
    ['http://127.0.0.1/cb', 'http://127.0.0.1:8080.evil.example/cb', false],
    ['http://127.0.0.1/cb', 'http://127.0.0.1.evil.example/cb', false],
    ['http://127.0.0.1/cb', 'http://127.0.0.1:8080/cb/', false],
    ['http://127.0.0.1/cb', 'http://127.0.0.1:8080/cb?x', false],
    ['http://127.0.0.1/cb', 'https://127.0.0.1:8080/cb', false],
    ['http://127.0.0.1/cb', 'http://[::1]:8080/cb', false],
    ['http://127.0.0.1/cb', 'http://localhost:8080/cb', false],
    ['http://127.0.0.1', 'http://127.0.0.1:8080/', false],
    ['http://127.0.0.1:3000/cb', 'http://127.0.0.1:3001/cb', false],
    ['http://127.0.0.1:3000/cb', 'http://127.0.0.1:3000:1/cb', false],
    ['http://127.0.0.1:3000/cb', 'http://127.0.0.1:1:3000/cb', false],
    ['http://localhost/cb', 'http://localhost:8080/cb', false],
    ['https://127.0.0.1/cb', 'https://127.0.0.1:8080/cb', false],
    ['http://127.0.0.1.evil.example/cb', 'http://127.0.0.1.evil.example:80/cb', false],
  ])('%s and %s: %p', (registered, requested, expected) => {
    expect(matches(registered, requested)).toBe(expected)
  })
})

describe('O-26 the query of the redirect URI is kept', () => {
  test.each([
    ['https://a.example/cb', 'https://a.example/cb?code=1&state=2'],
    ['https://a.example', 'https://a.example?code=1&state=2'],
    ['https://a.example/cb?x=%20y', 'https://a.example/cb?x=%20y&code=1&state=2'],
    ['https://a.example/cb?', 'https://a.example/cb?code=1&state=2'],
    ['https://a.example/cb?x=1&', 'https://a.example/cb?x=1&code=1&state=2'],
    ['com.example.app:/cb', 'com.example.app:/cb?code=1&state=2'],
  ])('%s', (uri, expected) => {
    expect(withParameters(uri, { code: '1', error: undefined, state: '2' })).toBe(expected)
  })

  test('without parameters to add', () =>
    expect(withParameters('https://a.example/', {})).toBe('https://a.example/'))
})

describe('O-25 every state is returned unchanged', () => {
  test.each([
    'a b+c',
    'a&b=c#d?e',
    '%00',
    '\0',
    '</script><script>alert(1)</script>',
    'line\r\nSet-Cookie: a=b',
    'é 漢字 😀 \u202e',
    'x'.repeat(2048),
  ])('%p', state => {
    const uri = withParameters('https://a.example/cb?x=1', { state, iss: 'https://id.example' })
    expect(uri).toMatch(/^[\x21-\x7e]+$/)
    expect(uri).not.toMatch(/[<>"#]/)
    expect([...new URL(uri).searchParams]).toEqual([
      ['x', '1'],
      ['state', state],
      ['iss', 'https://id.example'],
    ])
  })
})

test.each([
  ['com.example.app:/cb', true],
  ['http://127.0.0.1/cb', false],
  ['https://a.example/cb', false],
  ['HTTPS://a.example/cb', false],
])('O-66 a private-use scheme: %s %p', (uri, expected) => expect(usesPrivateScheme(uri)).toBe(expected))

test.each([
  ['https://a.example:8443/cb?x=1', 'https://a.example:8443'],
  ['http://localhost:3000/cb', 'http://localhost:3000'],
  ['http://127.0.0.1:3000/cb', 'http://127.0.0.1:3000'],
  ['http://127.0.0.1/cb', undefined],
  ['http://[::1]', undefined],
  ['com.example.app:/cb', undefined],
])('PAG-64 the web origin of %s', (uri, origin) => {
  expect(webOriginOf(uri)).toBe(origin)
})
