/**
 * Cases of the next request for the key set: after a failed one, and after one that has not found the kid of
 * a token.
 */
import { deepStrictEqual as same } from 'node:assert/strict'
import { accepted, type Case, dead, held, NOW, refused } from './world.ts'

const SECOND = 1_000
const MINUTE = 60 * SECOND

export const outages: Case[] = [
  {
    name: 'while the issuer is down each pause between two attempts is twice as long, up to a minute',
    async run({ clock, issuer, route }) {
      const ask = await route()
      const token = await issuer.token({ exp: NOW + 86_400 })
      accepted(await ask(token))
      issuer.intercept = dead
      clock.now += 10 * MINUTE
      const attempts: number[] = []
      for (let second = 0; second < 300; second++) {
        const before = issuer.requests.length
        accepted(await ask(token))
        if (issuer.requests.length > before) attempts.push(second)
        clock.now += SECOND
      }
      same(attempts, [0, 1, 3, 7, 15, 31, 63, 123, 183, 243])
    },
  },
  {
    name: 'Retry-After is the rest of the pause in whole seconds, rounded up',
    async run({ clock, issuer, route }) {
      const ask = await route()
      const token = await issuer.token()
      issuer.intercept = dead
      const waits: number[] = []
      for (const ms of [0, SECOND, 500, 500]) {
        clock.now += ms
        const reply = await ask(token)
        refused(reply, 'jwks_unavailable')
        waits.push(reply.retryAfter)
      }
      same([waits, issuer.requests.length], [[1, 2, 2, 1], 2])
    },
  },
  {
    name: 'a clock that is set back ends the pause after a failed attempt',
    async run({ clock, issuer, route }) {
      const ask = await route()
      const token = await issuer.token({ iat: 0, nbf: 0 })
      issuer.intercept = dead
      refused(await ask(token), 'jwks_unavailable')
      issuer.intercept = undefined
      clock.now -= 60 * MINUTE
      accepted(await ask(token))
    },
  },
  {
    name: 'a request for the keys that was suspended beyond its time limit is not waited for',
    async run({ clock, issuer, route }) {
      const ask = await route()
      const token = await issuer.token()
      const suspended = held()
      issuer.intercept = suspended.intercept
      const first = ask(token)
      while (issuer.requests.length === 0) await new Promise(resolve => setTimeout(resolve, 0))
      issuer.intercept = undefined
      clock.now += 5 * SECOND + 1
      accepted(await ask(token))
      same(issuer.requests.length, 2)
      suspended.release()
      accepted(await first)
    },
  },
  {
    name: 'an unknown kid is 503 while the issuer is down, and causes no request in the pause',
    async run({ clock, issuer, route }) {
      const ask = await route()
      accepted(await ask(await issuer.token()))
      issuer.intercept = dead
      for (const [ms, requests] of [
        [0, 2],
        [SECOND - 1, 2],
        [1, 3],
      ] as const) {
        clock.now += ms
        refused(await ask(await issuer.badToken('unknown-kid')), 'jwks_unavailable')
        same(issuer.requests.length, requests)
      }
    },
  },
  {
    name: 'a kid that was not published is looked for again after 10 s, or when the clock was set back',
    async run({ clock, issuer, route }) {
      for (const [ms, wait] of [
        [9_999, 1],
        [0, -60 * MINUTE],
      ] as const) {
        const kid = `late ${wait}`
        const ask = await route()
        refused(await ask(await issuer.token({}, { kid })), 'unknown_key')
        await issuer.rotate({ kid })
        const token = await issuer.token({ iat: 0, nbf: 0 })
        clock.now += ms
        refused(await ask(token), 'unknown_key')
        clock.now += wait
        accepted(await ask(token))
      }
    },
  },
  {
    name: 'a key that was published during a request for the keys is found by the next request',
    async run({ clock, issuer, route }) {
      const ask = await route()
      accepted(await ask(await issuer.token()))
      const keys = issuer.published
      const slow = held(() => Response.json({ keys }))
      issuer.intercept = slow.intercept
      clock.now += 8 * MINUTE
      accepted(await ask(await issuer.token()))
      issuer.intercept = undefined
      await issuer.rotate()
      const rotated = ask(await issuer.token())
      slow.release()
      accepted(await rotated)
      same(issuer.requests.length, 3)
    },
  },
]
