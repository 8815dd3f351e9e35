import { describe, expect, test } from 'bun:test'
import { networkOf } from '#src/http/network.ts'
import { HOUR, MINUTE, SECOND } from '#src/lib/duration.ts'
import {
  afterFailure,
  checkThrottle,
  countFailure,
  passwordsFrom,
  ROW,
  secretsFrom,
  waitUntil,
} from '#src/sign-in/throttle.ts'
import { freshStore } from '#test/support/store.ts'

describe('O-35 addresses that one party is assumed to own', () => {
  test.each([
    ['192.0.2.1', '192.0.2.1'],
    ['::ffff:192.0.2.1', '192.0.2.1'],
    ['::ffff:c000:201', '192.0.2.1'],
    ['0:0:0:0:0:ffff:c000:0201', '192.0.2.1'],
    ['2001:db8:1:2:3:4:5:6', '2001:db8:1:2::/64'],
    ['2001:0DB8:0001:0002::1', '2001:db8:1:2::/64'],
    ['2001:db8:1:3::1', '2001:db8:1:3::/64'],
    ['2001:db8::1', '2001:db8:0:0::/64'],
    ['::1', '0:0:0:0::/64'],
    ['', ''],
  ])('%s is %s', (address, network) => {
    expect(networkOf(address)).toBe(network)
  })
})

test('H-23 a site is the first 48 bits of an IPv6 address', () => {
  const sites = ['2001:db8:1:2::1', '2001:db8:1:ffff::1', '2001:db8:2::1', '192.0.2.1'].map(ip =>
    networkOf(ip, 48),
  )
  expect(sites).toEqual(['2001:db8:1::/48', '2001:db8:1::/48', '2001:db8:2::/48', '192.0.2.1'])
})

test('O-35 failures in a row: no wait before the fifth, then 1 s doubling to 60 s', () => {
  const waits: number[] = []
  let row: Parameters<typeof afterFailure>[0]
  for (let failures = 1; failures <= 13; failures++) {
    row = { key: 'k', ...afterFailure(row, ROW, 1_000_000) }
    waits.push(waitUntil(row.blocked_until, ROW, 1_000_000) / SECOND)
  }
  expect(waits).toEqual([0, 0, 0, 0, 1, 2, 4, 8, 16, 32, 60, 60, 60])
})

test('O-35 failures in a row are forgotten a day after the last one', () => {
  const row = { key: 'k', ...afterFailure(undefined, ROW, 0) }
  expect(afterFailure(row, ROW, ROW.forget_after - 1).failures).toBe(2)
  expect(afterFailure(row, ROW, ROW.forget_after).failures).toBe(1)
})

test('O-35 after 50 failures within 5 minutes an address waits a minute', () => {
  const { limit } = passwordsFrom('192.0.2.1')
  let row: Parameters<typeof afterFailure>[0]
  for (let failures = 1; failures < 50; failures++) row = { key: 'k', ...afterFailure(row, limit, failures) }
  expect(row?.blocked_until).toBe(0)
  expect(afterFailure(row, limit, 50).blocked_until).toBe(50 + MINUTE)
  // The window began with the first failure.
  expect(afterFailure(row, limit, 5 * MINUTE).failures).toBe(50)
  expect(afterFailure(row, limit, 5 * MINUTE + 1)).toMatchObject({
    failures: 1,
    blocked_until: 0,
  })
})

test('R-07 O-35 failures that were counted while the clock was ahead count no more', () => {
  for (const limit of [ROW, passwordsFrom('192.0.2.1').limit]) {
    const row = { key: 'k', ...afterFailure(undefined, limit, HOUR) }
    expect(row.blocked_until).toBe(0)
    expect(afterFailure(row, limit, HOUR + 1).failures).toBe(2)
    expect(afterFailure(row, limit, 0).failures).toBe(1)
  }
})

test('O-36 30 wrong secrets a minute from one address', () => {
  const { limit } = secretsFrom('192.0.2.1')
  let row: Parameters<typeof afterFailure>[0]
  for (let failures = 1; failures <= 30; failures++) row = { key: 'k', ...afterFailure(row, limit, 0) }
  expect(row?.blocked_until).toBe(MINUTE)
})

test('O-35 counts are kept over restarts, by key', async () => {
  const store = await freshStore()
  let now = 1_000_000
  const context = { clock: { now: () => now } }
  const [account, address] = [{ key: 'account:a', limit: ROW }, passwordsFrom('192.0.2.1')]
  for (let i = 0; i < 5; i++) await store.write(tx => countFailure(context, tx, [account, address]))
  const wait = (keys: Parameters<typeof checkThrottle>[2]) => store.read(q => checkThrottle(context, q, keys))
  expect(await wait([account])).toBe(SECOND)
  expect(await wait([address])).toBe(0)
  expect(await wait([{ key: 'account:b', limit: ROW }, address])).toBe(0)
  now += 600
  expect(await wait([address, account])).toBe(400)
  now += 400
  expect(await wait([account])).toBe(0)
  expect(await store.write(tx => countFailure(context, tx, [account, address]))).toEqual([6, 6])
})
