import { describe, expect, test } from 'bun:test'
import { OAuthError } from '#src/protocol/oauth/error.ts'
import { readChallenge, verifies } from '#src/protocol/oauth/pkce.ts'

// https://www.rfc-editor.org/rfc/rfc7636#appendix-B
const verifier = 'dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk'
const challenge = 'E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM'
const s256 = (text: string) => new Bun.CryptoHasher('sha256').update(text).digest('base64url')

describe('O-07 the syntax of a challenge', () => {
  test.each([
    ['the example', challenge, true],
    ['42 characters', challenge.slice(1), false],
    ['44 characters', `${challenge}A`, false],
    ['129 characters', 'A'.repeat(129), false],
    ['padding', `${challenge}=`, false],
    ['padding within 43', `${challenge.slice(0, 42)}=`, false],
    ['plus', challenge.replace('-', '+'), false],
    ['a line feed', `${challenge}\n`, false],
    ['a letter outside ASCII', challenge.replace('E', 'É'), false],
    ['nothing', '', false],
  ])('%s', (_, text, isValid) => {
    const read = () =>
      readChallenge(new Map(Object.entries({ code_challenge: text, code_challenge_method: 'S256' })))
    if (isValid) expect(read()).toBe(text)
    else expect(read).toThrow(new OAuthError('invalid_request', 'The parameter code_challenge is invalid.'))
  })
})

describe('O-08 a verifier', () => {
  const longest = `${'a'.repeat(124)}-._~`
  test('the one of the RFC', () => expect(verifies(verifier, challenge)).toBe(true))
  test('of 128 characters, every kind', () => expect(verifies(longest, s256(longest))).toBe(true))

  test.each([
    ['another', 'A'.repeat(43)],
    ['the challenge itself', challenge],
    ['42 characters', 'a'.repeat(42)],
    ['129 characters', 'a'.repeat(129)],
    ['an illegal character', `${'a'.repeat(42)}+`],
    ['a line feed', `${'a'.repeat(43)}\n`],
    ['nothing', ''],
  ])('refused: %s', (name, text) => {
    expect(verifies(text, name === 'another' || text === challenge ? challenge : s256(text))).toBe(false)
  })
})

describe('O-09 a code without a usable challenge can never be redeemed', () => {
  test.each([
    ['none', undefined],
    ['empty', ''],
    ['plain', verifier],
    ['hexadecimal', Buffer.from(challenge, 'base64url').toString('hex')],
    ['padded', `${challenge}=`],
    // The last of 43 characters has two unused bits, so this text decodes to the same bytes.
    ['another spelling of the same bytes', `${challenge.slice(0, -1)}N`],
  ])('%s', (_, stored) => expect(verifies(verifier, stored)).toBe(false))
})
