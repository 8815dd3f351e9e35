import { describe, expect, test } from 'bun:test'
import { createHmac } from 'node:crypto'
import { AppError } from '#src/lib/app-error.ts'
import { openCursor, sealCursor } from '#src/lib/cursor.ts'
import { parseDuration } from '#src/lib/duration.ts'
import { bareId, looksLikeId, newId } from '#src/lib/ids.ts'
import { masterKey } from '#src/lib/master-key.ts'
import { exceeding, expand, permissions } from '#src/lib/permission.ts'
import { hashSecret, newSecret, sameHash } from '#src/lib/secrets.ts'
import { fold, isPlain, normalize } from '#src/lib/text.ts'

describe('ids', () => {
  test('sort by creation, even when the clock steps back', () => {
    const ids = [5_000_000, 5_000_000, 4_000_000, 6_000_000].map(now => newId('usr', now))
    expect(ids).toEqual([...ids].sort())
    expect(new Set(ids).size).toBe(4)
  })

  test('sort by creation, however many one millisecond has and whatever other ids come between', () => {
    const ids = Array.from({ length: 10_000 }, () => {
      Bun.randomUUIDv7('hex', 1)
      return newId('usr', 7_000_000)
    })
    expect(ids).toEqual([...ids].sort())
  })

  test('API-21 consist of a prefix and a UUID version 7', () => {
    expect(newId('sess', 1)).toMatch(
      /^sess_[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/,
    )
    expect(bareId('org_default')).toBe('default')
  })

  test.each(['usr_1', 'org_default', '018bcfe5-6814-7ebd-a2a8-0d58e3ed5fa5', 'GRP_x'.toLowerCase()])(
    '%s looks like an id',
    text => {
      expect(looksLikeId(text)).toBe(true)
    },
  )

  test.each(['user', 'acme', 'organic_shop', 'role-model'])('%s does not look like an id', text => {
    expect(looksLikeId(text)).toBe(false)
  })
})

test.each([
  ['5m', 300_000],
  ['12h', 43_200_000],
  ['7d', 604_800_000],
  ['2w', 1_209_600_000],
  ['0h', undefined],
  ['1.5h', undefined],
  ['-1h', undefined],
  ['h', undefined],
  ['12', undefined],
  ['12h ', undefined],
  ['٣h', undefined],
])('duration %s', (text, expected) => {
  expect(parseDuration(text)).toBe(expected)
})

describe('permissions', () => {
  test('API-20 * and the scope admin include all, any other name only itself or nothing', () => {
    expect(expand(['*']).size).toBe(permissions.length)
    expect(expand(['admin']).size).toBe(permissions.length)
    expect([...expand(['users:read', 'openid', 'users:*'])]).toEqual(['users:read'])
  })

  test('exceeding returns the wanted permissions that are not held; profile permissions are free', () => {
    expect(exceeding(expand(['users:read']), ['users:read', 'profile:update', 'openid'])).toEqual([])
    expect(exceeding(expand(['users:read']), ['users:delete', 'users:read'])).toEqual(['users:delete'])
    expect(exceeding(expand(['users:read']), ['admin']).length).toBe(permissions.length - 3)
  })
})

describe('cursors', () => {
  const key = Buffer.alloc(32, 1)

  test('are accepted for the query that they were made for', () => {
    expect(openCursor(key, sealCursor(key, ['a.b', 7, null], 'users?x'), 'users?x')).toEqual(['a.b', 7, null])
  })

  test('R-23 a changed cursor, or a cursor of another query, is refused', () => {
    const cursor = sealCursor(key, ['a', 7], 'users?x')
    const forged = `${Buffer.from('["b",7]').toString('base64url')}${cursor}`
    for (const [text, binding] of [
      [cursor, 'users?y'],
      [forged, 'users?x'],
      ['', 'users?x'],
      ['.', 'users?x'],
      ['x', 'users?x'],
      ['AAAAAA', 'users?x'],
      [cursor.slice(0, -4), 'users?x'],
      [`${cursor}AAAA`, 'users?x'],
      ['x'.repeat(10_000), 'users?x'],
    ] as const)
      expect(() => openCursor(key, text, binding)).toThrow(AppError)
  })
})

test('H-41 a cursor does not reveal its keyset, not even by its length', () => {
  const key = Buffer.alloc(32, 1)
  const cursors = [1, 123_456_789].map(seq => sealCursor(key, [1_768_478_400_000, seq], 'events'))
  for (const cursor of cursors) {
    expect(cursor).toMatch(/^[\w-]+$/)
    expect(Buffer.from(cursor, 'base64url').toString('latin1')).not.toMatch(/\d{6}/)
  }
  expect(new Set(cursors.map(({ length }) => length)).size).toBe(1)
  expect(sealCursor(key, [1], 'events')).not.toBe(sealCursor(key, [1], 'events'))
})

describe('the master key', () => {
  const master = masterKey(Buffer.alloc(32, 1))
  const sealed = master.seal(Buffer.from('private'), 'key_1')

  test('decrypts what it encrypted', () => {
    expect(master.open(sealed, 'key_1').toString()).toBe('private')
    expect(sealed.includes('private')).toBe(false)
  })

  test('refuses another label, another key and any flipped byte', () => {
    expect(() => master.open(sealed, 'key_2')).toThrow()
    expect(() => masterKey(Buffer.alloc(32, 2)).open(sealed, 'key_1')).toThrow()
    for (let i = 0; i < sealed.length; i++) {
      const flipped = Buffer.from(sealed)
      flipped[i] = (flipped[i] ?? 0) ^ 1
      expect(() => master.open(flipped, 'key_1')).toThrow()
    }
  })

  test('derives a separate key for each purpose', () => {
    expect(master.derive('cursor').equals(master.derive('csrf'))).toBe(false)
  })

  test('makes an independent HMAC-SHA-256 at each call', () => {
    const expected = createHmac('sha256', master.derive('csrf')).update('text').digest('base64url')
    master.hmac('csrf').update('text of another call')
    expect(master.hmac('csrf').update('text').digest('base64url')).toBe(expected)
    expect(master.hmac('cursor').update('text').digest('base64url')).not.toBe(expected)
  })
})

test('API-22 secrets have 256 bits and are compared by digest', () => {
  const secret = newSecret()
  expect(Buffer.from(secret, 'base64url').length).toBe(32)
  expect(sameHash(hashSecret(secret), hashSecret(secret))).toBe(true)
  expect(sameHash(hashSecret(secret), hashSecret(newSecret()))).toBe(false)
})

test('O-59 names are compared after NFKC and without case', () => {
  expect(fold('ＡｌＩce')).toBe('alice')
  expect(fold('İ')).not.toBe('i')
})

test('a text that composes to the maximum length is normalized, a longer one is not', () => {
  const composed = '\u0390'.repeat(512)
  const decomposed = composed.normalize('NFD')
  expect([Buffer.byteLength(composed), decomposed.length]).toEqual([1024, 1536])
  expect(normalize(decomposed, 'NFC')).toBe(composed)
  expect(normalize(`${decomposed}e\u0301`, 'NFC')).toBe(`${decomposed}e\u0301`)
})

test('O-58 control characters and lone surrogates are not plain text', () => {
  for (const text of ['a\0b', 'a\rb', '\ud800', '\u007f', '\u001b[0m']) expect(isPlain(text)).toBe(false)
  for (const text of ['Zoë', '日本', 'a\tb', 'a\nb', '👩‍👩‍👧']) expect(isPlain(text)).toBe(true)
})
