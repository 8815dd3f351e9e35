/** Tests which keys of a client's key set are used. */
import { expect, test } from 'bun:test'
import { readKeySet } from '#src/protocol/oauth/client-keys.ts'

test('CMD-10 keys that take long to verify, of other curves, and members that are not needed are left out', () => {
  const rsa = { kty: 'RSA', kid: 'a', n: 'A'.repeat(683), e: 'AQAB' }
  const ec = { kty: 'EC', crv: 'P-256', x: 'x', y: 'y' }
  const others = [
    { ...rsa, n: 'A'.repeat(685) },
    { ...rsa, e: 'AQABAAE' },
    { kty: 'RSA' },
    { ...rsa, n: ['A'.repeat(9000)] },
    { ...ec, crv: 'P-521' },
    { kty: 'OKP', crv: 'Ed448', x: 'x' },
    'text',
    null,
  ]
  const { keys } = readKeySet({ keys: [...others, { ...rsa, x5c: ['…'], x5u: 'https://a.example' }, ec] })
  expect(keys).toEqual([rsa, ec])
})
