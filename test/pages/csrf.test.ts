import { describe, expect, test } from 'bun:test'
import { loadConfig } from '#src/config.ts'
import { masterKey } from '#src/lib/master-key.ts'
import { hashSecret } from '#src/lib/secrets.ts'
import { checkOrigin, issueCsrf, verifyCsrf } from '#src/pages/csrf.ts'

const context = { master: masterKey(Buffer.alloc(32, 1)) }
const [mine, other] = [hashSecret('mine'), hashSecret('other')]
const token = issueCsrf(context, 'login', mine, 'handle')

test('O-28 a token is valid for its own purpose and browser, and names its subject', () => {
  expect(verifyCsrf(context, 'login', mine, token)).toBe('handle')
})

describe('O-28 any other token is refused with 403', () => {
  const elsewhere = issueCsrf({ master: masterKey(Buffer.alloc(32, 2)) }, 'login', mine, 'handle')
  test.each([
    ['none', mine, undefined],
    ['empty', mine, ''],
    ['no MAC', mine, 'handle'],
    ['without a browser', undefined, token],
  ] as const)('%s', (_, holder, presented) => {
    expect(() => verifyCsrf(context, 'login', holder, presented)).toThrow(
      expect.objectContaining({ code: 'forbidden', status: 403 }),
    )
  })

  test.each([
    ['an empty MAC', 'login', mine, 'handle.'],
    ['of another purpose', 'consent', mine, token],
    ['of another browser', 'login', other, token],
    ['for another subject', 'login', mine, token.replace('handle', 'handel')],
    ['under another key', 'login', mine, elsewhere],
    ['longer', 'login', mine, `${token}A`],
    ['of 100 KB', 'login', mine, `handle.${'A'.repeat(100_000)}`],
  ] as const)('%s', (_, purpose, holder, presented) => {
    const retry_url = '/account?organization=acme'
    expect(() => verifyCsrf(context, purpose, holder, presented, { retry_url })).toThrow(
      expect.objectContaining({ code: 'expired', status: 403, retry_url }),
    )
  })
})

test('O-36 a token cannot be guessed: 256 bits, and changing any single bit invalidates it', () => {
  const [subject, mac = ''] = token.split('.')
  const bytes = Buffer.from(mac, 'base64url')
  expect(bytes).toHaveLength(32)
  for (let bit = 0; bit < 256; bit++) {
    const other = Buffer.from(bytes)
    other[bit >> 3] = (other[bit >> 3] ?? 0) ^ (1 << (bit & 7))
    const guess = `${subject}.${other.toString('base64url')}`
    expect(() => verifyCsrf(context, 'login', mine, guess)).toThrow(expect.objectContaining({ status: 403 }))
  }
})

describe('O-28 the origin of a POST', () => {
  const config = { ...loadConfig({}).config, url: 'https://id.example.com' }
  const check = (origin: string | null) =>
    checkOrigin(config, new Request('http://localhost', { headers: origin === null ? {} : { origin } }))
  test.each([['https://id.example.com'], [null]])('%s may post', origin => {
    expect(() => check(origin)).not.toThrow()
  })
  test.each([
    ['null'],
    ['https://evil.example'],
    ['http://id.example.com'],
    ['https://id.example.com:8443'],
    ['https://id.example.com.evil.example'],
    [''],
  ])('%s may not', origin => {
    expect(() => check(origin)).toThrow(expect.objectContaining({ code: 'forbidden', status: 403 }))
  })
})
