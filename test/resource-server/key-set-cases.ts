/**
 * Cases of the key set: when it is fetched, how long it is used, and the effect of rotation and outages. This
 * file has more than 300 lines on purpose, because it is one list.
 */
import { ok, deepStrictEqual as same } from 'node:assert/strict'
import type { VerifierOptions } from '#src/resource-server/index.ts'
import { tokenSaying } from './token-cases.ts'
import {
  accepted,
  answering,
  type Case,
  cut,
  dead,
  held,
  ISSUER,
  inWorkers,
  NOW,
  refused,
  START,
  type World,
} from './world.ts'

const MINUTE = 60_000
/** Waits until `done` returns true. Fails after 10,000 turns of the event loop. */
const settle = async (done: () => boolean) => {
  for (let turn = 0; turn < 10_000 && !done(); turn++) await new Promise(resolve => setTimeout(resolve, 0))
  ok(done(), 'did not settle')
}

export const keySets: Case[] = [
  {
    name: 'an ES256 header with an RSA key, and a key meant for another algorithm or use',
    async run({ issuer, route }) {
      const jwk = await issuer.rotate({ alg: 'RS256' })
      refused(await (await route())(await tokenSaying('ES256')({ issuer } as World)), 'algorithm_not_allowed')
      issuer.published = [{ ...jwk, alg: 'RS512' }]
      refused(await (await route())(await issuer.token()), 'algorithm_not_allowed')
      issuer.published = [{ ...jwk, use: 'enc' }]
      refused(await (await route())(await issuer.token()), 'unknown_key')
    },
  },
  {
    name: 'what is refused by its header alone costs no request',
    async run({ issuer, route }) {
      const ask = await route()
      refused(await ask(await issuer.badToken('alg-none')), 'algorithm_not_allowed')
      refused(await ask(await issuer.badToken('hs256-with-public-key')), 'algorithm_not_allowed')
      refused(await ask(await issuer.token({}, { jku: 'https://evil.example' })), 'token_malformed')
      refused(await ask(await issuer.token({}, { typ: 'logout+jwt' })), 'token_type')
      refused(await ask('a.b'), 'token_malformed')
      same(issuer.requests, [])
    },
  },
  {
    name: 'SDK-04 50 parallel cold requests make one fetch',
    async run({ issuer, route }) {
      const ask = await route()
      const token = await issuer.token()
      same(issuer.requests.length, 0)
      for (const reply of await Promise.all(Array.from({ length: 50 }, () => ask(token)))) accepted(reply)
      same(issuer.requests, [`${ISSUER}/.well-known/jwks.json`])
    },
  },
  {
    name: 'H-54 SDK-03 1,000 bogus kids make at most 3 fetches, and a rotation among them gets through within a second',
    async run({ clock, issuer, route }) {
      const ask = await route()
      const flood = async (from: number, count: number) => {
        for (let kid = from; kid < from + count; kid++)
          refused(await ask(await issuer.token({}, { kid: `${kid}` })), 'unknown_key')
      }
      await Promise.all([flood(0, 250), flood(250, 250), flood(500, 250), flood(750, 250)])
      ok(issuer.requests.length <= 3, `${issuer.requests.length} fetches`)
      await issuer.rotate()
      const rotated = await issuer.token()
      refused(await ask(rotated), 'unknown_key')
      clock.now += 999
      await flood(1000, 5)
      refused(await ask(rotated), 'unknown_key')
      clock.now += 1
      accepted(await ask(rotated))
      ok(issuer.requests.length <= 4, `${issuer.requests.length} fetches`)
    },
  },
  {
    name: 'a kid that is longer than 256 characters makes no fetch',
    async run({ issuer, route }) {
      const ask = await route()
      accepted(await ask(await issuer.token()))
      for (const length of [257, 256]) {
        refused(await ask(await issuer.token({}, { kid: 'k'.repeat(length) })), 'unknown_key')
        same(issuer.requests.length, length === 256 ? 2 : 1)
      }
    },
  },
  {
    name: 'one bogus kid over and over leaves room for a rotation',
    async run({ clock, issuer, route }) {
      const ask = await route()
      const bogus = await issuer.badToken('unknown-kid')
      for (let second = 0; second < 100; second++) {
        refused(await ask(bogus), 'unknown_key')
        clock.now += 1_000
      }
      ok(issuer.requests.length <= 12, `${issuer.requests.length} fetches`)
      await issuer.rotate()
      accepted(await ask(await issuer.token()))
    },
  },
  {
    name: 'the same kid with another key: the old key is valid until the set is fetched again, then only the new key',
    async run({ clock, issuer, route }) {
      const ask = await route()
      const old = await issuer.token()
      accepted(await ask(old))
      await issuer.rotate({ kid: 'test-key-1' })
      const replaced = await issuer.token()
      refused(await ask(replaced), 'invalid_signature')
      same(issuer.requests.length, 1)
      clock.now += 10 * MINUTE
      accepted(await ask(replaced))
      refused(await ask(old), 'invalid_signature')
    },
  },
  {
    name: 'a key that is no longer published is refused from the next fetch on',
    async run({ issuer, route }) {
      const ask = await route()
      const old = await issuer.token()
      accepted(await ask(old))
      await issuer.rotate({ keep: false })
      accepted(await ask(await issuer.token()))
      refused(await ask(old), 'unknown_key')
    },
  },
  {
    name: 'issuer down before the first fetch: 503 with few attempts, and success after the wait',
    async run({ clock, issuer, route, verifier }) {
      const large = `{"keys":[],"x":"${'x'.repeat(1024 * 1024)}"}`
      const faults = [
        dead,
        answering(500),
        answering(404),
        answering(302, '', { location: `${ISSUER}/elsewhere` }),
      ]
      for (const fault of [
        ...faults,
        answering(200, '<html>'),
        answering(200, '[]'),
        answering(200, large),
      ]) {
        issuer.intercept = fault
        issuer.requests.length = 0
        const ask = await route({ verifier: verifier() })
        const token = await issuer.token()
        const { retryAfter, ...reply } = await ask(token)
        refused({ retryAfter, ...reply }, 'jwks_unavailable')
        refused(await ask(token), 'jwks_unavailable')
        same([issuer.requests.length, reply.body.error], [1, 'temporarily_unavailable'])
        issuer.intercept = undefined
        clock.now += retryAfter * 1000
        accepted(await ask(token))
      }
    },
  },
  {
    name: 'an issuer that never answers: 503 after the time limit',
    async run({ issuer, route, verifier }) {
      const hanging: VerifierOptions['fetch'] = (_, init) =>
        new Promise((_, reject) => {
          // Keeps the process alive, as the socket of a real request does. In Node, the timer of an
          // AbortSignal does not keep the process alive.
          const socket = setInterval(() => {}, 1_000)
          init?.signal?.addEventListener('abort', () => {
            clearInterval(socket)
            reject(init.signal?.reason)
          })
        })
      const ask = await route({ verifier: verifier({ fetch: hanging, jwksTimeout: 0.01 }) })
      refused(await ask(await issuer.token()), 'jwks_unavailable')
    },
  },
  {
    name: 'issuer down after expiry: known keys are accepted for an hour, unknown ones are 503',
    async run({ clock, issuer, route }) {
      const ask = await route()
      const token = await issuer.token({ exp: NOW + 86_400 })
      accepted(await ask(token))
      for (const fault of [answering(503), dead, cut]) {
        issuer.intercept = fault
        clock.now += 20 * MINUTE
        accepted(await ask(token))
      }
      refused(await ask(await issuer.badToken('unknown-kid')), 'jwks_unavailable')
      clock.now = START + 70 * MINUTE - 1
      accepted(await ask(token))
      clock.now += 1
      refused(await ask(token), 'jwks_unavailable')
      issuer.intercept = undefined
      clock.now += MINUTE
      accepted(await ask(token))
    },
  },
  {
    name: 'an issuer that answers nonsense after expiry does not count as down: 503',
    async run({ clock, issuer, route }) {
      const ask = await route()
      const token = await issuer.token()
      accepted(await ask(token))
      issuer.intercept = answering(200, '<html>')
      clock.now += 9 * MINUTE
      accepted(await ask(token))
      clock.now += MINUTE
      refused(await ask(token), 'jwks_unavailable')
    },
  },
  {
    name: 'an empty key set is believed at once',
    async run({ clock, issuer, route }) {
      const ask = await route()
      const token = await issuer.token()
      accepted(await ask(token))
      issuer.published = []
      clock.now += 10 * MINUTE
      refused(await ask(token), 'unknown_key')
    },
  },
  {
    name: 'a slow key set does not block known kids, during a refresh in the background or for an unknown kid',
    async run({ clock, issuer, route }) {
      const ask = await route()
      const token = await issuer.token()
      accepted(await ask(token))
      const slow = held()
      issuer.intercept = slow.intercept
      const unknown = ask(await issuer.badToken('unknown-kid'))
      await settle(() => issuer.requests.length === 2)
      accepted(await ask(token))
      clock.now += 8 * MINUTE
      accepted(await ask(token))
      slow.release()
      refused(await unknown, 'unknown_key')
    },
  },
  {
    name: 'SDK-05 the set is refreshed in the background from 80 % of its lifetime on',
    async run({ clock, issuer, route }) {
      const ask = await route()
      const token = await issuer.token()
      accepted(await ask(token))
      clock.now += 8 * MINUTE - 1
      accepted(await ask(token))
      same(issuer.requests.length, 1)
      const slow = held()
      issuer.intercept = slow.intercept
      clock.now += 1
      accepted(await ask(token))
      accepted(await ask(token))
      await settle(() => issuer.requests.length === 2)
      await issuer.rotate({ keep: false })
      slow.release()
      const rotated = await issuer.token()
      accepted(await ask(rotated))
      same(issuer.requests.length, 2)
    },
  },
  {
    name: 'a runtime that ends calls with their request: a request awaits only its own refresh',
    run: ({ clock, issuer, route, verifier }) =>
      inWorkers(async () => {
        const ask = await route({ verifier: verifier() })
        const token = await issuer.token({ exp: NOW + 86_400 })
        issuer.intercept = dead
        for (const reply of await Promise.all([ask(token), ask(token)])) refused(reply, 'jwks_unavailable')
        issuer.intercept = undefined
        clock.now += 1_000
        accepted(await ask(token))
        const slow = held()
        issuer.intercept = slow.intercept
        issuer.requests.length = 0
        clock.now += 10 * MINUTE - 1
        const cancelled = ask(token)
        await settle(() => issuer.requests.length === 1)
        accepted(await ask(token))
        same(issuer.requests.length, 1)
        issuer.intercept = undefined
        clock.now += 1
        accepted(await ask(token))
        same(issuer.requests.length, 2)
        slow.release()
        accepted(await cancelled)
        issuer.intercept = dead
        clock.now += 8 * MINUTE
        accepted(await ask(token))
        issuer.intercept = undefined
        clock.now += 1_000
        await issuer.rotate({ keep: false })
        refused(await ask(token), 'unknown_key')
      }),
  },
  {
    name: 'unusable keys are passed over',
    async run({ issuer, route }) {
      const [good] = issuer.published
      issuer.published = [
        null,
        'key',
        {},
        { kty: 'oct', k: 'AAAA', kid: 'a' },
        { kty: 'OKP', crv: 'Ed25519', x: 'AAAA' },
        { kty: 'EC', crv: 'P-256', kid: 'test-key-1' },
        { ...good, d: 'AAAA' },
        { ...good, key_ops: ['sign'] },
        { ...good, kid: 7 },
        good,
      ] as typeof issuer.published
      const ask = await route()
      accepted(await ask(await issuer.token()))
    },
  },
  {
    name: 'an RSA key shorter than 2048 bits is refused, also with leading zeros',
    async run({ issuer, route }) {
      await issuer.rotate({ alg: 'RS256' })
      const algorithm = { name: 'RSASSA-PKCS1-v1_5', hash: 'SHA-256' }
      const pair = await crypto.subtle.generateKey(
        { ...algorithm, modulusLength: 1024, publicExponent: new Uint8Array([1, 0, 1]) },
        true,
        ['sign', 'verify'],
      )
      const { n, e } = await crypto.subtle.exportKey('jwk', pair.publicKey)
      for (const modulus of ['AQAB', n, `${'A'.repeat(172)}${n}`]) {
        issuer.published = [{ kty: 'RSA', n: modulus, e, kid: 'short' }] as typeof issuer.published
        refused(await (await route())(await issuer.token({}, { kid: 'short' })), 'unknown_key')
      }
    },
  },
  {
    name: 'a point that is not on the curve is refused, not a crash',
    async run({ issuer, route }) {
      issuer.published = issuer.published.map(key => ({ ...key, x: 'AAAA' }))
      const { status, body } = await (await route())(await issuer.token())
      // Deno does not check the point before the verification, so Deno's refusal has another code.
      ok(
        status === 401 && ['unknown_key', 'invalid_signature'].includes(`${body.code}`),
        `${status} ${body.code}`,
      )
    },
  },
  {
    name: 'without a kid, and with several keys that fit, the key is unknown and no further request is made',
    async run({ issuer, route }) {
      await issuer.rotate()
      const ask = await route()
      refused(await ask(await issuer.token({}, { kid: undefined })), 'unknown_key')
      same(issuer.requests.length, 1)
    },
  },
  {
    name: 'a clock that jumps ahead or back keeps known keys usable and the set refreshed',
    async run({ clock, issuer, route }) {
      const ask = await route()
      const forever = { exp: NOW * 2, iat: 0, nbf: 0 }
      const token = await issuer.token(forever)
      for (const jump of [0, 63_072_000_000, -63_072_000_000, -3_600_000, 7_200_000]) {
        clock.now += jump
        accepted(await ask(token))
        await issuer.rotate()
        accepted(await ask(await issuer.token(forever)))
        clock.now += 10_000
      }
    },
  },
  {
    name: 'a clock that is set back does not keep a set fresh for longer',
    async run({ clock, issuer, route }) {
      const ask = await route()
      const token = await issuer.token({ iat: 0, nbf: 0 })
      accepted(await ask(token))
      clock.now -= 60 * MINUTE
      accepted(await ask(token))
      await settle(() => issuer.requests.length === 2)
    },
  },
  {
    name: 'a fixed key set is never fetched',
    async run({ issuer, route, verifier }) {
      const first = await issuer.token()
      await issuer.rotate()
      const ask = await route({ verifier: verifier({ keys: { keys: issuer.published } }) })
      for (const token of [first, await issuer.token()]) accepted(await ask(token))
      refused(await ask(await issuer.badToken('unknown-kid')), 'unknown_key')
      same(issuer.requests, [])
    },
  },
  {
    name: 'another key set address',
    async run({ issuer, route, verifier }) {
      const jwksUri = `${ISSUER}/internal/.well-known/jwks.json`
      accepted(await (await route({ verifier: verifier({ jwksUri }) }))(await issuer.token()))
      same(issuer.requests, [jwksUri])
    },
  },
]
