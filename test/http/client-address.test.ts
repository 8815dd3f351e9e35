import { expect, test } from 'bun:test'
import { clientAddress, normalizeAddress, proxyList } from '#src/http/client-address.ts'

test.each([
  ['::ffff:192.0.2.1', '192.0.2.1'],
  ['::FFFF:192.0.2.1', '192.0.2.1'],
  ['0:0:0:0:0:ffff:192.0.2.1', '192.0.2.1'],
  ['192.0.2.1:4711', '192.0.2.1'],
  ['[2001:db8::1]:4711', '2001:db8::1'],
  ['2001:DB8::1', '2001:db8::1'],
  ['fe80::1%eth0', 'fe80::1'],
  ['unknown', undefined],
  ['', undefined],
])('O-35 every spelling of an address is normalized: %s', (text, expected) => {
  expect(normalizeAddress(text)).toBe(expected)
})

const proxies = proxyList(['10.0.0.0/8', '::1'])

test.each([
  ['a stranger sends the header', '203.0.113.9', '198.51.100.1', '203.0.113.9'],
  ['one proxy', '10.0.0.1', '198.51.100.1', '198.51.100.1'],
  ['the caller forged the left part', '10.0.0.1', '1.1.1.1, 198.51.100.1', '198.51.100.1'],
  ['two proxies', '::ffff:10.0.0.1', '198.51.100.1, 10.9.9.9', '198.51.100.1'],
  ['only proxies', '10.0.0.1', '10.0.0.2', '10.0.0.2'],
  ['junk from a proxy', '10.0.0.1', 'unknown', '10.0.0.1'],
  ['an address to the left of junk', '10.0.0.1', '198.51.100.1, unknown', '10.0.0.1'],
  ['a proxy with an IPv6 address', '::1', '198.51.100.1', '198.51.100.1'],
  ['no header', '10.0.0.1', null, '10.0.0.1'],
])(
  'O-35 X-Forwarded-For is read from the right and from trusted proxies only: %s',
  (_, socket, header, expected) => {
    expect(clientAddress(socket, header, proxies)).toBe(expected)
  },
)
