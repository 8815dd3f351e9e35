import { expect, test } from 'bun:test'
import { chargeAdminMail } from '#src/http/admin-mail-limits.ts'
import { type Charge, type ChargeKind, charge, openCharges } from '#src/http/rate-limits.ts'
import type { AppError } from '#src/lib/app-error.ts'
import { DAY, MINUTE } from '#src/lib/duration.ts'
import { hashSecret } from '#src/lib/secrets.ts'
import { startApp } from '#test/support/app.ts'
import { addClient, authorizeUrl } from '#test/support/people.ts'

/** Returns functions that charge the rate limits of a new server with a frozen clock. */
const server = () => {
  let now = 0
  const context = { clock: { now: () => now }, charges: openCharges(1) }
  /** Makes `count` charges and returns how many were accepted. */
  const taken = (count: number, ip_address: string, tenant: 'a' | 'b', device?: string) => {
    let served = 0
    for (let i = 0; i < count; i++) served += refusalOf(ip_address, tenant, device) === undefined ? 1 : 0
    return served
  }
  const refusalOf = (ip_address: string, tenant: string, device?: string, kind: ChargeKind = 'mail') => {
    try {
      const organization_id = `org_${tenant}` as const
      charge(context, { ip_address, organization_id, kind, device: device ? hashSecret(device) : undefined })
      return undefined
    } catch (error) {
      return (error as AppError).headers['retry-after']
    }
  }
  return { taken, refusalOf, advance: (ms: number) => (now += ms) }
}

test('one network spends only its own bucket, whatever the organization, and refills each second', () => {
  const { taken, refusalOf, advance } = server()
  expect([taken(60, '192.0.2.1', 'a'), taken(60, '192.0.2.1', 'b'), taken(60, '192.0.2.2', 'a')]).toEqual([
    40, 0, 40,
  ])
  expect(refusalOf('::ffff:192.0.2.1', 'a')).toBe('90')
  expect(refusalOf('192.0.2.1', 'a', undefined, 'commit')).toBeUndefined()
  advance(90_000)
  expect([taken(5, '192.0.2.1', 'a'), taken(60, '2001:db8::1', 'a'), taken(60, '2001:db8::2', 'a')]).toEqual([
    1, 40, 0,
  ])
})

test('many networks use up the bucket of one organization; a new network has its reserve, another organization all of its own', () => {
  const { taken, advance } = server()
  let spent = 0
  for (let i = 0; i < 50; i++) spent += taken(60, `198.51.100.${i}`, 'a')
  // Each of the 50 networks has 3 reserved units, and the organization has 400.
  expect(spent).toBe(550)
  expect([taken(60, '192.0.2.1', 'a'), taken(60, '192.0.2.2', 'b')]).toEqual([3, 40])
  advance(9_000)
  expect(taken(60, '192.0.2.1', 'a')).toBe(1)
})

test('H-23 the networks of one IPv6 site share one reserve, and none is refused because of the others', () => {
  const { taken } = server()
  let spent = 0
  for (let i = 0; i < 200; i++) spent += taken(3, `2001:db8:0:${i.toString(16)}::1`, 'a')
  // The whole site has 3 reserved units, and the organization has 400.
  expect(spent).toBe(403)
  expect([taken(60, '2001:db8:0:ffff::1', 'b'), taken(3, '2001:db8:1::1', 'a')]).toEqual([40, 3])
})

test('a known device has its own bucket', () => {
  const { taken } = server()
  for (let i = 0; i < 50; i++) taken(60, `198.51.100.${i}`, 'a')
  expect([taken(60, '198.51.100.1', 'a', 'laptop'), taken(60, '198.51.100.1', 'a', 'phone')]).toEqual([
    40, 40,
  ])
  expect(taken(60, '198.51.100.1', 'a', 'laptop')).toBe(0)
})

test('RUN-53 one of four workers grants a quarter, at least one unit, and Retry-After is the wait for its share', () => {
  const context = { clock: { now: () => 0 }, charges: openCharges(4) }
  const ask = (kind: ChargeKind) =>
    charge(context, { ip_address: '198.51.100.1', organization_id: 'org_a', kind })
  for (let i = 0; i < 75; i++) ask('hash')
  let refusal: unknown
  try {
    ask('hash')
  } catch (error) {
    refusal = error
  }
  expect(refusal).toMatchObject({ code: 'rate_limited', headers: { 'retry-after': '2' } })
  ask('mail')
})

test.each([1, 2, 4, 64])(
  'RUN-53 with %d workers a download is allowed, and one organization does not stop the mail of another to a mailbox',
  workers => {
    const context = { clock: { now: () => 0 }, charges: openCharges(workers) }
    const tx = { once: <T>(_: string, effect: () => T): T => effect() }
    const mail = (organization_id: 'org_a' | 'org_b') =>
      chargeAdminMail(context, tx, { email: 'bob@example.com', organization_id, name: 'invitation' })
    const refusal = { code: 'rate_limited' }
    expect(() => {
      for (let i = 0; i < 7; i++) mail('org_a')
    }).toThrow(expect.objectContaining(refusal))
    mail('org_b')
    charge(context, { ip_address: '198.51.100.1', organization_id: 'org_a', kind: 'commit', units: 20 })
  },
)

test.each([1, 4, 17, 64])(
  'FED-17 RUN-53 with %d workers, other networks do not use up the reserve of a network for an answer by POST',
  workers => {
    const context = { clock: { now: () => 0 }, charges: openCharges(workers) }
    const post = (ip_address: string) =>
      charge(context, { ip_address, organization_id: 'org_a', kind: 'stored_answer', units: 16 })
    const refusal = expect.objectContaining({ code: 'rate_limited' })
    for (let i = 0; i < 20; i++)
      expect(() => {
        for (;;) post(`192.0.2.${i}`)
      }).toThrow(refusal)
    post('198.51.100.9')
  },
)

test('notices about webhooks do not use up the budget for invitations and resets', () => {
  const context = { clock: { now: () => 0 }, charges: openCharges(1) }
  const tx = { once: <T>(_: string, effect: () => T): T => effect() }
  const mail = (kind: 'admin-mail' | 'webhook-notice') =>
    chargeAdminMail(context, tx, { email: 'bob@example.com', organization_id: 'org_a', name: '' }, kind)
  for (const kind of ['webhook-notice', 'admin-mail'] as const) {
    for (let i = 0; i < 6; i++) mail(kind)
    expect(() => mail(kind)).toThrow(expect.objectContaining({ code: 'rate_limited' }))
  }
})

test('organizations that write to one mailbox all day share its budget', () => {
  let now = 0
  const context = { clock: { now: () => now }, charges: openCharges(1) }
  const tx = { once: <T>(_: string, effect: () => T): T => effect() }
  let sent = 0
  for (; now < DAY; now += 10 * MINUTE)
    for (let i = 0; i < 10; i++) {
      try {
        chargeAdminMail(context, tx, { email: 'bob@example.com', organization_id: `org_${i}`, name: '' })
        sent++
      } catch {}
    }
  // Each organization has a reserve of 2 units and gains 2 units an hour. All organizations together share 6
  // further units and gain 6 further units an hour.
  expect(sent).toBeLessThanOrEqual(10 * (2 + 24 * 2) + 6 + 24 * 6)
  expect(sent).toBeGreaterThan(10 * 24 * 2)
})

/** Returns a function that charges POSTs of a network until one is refused, and returns their number. */
const poster = () => {
  const context = { clock: { now: () => 0 }, charges: openCharges(1) }
  return (ip_address: string, organization_id: `org_${string}`, most: number, work: Partial<Charge>) => {
    let stored = 0
    try {
      for (; stored < most; stored++)
        charge(context, { ip_address, organization_id, kind: 'stored_answer', ...work })
    } catch {}
    return stored
  }
}

test('H-21 stored POSTs are limited across networks and organizations too', () => {
  const post = poster()
  let kept = 0
  for (let i = 0; i < 1_000; i++)
    kept += post(`198.51.${i >> 8}.${i & 255}`, `org_${i}`, 1, { units: 16 * 1_024 }) * 16 * 1_024
  expect([kept, post('203.0.113.1', 'org_x', 1, { units: 257 })]).toEqual([256 * 1_024, 0])
  for (let i = 0; i < 2_000; i++)
    kept += post(`192.0.${i >> 8}.${i & 255}`, `org_${i}`, 1, { units: 256 }) * 256
  expect([kept, post('203.0.113.1', 'org_x', 1, {})]).toEqual([2 * 256 * 1_024, 0])
})

test.each([
  ['large answers', { units: 256 }, 16],
  ['small answers', { units: 16, shared_units: 1 }, 1_024],
  ['authorization requests', { units: 16, kind: 'stored_post' }, 1_024],
] as const)(
  'H-23 %s by POST of a site and of many networks do not stop the answers of another organization',
  (_name, work, left) => {
    const post = poster()
    for (const organization_id of ['org_a', 'org_b'] as const)
      for (let i = 0; i < 20; i++) {
        post(`2001:db8:1:${organization_id.slice(4)}${i}::1`, organization_id, 2_000, work)
        post(`192.0.2.${i}`, organization_id, 2_000, work)
      }
    expect(post('203.0.113.8', 'org_c', 2_000, { units: 16, shared_units: 1 })).toBe(left)
  },
)

test('H-23 a network with an unused reserve can post while one of the two shared budgets is left', () => {
  const post = poster()
  for (let i = 0; i < 1_024; i++) post(`192.0.${i >> 8}.${i & 255}`, 'org_a', 1, { units: 256 })
  expect(post('203.0.113.1', 'org_b', 1, { units: 256 })).toBe(1)
  for (let i = 0; i < 16; i++) post(`198.51.100.${i}`, `org_${i}`, 64, { units: 256 })
  expect(post('203.0.113.1', 'org_b', 1, { units: 256 })).toBe(0)
})

test('O-57 a network can store a limited number of pending logins; other networks and other servers are not affected, and it can begin again a second later', async () => {
  const app = await startApp()
  const other = await startApp()
  for (const each of [app, other]) await addClient(each, 'shop')
  await app.events()
  const begin = (ip: string, server = app) =>
    server.call(authorizeUrl('shop'), { ip, headers: { accept: 'text/html' } })
  const pending = async () =>
    (await app.context.store.read(async q => q.select().from(q.tables.authorization_requests))).length

  let refused = 0
  for (let i = 0; i < 1_010; i++) refused += (await begin('2001:db8::1')).status === 429 ? 1 : 0
  expect([refused, await pending()]).toEqual([10, 1_000])

  const answer = await begin('2001:db8::2')
  expect([answer.status, answer.headers.get('retry-after'), answer.headers.get('location')]).toEqual([
    429,
    '1',
    null,
  ])
  expect((await begin('2001:db8:0:1::1')).status).toBe(200)
  expect((await begin('2001:db8::1', other)).status).toBe(200)
  app.clock.advance(1_000)
  expect((await begin('2001:db8::1')).status).toBe(200)
  expect(await app.events()).toEqual([])
}, 60_000)
