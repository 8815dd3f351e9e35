/** Cases of logout tokens: which tokens end sessions, and the code of each refusal. */
import { match, ok, rejects, deepStrictEqual as same } from 'node:assert/strict'
import type { Header, Payload } from '#src/resource-server/testing.ts'
import { type Case, dead, ISSUER, NOW, type Receiver, type World } from './world.ts'

const EVENT = 'http://schemas.openid.net/event/backchannel-logout'

async function refusedAs(receiver: Receiver, answer: Response, name: string) {
  const [code] = name.split(' ')
  same(receiver.refused.splice(0), [name])
  same(receiver.ended, [])
  const { error_description, ...body } = (await answer.json()) as Record<string, string>
  same([answer.status, body], [400, { error: 'invalid_request', code }])
  ok(error_description)
  same(answer.headers.get('cache-control'), 'no-store')
  match(`${answer.headers.get('content-type')}`, /^application\/json/)
}

/** `claims` and `header` change the valid token. A member with the value undefined is removed. */
type Bad = {
  is: string
  claims?: Payload
  header?: Partial<Header>
  token?: (world: World) => Promise<string>
  /** Milliseconds between the issue and the use of the token. */
  after?: number
}

const bad: Record<string, Bad> = {
  'a forged token': {
    is: 'invalid_signature',
    token: async ({ issuer }) => {
      const [head, , signature] = (await issuer.logoutToken()).split('.')
      const [, payload] = (await issuer.logoutToken({ sid: 'another' })).split('.')
      return [head, payload, signature].join('.')
    },
  },
  'a token of a stranger’s key': {
    is: 'unknown_key',
    async token({ issuer }) {
      await issuer.rotate({ publish: false })
      return issuer.logoutToken()
    },
  },
  'alg none': { is: 'algorithm_not_allowed', token: ({ issuer }) => issuer.badToken('alg-none') },
  HS256: { is: 'algorithm_not_allowed', header: { alg: 'HS256' } },
  'an encrypted token': { is: 'token_malformed', token: async () => 'e30.e30.e30.e30.e30' },
  'an old token': { is: 'token_expired', after: 126_000 },
  'a token of the future': { is: 'token_not_yet_valid', claims: { iat: NOW + 60 } },
  'a token with a nonce': { is: 'claim_invalid nonce', claims: { nonce: 'n' } },
  'a token with an empty nonce': { is: 'claim_invalid nonce', claims: { nonce: null } },
  'a token for another client': { is: 'claim_invalid aud', claims: { aud: 'another-client' } },
  'a token of another issuer': { is: 'claim_invalid iss', claims: { iss: 'https://other.example' } },
  'a token without events': { is: 'claim_missing events', claims: { events: undefined } },
  'a token of another event': { is: 'claim_invalid events', claims: { events: { other: {} } } },
  'an event that is no object': { is: 'claim_invalid events', claims: { events: { [EVENT]: true } } },
  'events in an array': { is: 'claim_invalid events', claims: { events: [EVENT] } },
  'neither sub nor sid': { is: 'claim_missing sub', claims: { sub: undefined, sid: undefined } },
  'an empty sid': { is: 'claim_invalid sid', claims: { sid: '' } },
  'a sub that is a number': { is: 'claim_invalid sub', claims: { sub: 1 } },
  'no jti': { is: 'claim_missing jti', claims: { jti: undefined } },
  'no iat': { is: 'claim_missing iat', claims: { iat: undefined } },
  'no exp': { is: 'claim_missing exp', claims: { exp: undefined } },
  'no aud': { is: 'claim_missing aud', claims: { aud: undefined } },
  'no iss': { is: 'claim_missing iss', claims: { iss: undefined } },
  'the type JWT': { is: 'token_type', header: { typ: 'JWT' } },
  'no type': { is: 'token_type', header: { typ: undefined } },
  'an access token': { is: 'token_type', token: ({ issuer }) => issuer.token() },
  'an ID token': { is: 'token_type', token: ({ issuer }) => issuer.badToken('id-token') },
}

const refusals: Case[] = Object.entries(bad).map(([name, { is, claims, header, token, after = 0 }]) => ({
  name: `SDK-31 logout: ${name} is refused as ${is}`,
  async run(world) {
    const receiver = await world.receiver()
    const sent = await (token?.(world) ?? world.issuer.logoutToken(claims, header))
    world.clock.now += after
    await refusedAs(receiver, await receiver.post(sent), is)
  },
}))

export const logouts: readonly Case[] = [
  ...refusals,
  {
    name: 'SDK-30 logout: a good token ends the sessions, and the answer is 200 with no-store',
    async run({ issuer, receiver }) {
      const { post, ended } = await receiver()
      for (const claims of [{ sid: 's' }, { sub: undefined, sid: 's' }, { sid: undefined }]) {
        const answer = await post(await issuer.logoutToken({ ...claims, other: 1 }))
        same([answer.status, await answer.text()], [200, ''])
        same(answer.headers.get('cache-control'), 'no-store')
      }
      const { sub } = ended[0] ?? {}
      ok(sub)
      same(
        ended.map(logout => [logout.sub, logout.sid]),
        [
          [sub, 's'],
          [undefined, 's'],
          [sub, undefined],
        ],
      )
      same(
        [ended[0]?.iss, ended[0]?.aud, ended[0]?.exp, ended[0]?.raw.other],
        [ISSUER, 'test-client', NOW + 120, 1],
      )
    },
  },
  {
    name: 'SDK-30 logout: other fields of the form are ignored, and a framework may parse the form first',
    async run({ issuer, receiver }) {
      const { post, ended } = await receiver()
      const form = async () => new URLSearchParams({ a: 'b', logout_token: await issuer.logoutToken() })
      same([(await post(await form())).status, (await post(await form(), '/parsed')).status], [200, 200])
      same(ended.length, 2)
    },
  },
  {
    name: 'SDK-30 logout: the form may be bytes, as body parsers leave it that read every type',
    async run({ issuer, sdk }) {
      const ended: unknown[] = []
      const onLogout = ({ sid }: { sid: unknown }) => void ended.push(sid)
      const { receive } = sdk.logout.createLogoutReceiver({ ...issuer, onLogout })
      for (const wrap of [(bytes: Uint8Array) => bytes, ({ buffer }: Uint8Array) => buffer]) {
        const form = new URLSearchParams({ logout_token: await issuer.logoutToken({ sid: 's' }) })
        same((await receive(wrap(new TextEncoder().encode(`${form}`)))).status, 200)
      }
      same(ended, ['s', 's'])
    },
  },
  {
    name: 'SDK-31 logout: the reason for the log speaks of the logout token and says nothing twice',
    async run({ issuer, sdk }) {
      const reasons: string[] = []
      const onRefused = ({ message }: Error) => void reasons.push(message)
      const { receive } = sdk.logout.createLogoutReceiver({ ...issuer, onLogout() {}, onRefused })
      await receive('')
      await receive({ logout_token: await issuer.token() })
      await receive({ logout_token: await issuer.logoutToken({ jti: undefined }) })
      await receive({ logout_token: await issuer.logoutToken({ nonce: 'n' }) })
      issuer.intercept = dead
      const unreachable = sdk.logout.createLogoutReceiver({ ...issuer, onLogout() {}, onRefused })
      await unreachable.receive({ logout_token: await issuer.logoutToken() })
      same(reasons, [
        'The form must have exactly one field logout_token',
        'The token is not a logout token (its header says typ "at+jwt", expected "logout+jwt")',
        'The logout token lacks a claim (jti)',
        'A claim of the logout token is not accepted (nonce: only ID tokens have it)',
        `The keys of the token issuer are unavailable (${ISSUER}/.well-known/jwks.json: it cannot be reached)`,
      ])
    },
  },
  {
    name: 'SDK-31 logout: a body without one token is refused as token_missing',
    async run({ issuer, receiver }) {
      const target = await receiver()
      const token = await issuer.logoutToken()
      const twice = new URLSearchParams([
        ['logout_token', token],
        ['logout_token', token],
      ])
      for (const body of [
        new URLSearchParams({ token }),
        twice,
        { raw: '' },
        { raw: `{"logout_token":"${token}"}` },
      ])
        for (const path of ['/logout', '/parsed'])
          await refusedAs(target, await target.post(body, path), 'token_missing')
    },
  },
  {
    name: 'SDK-31 logout: a body of 1 MiB is not read',
    async run({ receiver }) {
      const { post, ended } = await receiver()
      const { status } = await post({ raw: `logout_token=${'a'.repeat(1024 * 1023)}` })
      ok([400, 413].includes(status), `${status}`)
      same(ended, [])
    },
  },
  {
    name: 'SDK-32 logout: a token is refused the second time, the new token of a repeated delivery is accepted',
    async run({ clock, issuer, receiver }) {
      const target = await receiver()
      const token = await issuer.logoutToken({ jti: 'one' })
      same((await target.post(token)).status, 200)
      target.ended.length = 0
      await refusedAs(target, await target.post(token), 'token_replayed')
      clock.now += 5_000
      same((await target.post(await issuer.logoutToken({ jti: 'one' }))).status, 200)
    },
  },
  {
    name: 'SDK-32 logout: processes that share a store refuse a token that another process has seen',
    async run({ issuer, receiver }) {
      const keys = new Map<string, number>()
      const seen = {
        add: async (key: string, expiresAt: number) => !keys.has(key) && Boolean(keys.set(key, expiresAt)),
      }
      const [one, other] = [await receiver({ seen }), await receiver({ seen })]
      const token = await issuer.logoutToken({ jti: 'one' })
      same((await one.post(token)).status, 200)
      await refusedAs(other, await other.post(token), 'token_replayed')
      same([...keys], [[`one ${NOW}`, NOW + 125]])
    },
  },
  {
    name: 'SDK-32 logout: a refused token is not remembered',
    async run({ sdk, issuer }) {
      let calls = 0
      const seen = { add: () => Boolean(++calls) }
      const { verify } = sdk.logout.createLogoutReceiver({ ...issuer, onLogout() {}, seen })
      await rejects(verify(await issuer.logoutToken({ nonce: 'n' })), {
        name: 'LogoutTokenError',
        code: 'claim_invalid',
        claim: 'nonce',
      })
      same(calls, 0)
      same((await verify(await issuer.logoutToken({ sid: 's' }))).sid, 's')
    },
  },
  {
    name: 'SDK-33 logout: without keys the answer is 503, so that the server tries again',
    async run({ issuer, receiver }) {
      const { post, ended, refused } = await receiver()
      issuer.intercept = dead
      const answer = await post(await issuer.logoutToken())
      same([answer.status, answer.headers.get('retry-after'), refused], [503, '1', ['jwks_unavailable']])
      same([answer.headers.get('cache-control'), ended], ['no-store', []])
    },
  },
  {
    name: 'SDK-33 logout: an error of the application is thrown, and the repeated delivery is accepted',
    async run({ clock, issuer, sdk }) {
      let calls = 0
      const { receive } = sdk.logout.createLogoutReceiver({
        ...issuer,
        onLogout: async () => {
          if (++calls === 1) throw new RangeError('the store is down')
        },
      })
      const form = async () => ({ logout_token: await issuer.logoutToken({ jti: 'one' }) })
      await rejects(receive(await form()), RangeError)
      clock.now += 5_000
      same((await receive(await form())).status, 200)
    },
  },
  {
    name: 'SDK-31 logout: no refusal repeats what was sent',
    async run({ issuer, receiver }) {
      const { post } = await receiver()
      for (const claims of [{ iss: 'https://marker.example' }, { aud: 'marker' }, { nonce: 'marker' }]) {
        const text = await (await post(await issuer.logoutToken(claims))).text()
        ok(!text.includes('marker'), text)
      }
    },
  },
]
