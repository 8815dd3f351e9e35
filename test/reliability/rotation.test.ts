import { expect, test } from 'bun:test'
import { createLocalJWKSet, type JSONWebKeySet, jwtVerify } from 'jose'
import { createVerifier } from '#src/resource-server/index.ts'
import { startGatehouse } from '#src/testing/process.ts'
import { EXECUTABLE } from '#test/support/executable.ts'
import { headerOf } from '#test/support/tokens.ts'

const MINUTE = 60_000
const HOURS = 4
const PER_MINUTE = 10

/** Verifies tokens with a key set that is up to ten minutes old. An unknown key causes no request. */
const cachingVerifier = (url: string, now: () => number) => {
  let fetched = Number.NEGATIVE_INFINITY
  let keys: JSONWebKeySet = { keys: [] }
  return async (token: string): Promise<void> => {
    if (now() - fetched >= 10 * MINUTE) {
      keys = await (await fetch(`${url}/.well-known/jwks.json`)).json()
      fetched = now()
    }
    await jwtVerify(token, createLocalJWKSet(keys), {
      issuer: url,
      audience: 'dev-service',
      currentDate: new Date(now()),
    })
  }
}

test('R-11 keys rotate under traffic, and no verifier with a ten-minute key set cache refuses a token', async () => {
  await using server = await startGatehouse({ executable: EXECUTABLE })
  let time = Date.UTC(2030, 0, 1)
  const now = () => time
  await server.clock.freeze()
  await server.clock.set(time)
  const verifier = createVerifier({ issuer: server.url, audience: 'dev-service', now })
  const strict = cachingVerifier(server.url, now)
  const kids = new Set<string>()
  const alive: { token: string; until: number }[] = []
  let failed = 0
  let verified = 0
  for (let minute = 0; minute < HOURS * 60; minute++) {
    if (minute % 40 === 23) await server.keys.publish('ES256')
    const tokens = await Promise.all(Array.from({ length: PER_MINUTE }, () => server.mint({ user: 'alice' })))
    for (const { token } of tokens) {
      kids.add(headerOf(token).kid)
      alive.push({ token, until: time + 59 * MINUTE })
    }
    const sample = [
      ...tokens.map(({ token }) => token),
      ...alive.filter((_, i) => i % 25 === minute % 25).map(({ token }) => token),
    ]
    const results = await Promise.allSettled(sample.flatMap(token => [verifier.verify(token), strict(token)]))
    failed += results.filter(({ status }) => status === 'rejected').length
    verified += results.length
    time += MINUTE
    await server.clock.set(time)
    while (alive[0] && alive[0].until < time) alive.shift()
  }
  expect(kids.size).toBe((HOURS * 60) / 40 + 1)
  expect(verified).toBeGreaterThan(5_000)
  expect(failed).toBe(0)
}, 120_000)
