import { describe, expect, test } from 'bun:test'
import { createPrivateKey } from 'node:crypto'
import { eq } from 'drizzle-orm'
import {
  createLocalJWKSet,
  decodeProtectedHeader,
  exportJWK,
  generateKeyPair,
  type JSONWebKeySet,
  jwtVerify,
} from 'jose'
import type { SigningKeys } from '#src/context.ts'
import { AppError } from '#src/lib/app-error.ts'
import { DAY, HOUR, MINUTE } from '#src/lib/duration.ts'
import type { SigningAlg } from '#src/protocol/oidc/signing-algs.ts'
import { signingAlgs } from '#src/protocol/oidc/signing-algs.ts'
import { StorageError, unavailable } from '#src/storage/errors.ts'
import { type KeyRow, listKeys } from '#src/tokens/key-store.ts'
import { openKeys } from '#src/tokens/keys.ts'
import { keyStates, pinKey } from '#src/tokens/manual-keys.ts'
import { ensureKey, revokeKey, rotateDueKeys, rotateKeys } from '#src/tokens/rotation.ts'
import { START } from '#test/support/app.ts'
import { keyBase } from './key-base.ts'

type Base = Awaited<ReturnType<typeof keyBase>>

const claims = { sub: 'somebody' }
const open = async () => {
  const base = await keyBase()
  const keys = await openKeys(base)
  await keys.ready()
  return { base, keys }
}
const keySet = async (keys: SigningKeys): Promise<JSONWebKeySet> => JSON.parse((await keys.published()).body)
const kids = async (keys: SigningKeys, alg: SigningAlg = 'ES256'): Promise<(string | undefined)[]> =>
  (await keySet(keys)).keys.filter(key => key.alg === alg).map(({ kid }) => kid)
const signer = async (keys: SigningKeys, alg: SigningAlg = 'ES256'): Promise<string | undefined> =>
  decodeProtectedHeader(await keys.sign(claims, alg, 'JWT')).kid
const rows = ({ store }: Base): Promise<KeyRow[]> => store.read(listKeys)
const stored = async (base: Base): Promise<unknown[][]> =>
  (await rows(base))
    .filter(({ alg }) => alg === 'ES256')
    .map(({ id, active_at, retired_at, expires_at }) => [id, active_at, retired_at, expires_at])
const changes = ({ store }: Base) =>
  store.read(async q => {
    const events = await q.select().from(q.tables.events)
    return events.map(({ type, target_id, metadata }) => ({ type, target_id, metadata }))
  })

describe('the key set', () => {
  test('TOK-20 a first start makes one ES256 and one RS256 key and publishes their public halves alone', async () => {
    const { keys } = await open()
    const set = await keySet(keys)
    expect(set.keys.map(({ alg, kty, use }) => ({ alg, kty, use }))).toEqual([
      { alg: 'RS256', kty: 'RSA', use: 'sig' },
      { alg: 'ES256', kty: 'EC', use: 'sig' },
    ])
    const members = set.keys.map(key => Object.keys(key).sort())
    expect(members).toEqual([
      ['alg', 'e', 'kid', 'kty', 'n', 'use'],
      ['alg', 'crv', 'kid', 'kty', 'use', 'x', 'y'],
    ])
  })

  test('a later start finds the same keys', async () => {
    const { base, keys } = await open()
    const again = await openKeys(base)
    expect(await again.published()).toEqual(await keys.published())
  })

  test('a signature of every algorithm verifies with the key set, and with no other key', async () => {
    const { keys } = await open()
    for (const alg of signingAlgs) {
      const token = await keys.sign(claims, alg, 'at+jwt')
      const set = await keySet(keys)
      const { payload, protectedHeader } = await jwtVerify(token, createLocalJWKSet(set))
      expect(payload).toEqual(claims)
      expect(protectedHeader).toEqual({ alg, typ: 'at+jwt', kid: expect.stringMatching(/^key_/) })
      expect(set.keys.find(({ kid }) => kid === protectedHeader.kid)?.alg).toBe(alg)
      expect(await keys.open(token)).toEqual({ alg, typ: 'at+jwt', claims })
    }
  })

  test('the key of another algorithm is published when requested, before it signs', async () => {
    const { base, keys } = await open()
    const before = (await keys.published()).etag
    await ensureKey(base, 'ES384')
    await ensureKey(base, 'ES384')
    const published = await kids(keys, 'ES384')
    expect(published).toHaveLength(1)
    expect((await keys.published()).etag).not.toBe(before)
    expect(await signer(keys, 'ES384')).toBe(published[0])
  })

  test('concurrent tokens for a key that does not exist yet use one key', async () => {
    const { base, keys } = await open()
    const signers = await Promise.all(Array.from({ length: 8 }, () => signer(keys, 'ES512')))
    expect(new Set(signers).size).toBe(1)
    expect((await rows(base)).filter(({ alg }) => alg === 'ES512')).toHaveLength(1)
  })

  test('a key made by another copy is used before its notification arrives', async () => {
    const base = await keyBase()
    const copy = await openKeys({ ...base, store: { ...base.store, onChange: () => {} } })
    expect((await keySet(copy)).keys.map(({ alg }) => alg)).toEqual(['RS256', 'ES256'])
    await ensureKey(base, 'ES384')
    const [made] = (await rows(base)).filter(({ alg }) => alg === 'ES384')
    expect(await signer(copy, 'ES384')).toBe(made?.id)
  })
})

test('an outage of the database leaves the key set as it was, and ends with the next read', async () => {
  const base = await keyBase()
  let isDown = false
  const lost = Object.assign(new Error('lost'), { code: 'ERR_POSTGRES_CONNECTION_CLOSED' })
  const read: typeof base.store.read = work =>
    isDown ? Promise.reject(unavailable(lost)) : base.store.read(work)
  const keys = await openKeys({ ...base, store: { ...base.store, read } })
  await keys.ready()
  const token = await keys.sign(claims, 'ES256', 'JWT')
  const before = await keys.published()
  isDown = true
  base.touched()
  expect(await keys.published()).toEqual(before)
  await expect(keys.open(token)).rejects.toMatchObject({ status: 503 })
  isDown = false
  const [old] = await kids(keys)
  await revokeKey(base, old ?? '')
  expect(await kids(keys)).not.toContain(old)
})

describe('at rest', () => {
  test('O-62 private keys are sealed: the row holds no readable key', async () => {
    const { base } = await open()
    for (const { private_key, public_jwk } of await rows(base)) {
      expect(() => createPrivateKey({ key: private_key, format: 'der', type: 'pkcs8' })).toThrow()
      expect(Object.keys(public_jwk)).not.toContain('d')
    }
  })

  const overwrite = (base: Base, id: KeyRow['id'], private_key: Buffer) =>
    base.store.write(async tx => {
      const { signing_keys } = tx.tables
      await tx.update(signing_keys).set({ private_key }).where(eq(signing_keys.id, id))
    })

  test('R-06 a flipped byte is detected, and the key named', async () => {
    const { base } = await open()
    const [key] = await rows(base)
    if (!key) throw new Error('no key')
    const flipped = Buffer.from(key.private_key)
    flipped.writeUInt8(flipped.readUInt8(20) ^ 1, 20)
    await overwrite(base, key.id, flipped)
    const failure = openKeys(base)
    await expect(failure).rejects.toBeInstanceOf(StorageError)
    await expect(failure).rejects.toThrow(key.id)
  })

  test('R-06 a key in the row of another is detected', async () => {
    const { base } = await open()
    await ensureKey(base, 'ES384')
    const [one, other] = await rows(base)
    if (!one || !other) throw new Error('two keys')
    await overwrite(base, one.id, other.private_key)
    await expect(openKeys(base)).rejects.toBeInstanceOf(StorageError)
  })
})

test('a key that is pinned under the id of another replaces it, also where its tokens were verified', async () => {
  const { base, keys } = await open()
  const pin = async () => {
    const pair = await generateKeyPair('ES256', { extractable: true })
    await pinKey(base, { ...(await exportJWK(pair.privateKey)), kid: 'test' } as JsonWebKey)
    return keys.sign(claims, 'ES256', 'at+jwt')
  }
  const old = await pin()
  expect(await keys.open(old)).toBeDefined()
  const token = await pin()
  expect((await jwtVerify(token, createLocalJWKSet(await keySet(keys)))).payload).toEqual(claims)
  expect(await keys.open(token)).toBeDefined()
  expect(await keys.open(old)).toBeUndefined()
})

describe('rotation', () => {
  test('R-11 the next key is published 15 minutes before it signs, the old key until its last token expires', async () => {
    const { base, keys } = await open()
    const [old] = await kids(keys)
    await rotateKeys(base)
    const [next, ...rest] = await kids(keys)
    expect(rest).toEqual([old])
    expect(next).not.toBe(old)
    base.advance(15 * MINUTE - 1)
    expect(await signer(keys)).toBe(old)
    const last = await keys.sign(claims, 'ES256', 'JWT')
    base.advance(1)
    expect(await signer(keys)).toBe(next)
    expect(await keys.open(last)).toBeDefined()
    base.advance(DAY)
    expect(await kids(keys)).toEqual([next, old])
    expect(await keys.open(last)).toBeDefined()
    base.advance(10 * MINUTE)
    expect(await kids(keys)).toEqual([next])
    expect(await keys.open(last)).toBeUndefined()
    expect(await signer(keys)).toBe(next)
  })

  test('a key that has left the key set verifies hints for a year, until it is removed or revoked', async () => {
    const { base, keys } = await open()
    const [first] = await kids(keys)
    const [old, revoked] = [await keys.sign(claims, 'ES256', 'JWT'), await keys.sign(claims, 'RS256', 'JWT')]
    await rotateKeys(base)
    base.advance(15 * MINUTE + DAY + 10 * MINUTE)
    await revokeKey(base, decodeProtectedHeader(revoked).kid ?? '')
    base.advance(365 * DAY - 1)
    await rotateDueKeys(base, 400 * DAY)
    expect(await keys.open(old, 'any')).toEqual({ alg: 'ES256', typ: 'JWT', claims })
    expect([await keys.open(old), await keys.open(revoked, 'any')]).toEqual([undefined, undefined])
    expect((await keyStates(base)).map(({ kid }) => kid)).not.toContain(first ?? '')
    base.advance(1)
    await rotateDueKeys(base, 400 * DAY)
    expect((await rows(base)).map(({ id }) => id)).not.toContain(first)
    expect(await keys.open(old, 'any')).toBeUndefined()
  })

  test('R-11 every algorithm in use gets a next key, and asking twice makes one', async () => {
    const { base, keys } = await open()
    await rotateKeys(base)
    await rotateKeys(base)
    expect(await kids(keys)).toHaveLength(2)
    expect(await kids(keys, 'RS256')).toHaveLength(2)
    expect(await rows(base)).toHaveLength(4)
    expect(await changes(base)).toEqual([
      { type: 'admin.settings_changed', target_id: 'signing_keys', metadata: { action: 'rotated' } },
    ])
  })

  test('a key that has signed for 90 days is replaced automatically, a younger key is not', async () => {
    const { base, keys } = await open()
    const [old] = await kids(keys)
    base.advance(90 * DAY - 1)
    await rotateDueKeys(base, 90 * DAY)
    expect(await kids(keys)).toEqual([old])
    base.advance(1)
    await rotateDueKeys(base, 90 * DAY)
    await rotateDueKeys(base, 90 * DAY)
    expect(await kids(keys)).toHaveLength(2)
    base.advance(15 * MINUTE)
    await rotateDueKeys(base, 90 * DAY)
    expect(await kids(keys)).toHaveLength(2)
    expect(await signer(keys)).not.toBe(old)
    expect(await changes(base)).toEqual([])
  })

  test('R-07 a key that was published while the clock was ahead is the next key, and rotation goes on', async () => {
    const { base, keys } = await open()
    base.advance(365 * DAY)
    await rotateDueKeys(base, 90 * DAY)
    base.advance(-365 * DAY)
    const [next, old] = await kids(keys)
    const signed = await keys.sign(claims, 'ES256', 'JWT')
    await rotateDueKeys(base, 90 * DAY)
    const active_at = START + 15 * MINUTE
    const retired_at = active_at + 365 * DAY
    expect(await stored(base)).toEqual([
      [old, START, retired_at, retired_at + DAY + 10 * MINUTE],
      [next, active_at, null, null],
    ])
    expect(await signer(keys)).toBe(old)
    base.advance(15 * MINUTE)
    expect(await signer(keys)).toBe(next)
    expect(await keys.open(signed)).toBeDefined()
    base.advance(90 * DAY)
    await rotateDueKeys(base, 90 * DAY)
    const ends = [active_at + 90 * DAY + 15 * MINUTE, active_at + 91 * DAY + 25 * MINUTE]
    expect(await stored(base)).toEqual([
      [old, START, ...ends],
      [next, active_at, ...ends],
      [expect.stringMatching(/^key_/), ends[0], null, null],
    ])
    expect(await changes(base)).toEqual([])
  })

  test('R-07 a first key that was made while the clock was ahead is rotated after its 90 days', async () => {
    const base = await keyBase()
    base.advance(365 * DAY)
    const keys = await openKeys(base)
    await keys.ready()
    base.advance(-365 * DAY)
    await rotateDueKeys(base, 90 * DAY)
    base.advance(90 * DAY + 15 * MINUTE)
    await rotateDueKeys(base, 90 * DAY)
    expect(await kids(keys)).toHaveLength(2)
  })

  test.each([2, 91, 200, 7305])('R-07 a clock that is %d days behind withdraws no key', async days => {
    const { base, keys } = await open()
    for (let round = 0; round < 3; round++) {
      base.advance(90 * DAY)
      await rotateDueKeys(base, 90 * DAY)
    }
    const before = await keys.sign(claims, 'ES256', 'JWT')
    base.advance(HOUR)
    const after = await keys.sign(claims, 'ES256', 'JWT')
    const ends = async () => (await rows(base)).map(key => [key.id, key.retired_at, key.expires_at])
    const kept = [await signer(keys), await ends()]
    base.advance(-days * DAY)
    for (let minute = 0; minute < 20; minute++) {
      await rotateDueKeys(base, 90 * DAY)
      base.advance(MINUTE)
    }
    base.advance(days * DAY)
    expect([await signer(keys), await ends()]).toEqual(kept)
    expect(await keys.open(before)).toBeDefined()
    await rotateDueKeys(base, 90 * DAY)
    expect(await keys.open(after)).toBeDefined()
    expect(await changes(base)).toEqual([])
  })

  test('R-07 a clock that steps back to an hour before the keys were made leaves them usable', async () => {
    const { base, keys } = await open()
    const token = await keys.sign(claims, 'ES256', 'JWT')
    base.advance(-HOUR)
    expect(await keys.open(token)).toBeDefined()
    expect(await keys.open(await keys.sign(claims, 'RS256', 'JWT'))).toBeDefined()
  })

  test('a rotation or revocation by another process takes effect with its commit', async () => {
    const { base, keys } = await open()
    const [old] = await kids(keys)
    const token = await keys.sign(claims, 'ES256', 'JWT')
    await revokeKey(base.elsewhere, old ?? '')
    base.touched()
    expect(await kids(keys)).not.toContain(old)
    expect(await keys.open(token)).toBeUndefined()
  })
})

describe('R-12 emergency revocation', () => {
  test('R-12 the key is withdrawn and replaced at once, and its tokens are refused, verified before or not', async () => {
    const { base, keys } = await open()
    const [old] = await kids(keys)
    const token = await keys.sign(claims, 'ES256', 'at+jwt')
    expect(await keys.open(token)).toBeDefined()
    await revokeKey(base, old ?? '')
    expect(await kids(keys)).toEqual([expect.not.stringContaining(old ?? '')])
    expect(await keys.open(token)).toBeUndefined()
    expect(await keys.open(await keys.sign(claims, 'ES256', 'at+jwt'))).toBeDefined()
    expect(await changes(base)).toEqual([
      {
        type: 'admin.settings_changed',
        target_id: 'signing_keys',
        metadata: { action: 'revoked', key_id: old },
      },
    ])
  })

  test('R-12 a published next key takes over at once', async () => {
    const { base, keys } = await open()
    await rotateKeys(base)
    const [next, old] = await kids(keys)
    await revokeKey(base, old ?? '')
    expect(await kids(keys)).toEqual([next])
    expect(await signer(keys)).toBe(next)
  })

  test('R-12 when the next key is revoked, the current key continues', async () => {
    const { base, keys } = await open()
    await rotateKeys(base)
    const [next, old] = await kids(keys)
    await revokeKey(base, next ?? '')
    base.advance(3 * DAY)
    expect(await kids(keys)).toEqual([old])
    expect(await signer(keys)).toBe(old)
  })

  test('R-12 revoking a key that no longer signs does not affect the others', async () => {
    const { base, keys } = await open()
    await rotateKeys(base)
    const [second, first] = await kids(keys)
    base.advance(15 * MINUTE)
    await rotateKeys(base)
    const [third] = await kids(keys)
    await revokeKey(base, first ?? '')
    expect(await kids(keys)).toEqual([third, second])
    expect(await signer(keys)).toBe(second)
    base.advance(15 * MINUTE)
    expect(await signer(keys)).toBe(third)
  })

  test('an unknown key is not found, and nothing is recorded', async () => {
    const { base } = await open()
    const failure = revokeKey(base, 'key_unknown')
    await expect(failure).rejects.toBeInstanceOf(AppError)
    await expect(failure).rejects.toMatchObject({ code: 'not_found' })
    await failure.catch(() => {})
    expect(await changes(base)).toEqual([])
  })
})
