import { describe, expect, test } from 'bun:test'
import { createHmac, generateKeyPairSync } from 'node:crypto'
import { readResponse } from '#src/protocol/saml/response.ts'
import { formatTime } from '#src/protocol/saml/time.ts'
import { party } from '#test/support/saml/genuine.ts'
import {
  encode,
  encryptAssertion,
  makeIdentityProvider,
  newPair,
} from '#test/support/saml/identity-provider.ts'
import {
  ordinary,
  type ResponseContent,
  renderAssertion,
  renderResponse,
} from '#test/support/saml/response-parts.ts'
import { signElement } from '#test/support/saml/sign.ts'
import { accepted, statements } from '#test/support/saml/statements.ts'
import { expecting, ourPair, refusal } from './expecting.ts'

const idp = makeIdentityProvider()
const expected = expecting({ keys: [idp.public_key] })
const said = (more: Partial<ResponseContent> = {}): ResponseContent => ({ ...ordinary(party), ...more })
const good = encode(idp.respond(said()))

describe('defects that the provider itself signs', () => {
  for (const { name, reason, say, how, signing } of statements)
    test(name, () => {
      expect(refusal(good, expected)).toBeUndefined()
      expect(refusal(encode(idp.respond(said(say(party)), how, signing)), expected)).toBe(reason)
    })
  for (const { name, say, how, signing } of accepted)
    test(name, () => {
      const words = said(say(party))
      const { name_id } = readResponse(encode(idp.respond(words, how, signing)), expected, party.now)
      expect(name_id?.value).toBe(words.name_id)
    })
})

test('an assertion is read completely', () => {
  const attributes = { mail: ['a@example.com', 'b@example.com'], empty: [''], 'urn:oid:2.5.4.4': [' L '] }
  const words = said({ attributes, session_until: formatTime(party.now + 60_000) })
  expect(readResponse(encode(idp.respond(words)), expected, party.now)).toEqual({
    id: words.assertion_id,
    name_id: { value: 'ada-4711', format: 'urn:oasis:names:tc:SAML:2.0:nameid-format:persistent' },
    attributes: new Map([
      ['mail', ['a@example.com', 'b@example.com']],
      ['empty', []],
      ['urn:oid:2.5.4.4', [' L ']],
    ]),
    authn_instant: party.now,
    session_ends_at: party.now + 60_000 + expected.clock_tolerance,
    expires_at: party.now + 15 * 60_000,
  })
})

test('S-31 an assertion is remembered until its last confirmation expires', () => {
  const later = formatTime(party.now + 60 * 60_000)
  const words = said({ confirmed_until: formatTime(party.now + 60_000), valid_until: later })
  const bare = idp.respond(words, 'none')
  const confirmation = /<saml:SubjectConfirmation[\s\S]*<\/saml:SubjectConfirmation>/.exec(bare)?.[0] ?? ''
  const second = confirmation.replace(/NotOnOrAfter="[^"]*"/, `NotOnOrAfter="${later}"`)
  const xml = signElement(
    bare.replace(confirmation, confirmation + second),
    words.response_id,
    idp.key,
    idp.certificate,
  )
  const then = party.now + 30 * 60_000
  const first = readResponse(encode(xml), expected, party.now)
  expect(readResponse(encode(xml), expected, then).id).toBe(first.id)
  expect(first.expires_at).toBeGreaterThan(Date.parse(later) + expected.clock_tolerance)
})

test('S-19 content outside of the signed assertion is not read', () => {
  const plain = idp.respond(said())
  const altered = plain.replace(/(<samlp:Response[^>]*) ID="[^"]*"/, '$1 ID="_changed" Consent="urn:x"')
  expect(altered).not.toBe(plain)
  expect(readResponse(encode(altered), expected, party.now).name_id?.value).toBe('ada-4711')
})

test('S-20 HMAC keyed with the public certificate', () => {
  const hmac = 'http://www.w3.org/2000/09/xmldsig#hmac-sha1'
  const xml = idp.respond(said()).replace(/(<ds:SignatureMethod Algorithm=")[^"]*/, `$1${hmac}`)
  const info = /<ds:SignedInfo>[\s\S]*<\/ds:SignedInfo>/.exec(xml)?.[0] ?? ''
  const canonical = info
    .replace('<ds:SignedInfo>', '<ds:SignedInfo xmlns:ds="http://www.w3.org/2000/09/xmldsig#">')
    .replace(/<(ds:\w+)([^>]*?)\s*\/>/g, '<$1$2></$1>')
  const pem = idp.public_key.export({ format: 'pem', type: 'spki' })
  const value = createHmac('sha1', pem).update(canonical).digest('base64')
  const forged = xml.replace(/(<ds:SignatureValue>)[^<]*/, `$1${value}`)
  expect(refusal(encode(forged), expected)).toBe('bad_algorithm')
  expect(refusal(encode(forged), { ...expected, allow_sha1: true })).toBe('bad_algorithm')
})

test('S-20 SHA-1 is accepted only from a provider that opts in', () => {
  const signing = {
    signatureAlgorithm: 'http://www.w3.org/2000/09/xmldsig#rsa-sha1',
    digestAlgorithm: 'http://www.w3.org/2000/09/xmldsig#sha1',
  }
  const old = encode(idp.respond(said(), 'assertion', signing))
  expect(refusal(old, expected)).toBe('bad_algorithm')
  expect(refusal(old, { ...expected, allow_sha1: true })).toBeUndefined()
})

test('S-22 a message signed by a stranger who includes the certificate', () => {
  const stranger = makeIdentityProvider()
  for (const how of ['response', 'assertion', 'both'] as const)
    expect(refusal(encode(stranger.respond(said(), how)), expected)).toBe('bad_signature')
})

test('S-23 a provider without a certificate', () => {
  expect(refusal(good, { ...expected, keys: [] })).toBe('no_certificate')
})

test('S-23 a key of another type', () => {
  const { publicKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' })
  expect(refusal(good, { ...expected, keys: [publicKey] })).toBe('bad_signature')
})

test('S-24 rollover: both pinned keys are accepted, a key no longer pinned is not', () => {
  const next = makeIdentityProvider()
  const fresh = encode(next.respond(said()))
  const during = { ...expected, keys: [idp.public_key, next.public_key] }
  const after = { ...expected, keys: [next.public_key] }
  expect([refusal(good, during), refusal(fresh, during)]).toEqual([undefined, undefined])
  expect([refusal(good, after), refusal(fresh, after)]).toEqual(['bad_signature', undefined])
})

describe('S-29 unsolicited responses', () => {
  const unasked = said({ response_in_response_to: undefined, in_response_to: undefined })
  const unsolicited = { ...expected, request: undefined }
  test('S-29 are read when no request is expected', () =>
    expect(refusal(encode(idp.respond(unasked)), unsolicited)).toBeUndefined())
  test('S-29 must not name a request', () => {
    expect(refusal(good, unsolicited)).toBe('wrong_request')
    const half = said({ response_in_response_to: undefined })
    expect(refusal(encode(idp.respond(half)), unsolicited)).toBe('wrong_request')
  })
})

test('O-48 where reauthentication was requested, an older authentication is refused', () => {
  const forced = { ...expected, request: { id: '_request-1', sent_at: party.now, force: true } }
  const at = (ms: number) => encode(idp.respond(said({ authn_instant: formatTime(party.now + ms) })))
  expect(refusal(at(-61_000), forced)).toBe('old_authentication')
  expect(refusal(at(-60_000), forced)).toBeUndefined()
  expect(refusal(at(-61_000), expected)).toBeUndefined()
})

describe('S-34 encrypted assertions', () => {
  const encrypted = (
    ...more: Parameters<typeof idp.respondEncrypted> extends [unknown, unknown, ...infer R] ? R : never
  ) => encode(idp.respondEncrypted(said(), ourPair.publicKey, ...more))

  for (const how of ['response', 'assertion', 'both'] as const)
    for (const cipher of ['aes128-gcm', 'aes256-gcm'] as const)
      for (const transport of ['rsa-oaep-mgf1p', 'rsa-oaep-sha256'] as const)
        for (const place of ['inside', 'beside'] as const)
          test(`S-36 ${how} signed, ${cipher}, ${transport}, key ${place}`, () =>
            expect(refusal(encrypted(how, { cipher, transport, place }), expected)).toBeUndefined())

  test('S-34 an unsigned unencrypted assertion in an unsigned response', () =>
    expect(refusal(encrypted('none'), expected)).toBe('unsigned'))

  test('S-34 a stranger encrypts what a stranger signed', () => {
    const stranger = makeIdentityProvider()
    const xml = stranger.respondEncrypted(said(), ourPair.publicKey, 'assertion')
    expect(refusal(encode(xml), expected)).toBe('bad_signature')
  })

  test('S-34 an encrypted forgery put into a signed response', () => {
    const forged = encryptAssertion(renderAssertion(said({ name_id: 'admin' })), ourPair.publicKey)
    const xml = idp.respondEncrypted(said(), ourPair.publicKey, 'response')
    const swapped = xml.replace(/<saml:EncryptedAssertion[\s\S]*<\/saml:EncryptedAssertion>/, forged)
    expect(refusal(encode(swapped), expected)).toBe('bad_signature')
    const beside = xml.replace('</samlp:Response>', `${forged}</samlp:Response>`)
    expect(refusal(encode(beside), expected)).toBe('bad_shape')
  })

  test('S-34 an encrypted forgery beside a signed assertion', () => {
    const forged = encryptAssertion(renderAssertion(said({ name_id: 'admin' })), ourPair.publicKey)
    const xml = idp.respond(said()).replace('</samlp:Response>', `${forged}</samlp:Response>`)
    expect(refusal(encode(xml), expected)).toBe('bad_shape')
  })

  test('S-34 PKCS #1 v1.5 key transport', () =>
    expect(refusal(encrypted('both', { transport: 'rsa-1_5' }), expected)).toBe('bad_algorithm'))

  for (const cipher of ['aes128-cbc', 'aes256-cbc'] as const)
    test(`S-34 ${cipher} only from a provider that opts in`, () => {
      expect(refusal(encrypted('assertion', { cipher }), expected)).toBe('bad_algorithm')
      expect(refusal(encrypted('assertion', { cipher }), { ...expected, allow_cbc: true })).toBeUndefined()
    })

  test('S-34 encrypted to another key', () => {
    const xml = idp.respondEncrypted(said(), newPair().publicKey, 'assertion')
    expect(refusal(encode(xml), expected)).toBe('not_decrypted')
  })

  test.each(['gcm', 'cbc'])('S-34 a key that is too short or too long for its cipher (%s)', mode => {
    const lax = { ...expected, allow_cbc: true }
    for (const [bits, other] of [
      [128, 256],
      [256, 128],
    ]) {
      const cipher = `aes${bits}-${mode}` as 'aes128-gcm'
      const xml = idp.respondEncrypted(said(), ourPair.publicKey, 'assertion', { cipher })
      expect(refusal(encode(xml), lax)).toBeUndefined()
      expect(refusal(encode(xml.replace(cipher, `aes${other}-${mode}`)), lax)).toBe('not_decrypted')
    }
  })

  test('S-34 changed, truncated and empty ciphertexts get the same refusal', () => {
    const xml = idp.respondEncrypted(said(), ourPair.publicKey, 'assertion')
    const values = [...xml.matchAll(/<xenc:CipherValue>([^<]*)/g)].map(match => match[1] ?? '')
    expect(values).toHaveLength(2)
    for (const value of values) {
      const bytes = Buffer.from(value, 'base64')
      const last = bytes.length - 1
      bytes.writeUInt8(bytes.readUInt8(last) ^ 1, last)
      for (const other of [bytes.toString('base64'), value.slice(0, 20), ''])
        expect(refusal(encode(xml.replace(value, other)), expected)).toBe('not_decrypted')
    }
  })

  test('S-34 changed CBC ciphertexts are never accepted, whatever the padding', () => {
    const xml = idp.respondEncrypted(said(), ourPair.publicKey, 'assertion', { cipher: 'aes128-cbc' })
    const value = [...xml.matchAll(/<xenc:CipherValue>([^<]*)/g)][1]?.[1] ?? ''
    const lax = { ...expected, allow_cbc: true }
    expect(refusal(encode(xml), lax)).toBeUndefined()
    const bytes = Buffer.from(value, 'base64')
    const at = bytes.length - 17
    const original = bytes.readUInt8(at)
    const reasons = new Set<string | undefined>()
    for (let guess = 1; guess < 256; guess++) {
      bytes.writeUInt8(original ^ guess, at)
      reasons.add(refusal(encode(xml.replace(value, bytes.toString('base64'))), lax))
    }
    expect(reasons.has(undefined)).toBe(false)
  })

  test('S-34 two keys, or none', () => {
    const xml = idp.respondEncrypted(said(), ourPair.publicKey, 'assertion')
    const key = /<xenc:EncryptedKey[\s\S]*<\/xenc:EncryptedKey>/.exec(xml)?.[0] ?? ''
    expect(refusal(encode(xml.replace(key, '')), expected)).toBe('not_decrypted')
    const beside = xml.replace('</xenc:EncryptedData>', `</xenc:EncryptedData>${key}`)
    expect(refusal(encode(beside), expected)).toBe('not_decrypted')
  })

  test('S-34 a plaintext that is not an assertion', () => {
    const put = (plain: string) =>
      refusal(encode(renderResponse(said(), encryptAssertion(plain, ourPair.publicKey))), expected)
    expect(put(idp.respond(said()))).toBe('bad_shape')
    expect(put(`<!DOCTYPE x>${renderAssertion(said())}`)).toBe('bad_xml')
    expect(put('')).toBe('bad_xml')
  })
})

describe('the form field', () => {
  const cases: [string, string, string][] = [
    ['larger than 256 KiB', 'A'.repeat(256 * 1024 + 4), 'too_large'],
    ['empty', '', 'bad_encoding'],
    ['no base64', '<samlp:Response/>', 'bad_encoding'],
    ['base64url', good.replace(/[+/]/g, '-').concat('-'), 'bad_encoding'],
    ['padding in the middle', `QQ==${good}`, 'bad_encoding'],
    ['cut short', good.slice(0, -1), 'bad_encoding'],
    ['blanks', good.replace(/^(.{40})/, '$1 '), 'bad_encoding'],
    ['no UTF-8', Buffer.from([0xc0, 0xaf, 0x3c]).toString('base64'), 'bad_encoding'],
    ['UTF-16', Buffer.from(Buffer.from(good, 'base64').toString(), 'utf16le').toString('base64'), 'bad_xml'],
    [
      'deflated as for the redirect binding',
      Buffer.from(Bun.deflateSync(Buffer.from(good, 'base64'))).toString('base64'),
      'bad_encoding',
    ],
  ]
  for (const [what, encoded, reason] of cases)
    test(`S-26 ${what}`, () => expect<unknown>(refusal(encoded, expected)).toBe(reason))
  test('S-36 lines of 76 characters', () =>
    expect(refusal(good.replace(/.{76}/g, '$&\r\n'), expected)).toBeUndefined())
})
