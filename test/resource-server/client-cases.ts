/** Cases of the service client: caching, renewal, retries. */
import { ok, rejects, deepStrictEqual as same, throws } from 'node:assert/strict'
import type { CachedToken, ServiceClientOptions } from '#src/resource-server/client.ts'
import { type Case, cut, held, ISSUER, inWorkers, NOW, type World } from './world.ts'

const clientOf = ({ sdk, issuer, clock }: World, options: Partial<ServiceClientOptions> = {}) =>
  sdk.client.createServiceClient({
    issuer: issuer.issuer,
    clientId: 'billing',
    clientSecret: 'a b+c:ü',
    fetch: issuer.fetch,
    now: () => clock.now,
    ...options,
  })

/** Makes a client whose calls go to `api`, except those to the issuer. */
const clientOfApi = (world: World, api: (request: Request) => Promise<Response>) => {
  const { issuer } = world
  return clientOf(world, {
    fetch: (input, init) => {
      const request = new Request(input, init)
      return request.url.startsWith(issuer.issuer) ? issuer.fetch(request) : api(request)
    },
  })
}

const tokenAnswer = (token: string, expires_in?: number) => () =>
  Response.json({ access_token: token, token_type: 'bearer', expires_in })
const HOUR = 3_600_000

export const services: Case[] = [
  {
    name: 'SDK-01 service client: one request for parallel calls, cached by sorted scopes',
    async run(world) {
      const { issuer } = world
      const client = clientOf(world, { scopes: ['b', 'a'] })
      const tokens = await Promise.all(Array.from({ length: 20 }, () => client.getToken()))
      same([new Set(tokens).size, issuer.requests.length], [1, 1])
      same(await client.getToken(['a', 'b', 'a']), tokens[0])
      await client.getToken(['a'])
      same(issuer.requests, Array(2).fill(`${issuer.issuer}/oauth/token`))
      const { sub, scope } = await world.verifier({ audience: 'billing' }).verify(await client.getToken())
      same([sub, scope], ['billing', 'a b'])
    },
  },
  {
    name: "service client: the test issuer's token has the claims that the server gives to a client",
    async run({ issuer, verifier }) {
      const ask = async (form: Record<string, string>) => {
        const body = new URLSearchParams({ grant_type: 'client_credentials', client_id: 'billing', ...form })
        const answer = await issuer.fetch(`${issuer.issuer}/oauth/token`, { method: 'POST', body })
        return ((await answer.json()) as { access_token: string }).access_token
      }
      const own = await verifier({ audience: 'billing' }).verify(await ask({ scope: 'a' }))
      const { jti, ...claims } = own.raw
      ok(typeof jti === 'string')
      same(claims, {
        iss: ISSUER,
        sub: 'billing',
        aud: 'billing',
        exp: NOW + 3600,
        iat: NOW,
        nbf: NOW,
        client_id: 'billing',
        scope: 'a',
        org_id: 'default',
      })
      const resource = 'https://orders.example.test'
      const { raw } = await verifier({ audience: resource }).verify(await ask({ resource }))
      same([raw.aud, raw.client_id], [resource, 'billing'])
    },
  },
  {
    name: 'service client: a shared cache is kept apart by issuer, client and resource',
    async run(world) {
      const cache = new Map<string, CachedToken>()
      await clientOf(world, { cache }).getToken()
      await clientOf(world, { cache }).getToken()
      same(world.issuer.requests.length, 1)
      await clientOf(world, { cache, clientId: 'shipping' }).getToken()
      await clientOf(world, { cache, issuer: `${world.issuer.issuer}/other` }).getToken()
      same([cache.size, world.issuer.requests.length], [3, 3])
      const resource = 'https://orders.example.test'
      const token = await clientOf(world, { cache, resource }).getToken()
      same((await world.verifier({ audience: resource }).verify(token)).raw.aud, resource)
    },
  },
  {
    name: 'service client: the secret in the form, or in the header with its parts encoded',
    async run(world) {
      const seen: (string | null)[] = []
      world.issuer.intercept = async request => {
        seen.push(request.headers.get('authorization'), await request.text())
        return tokenAnswer('t', 3600)()
      }
      await clientOf(world).getToken(['x'])
      await clientOf(world, { authMethod: 'client_secret_basic' }).getToken()
      same(seen, [
        null,
        'grant_type=client_credentials&scope=x&client_id=billing&client_secret=a+b%2Bc%3A%C3%BC',
        `Basic ${btoa('billing:a+b%2Bc%3A%C3%BC')}`,
        'grant_type=client_credentials',
      ])
    },
  },
  {
    name: 'SDK-02 service client: renews its token in the background when a tenth of its lifetime is left',
    async run(world) {
      const { clock, issuer } = world
      const client = clientOf(world)
      issuer.intercept = tokenAnswer('first', 3600)
      same(await client.getToken(), 'first')
      issuer.intercept = tokenAnswer('second', 3600)
      clock.now += HOUR * 0.889
      same([await client.getToken(), issuer.requests.length], ['first', 1])
      clock.now += HOUR * 0.011
      same([await client.getToken(), issuer.requests.length], ['first', 2])
      await new Promise(resolve => setTimeout(resolve, 0))
      same([await client.getToken(), issuer.requests.length], ['second', 2])
    },
  },
  {
    name: 'service client: renews at least a minute before the end, but not before half of a short lifetime',
    async run(world) {
      const { clock, issuer } = world
      for (const [life, keptFor, renewedAfter] of [
        [300, 233_999, 240_000],
        [60, 29_999, 30_000],
      ] as const) {
        const client = clientOf(world)
        issuer.intercept = tokenAnswer('t', life)
        issuer.requests.length = 0
        await client.getToken()
        clock.now += keptFor
        await client.getToken()
        same(issuer.requests.length, 1)
        clock.now += renewedAfter - keptFor
        await client.getToken()
        same(issuer.requests.length, 2)
      }
    },
  },
  {
    name: 'service client: the lifetime of a token counts from its request, not from the answer',
    async run(world) {
      const { clock, issuer } = world
      const client = clientOf(world)
      issuer.intercept = () => {
        clock.now += 20_000
        return tokenAnswer(`token ${issuer.requests.length}`, 60)()
      }
      same(await client.getToken(), 'token 1')
      clock.now += 40_000
      same(await client.getToken(), 'token 2')
    },
  },
  {
    name: 'service client: a failed renewal leaves a valid token in use, but not an expired one',
    async run(world) {
      const { clock, issuer } = world
      const client = clientOf(world)
      issuer.intercept = tokenAnswer('first', 3600)
      await client.getToken()
      issuer.intercept = () => new Response('', { status: 503 })
      clock.now += HOUR - 1
      for (let call = 0; call < 20; call++) {
        same(await client.getToken(), 'first')
        await new Promise(resolve => setTimeout(resolve, 0))
      }
      same(issuer.requests.length, 2)
      clock.now += 1
      await rejects(client.getToken(), {
        name: 'TokenRequestError',
        code: 'token_endpoint_unavailable',
        status: 503,
      })
    },
  },
  {
    name: 'service client: a renewal that failed is tried again after 10 s',
    async run(world) {
      const { clock, issuer } = world
      const client = clientOf(world)
      issuer.intercept = tokenAnswer('first', 3600)
      await client.getToken()
      issuer.intercept = () => new Response('', { status: 503 })
      clock.now += HOUR * 0.95
      const requests: number[] = []
      for (const ms of [0, 9_999, 1]) {
        clock.now += ms
        same(await client.getToken(), 'first')
        requests.push(issuer.requests.length)
        await new Promise(resolve => setTimeout(resolve, 0))
      }
      same(requests, [2, 2, 3])
    },
  },
  {
    name: 'service client: a runtime that ends calls with their request: a call awaits only its own renewal',
    run: world =>
      inWorkers(async () => {
        const { clock, issuer } = world
        const client = clientOf(world)
        issuer.intercept = tokenAnswer('first', 3600)
        same(await client.getToken(), 'first')
        const slow = held(tokenAnswer('second', 3600))
        issuer.intercept = slow.intercept
        clock.now += HOUR - 1
        const cancelled = client.getToken()
        same([await client.getToken(), issuer.requests.length], ['first', 2])
        issuer.intercept = tokenAnswer('third', 3600)
        clock.now += 1
        same([await client.getToken(), issuer.requests.length], ['third', 3])
        slow.release()
        same(await cancelled, 'second')
        issuer.intercept = () => new Response('', { status: 503 })
        clock.now += HOUR - 2
        same([await client.getToken(), issuer.requests.length], ['second', 4])
      }),
  },
  {
    name: 'service client: what the token endpoint says is in the error',
    async run(world) {
      const { issuer } = world
      issuer.intercept = () =>
        Response.json({ error: 'invalid_client', error_description: 'wrong secret' }, { status: 401 })
      await rejects(clientOf(world).getToken(), {
        code: 'invalid_client',
        status: 401,
        message: /wrong secret/,
      })
      issuer.intercept = () => {
        throw new TypeError('connection refused')
      }
      await rejects(clientOf(world).getToken(), { code: 'token_endpoint_unavailable', status: undefined })
      issuer.intercept = cut
      await rejects(clientOf(world).getToken(), { code: 'token_endpoint_unavailable', status: undefined })
      issuer.intercept = () => Response.json({ access_token: 't', token_type: 'DPoP' })
      await rejects(clientOf(world).getToken(), { code: 'token_endpoint_unavailable', status: 200 })
    },
  },
  {
    name: 'service client: without expires_in a token is used once',
    async run(world) {
      const client = clientOf(world)
      world.issuer.intercept = tokenAnswer('t')
      await client.getToken()
      await client.getToken()
      same(world.issuer.requests.length, 2)
    },
  },
  {
    name: 'service client fetch: a 401 drops the token, and the request is sent once more with its body',
    async run(world) {
      const { issuer } = world
      const calls: string[] = []
      let stale = 'first'
      let cancelled = 0
      const api = async (request: Request) => {
        calls.push(`${request.headers.get('authorization')} ${request.method} ${await request.text()}`)
        const body = new ReadableStream({ cancel: () => void cancelled++ })
        return new Response(body, { status: calls.at(-1)?.includes(`Bearer ${stale} `) ? 401 : 200 })
      }
      const client = clientOfApi(world, api)
      issuer.intercept = tokenAnswer('first', 3600)
      await client.getToken()
      issuer.intercept = tokenAnswer('second', 3600)
      const send = () => client.fetch('https://orders.example.test/', { method: 'POST', body: 'order' })
      same((await send()).status, 200)
      same([calls, cancelled], [['Bearer first POST order', 'Bearer second POST order'], 1])
      stale = 'second'
      same((await send()).status, 401)
      same([calls.length, issuer.requests.length], [4, 3])
    },
  },
  {
    name: 'service client fetch: a late 401 does not drop the token that another call has fetched since',
    async run(world) {
      const { issuer } = world
      const waiting: (() => void)[] = []
      const api = async ({ url, headers }: Request) => {
        if (url.endsWith('/slow') && waiting.length === 0) await new Promise<void>(go => waiting.push(go))
        return new Response('', { status: headers.get('authorization') === 'Bearer first' ? 401 : 200 })
      }
      const client = clientOfApi(world, api)
      issuer.intercept = tokenAnswer('first', 3600)
      await client.getToken()
      issuer.intercept = tokenAnswer('second', 3600)
      const slow = client.fetch('https://orders.example.test/slow')
      same((await client.fetch('https://orders.example.test/fast')).status, 200)
      waiting[0]?.()
      same([(await slow).status, issuer.requests.length], [200, 2])
    },
  },
  {
    name: 'service client: settings are checked at once, also those of the environment',
    async run(world) {
      const { client } = world.sdk
      throws(
        () => clientOf(world, { issuer: 'nowhere', clientId: '', clientSecret: '' }),
        /issuer .*; clientId .*; clientSecret /,
      )
      throws(
        () => clientOf(world, { tokenEndpoint: 'nowhere' }),
        /server: tokenEndpoint must be an http\(s\) URL, got "nowhere"$/,
      )
      throws(
        () => client.clientFromEnv({}, {}),
        /SERVICE_URL .*; SERVICE_CLIENT_ID .*; SERVICE_CLIENT_SECRET is not set/,
      )
      const env = {
        SERVICE_URL: world.issuer.issuer,
        SERVICE_CLIENT_ID: 'billing',
        SERVICE_CLIENT_SECRET: 's',
      }
      ok(await client.clientFromEnv({ fetch: world.issuer.fetch }, env).getToken())
    },
  },
]
