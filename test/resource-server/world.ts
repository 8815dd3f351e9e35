/** Parts of the contract cases: an issuer, a clock, the routes of one target, and expected replies. */
import { ok, deepStrictEqual as same } from 'node:assert/strict'
import type { Claims, ErrorCode, Verifier, VerifierOptions } from '#src/resource-server/index.ts'
import type { LogoutClaims, LogoutOptions } from '#src/resource-server/logout.ts'
import type { TestIssuer } from '#src/resource-server/testing.ts'
import { type Mounted, type Route, requestFor, type Sdk, type Target } from './targets.ts'

export const START = 1_900_000_000_000
export const NOW = START / 1000
export const ISSUER = 'https://id.example.test'
export const REALM = `Bearer realm="${ISSUER}"`

export type Reply = {
  status: number
  challenge: string | null
  retryAfter: number
  body: Record<string, unknown>
}
/** Sends a request with a bearer token, with the given headers, or with no headers. */
type SendRequest = (token?: string | HeadersInit) => Promise<Reply>

export type World = {
  sdk: Sdk
  clock: { now: number }
  issuer: TestIssuer
  verifier(options?: Partial<VerifierOptions>): Verifier
  route(route?: Partial<Route>): Promise<SendRequest>
  /** Mounts a receiver of logout tokens. */
  receiver(options?: Partial<LogoutOptions>): Promise<Receiver>
}

export type Receiver = {
  /** Posts a form with the token, or posts another body. */
  post(token: string | URLSearchParams | { raw: string }, path?: string): Promise<Response>
  /** The logouts that the application received. */
  ended: LogoutClaims[]
  /** One text for each refusal: the code, followed by the claim if there is one. */
  refused: string[]
}

export type Case = { name: string; run(world: World): Promise<void> }

/** Runs one case on one target. Rejects with the difference. */
export async function runCase(sdk: Sdk, target: Target, { run }: Case): Promise<void> {
  const clock = { now: START }
  const issuer = await sdk.testing.createTestIssuer({ issuer: ISSUER, now: () => clock.now })
  const mounted: Mounted[] = []
  const verifier = (options: Partial<VerifierOptions> = {}) =>
    sdk.core.createVerifier({ ...issuer, ...options })
  const route = async (options: Partial<Route> = {}): Promise<SendRequest> => {
    const app = await target.mount(sdk, { verifier: verifier(), ...options })
    mounted.push(app)
    return async token => {
      const headers = typeof token === 'string' ? { authorization: `Bearer ${token}` } : (token ?? {})
      const { status, headers: answer, ...response } = await app.send(requestFor(headers)).then(readReply)
      return {
        status,
        challenge: answer.get('www-authenticate'),
        retryAfter: Number(answer.get('retry-after')),
        ...response,
      }
    }
  }
  const receiver = async (options: Partial<LogoutOptions> = {}): Promise<Receiver> => {
    const ended: LogoutClaims[] = []
    const refused: string[] = []
    const app = await target.mountLogout(
      sdk,
      sdk.logout.createLogoutReceiver({
        ...issuer,
        onLogout: claims => void ended.push(claims),
        onRefused: ({ code, claim }) => void refused.push(claim ? `${code} ${claim}` : code),
        ...options,
      }),
    )
    mounted.push(app)
    const post: Receiver['post'] = (token, path = '/logout') =>
      app.send(
        new Request(`http://localhost${path}`, {
          method: 'POST',
          headers: { 'content-type': 'application/x-www-form-urlencoded' },
          body:
            typeof token === 'string'
              ? new URLSearchParams({ logout_token: token }).toString()
              : 'raw' in token
                ? token.raw
                : token.toString(),
        }),
      )
    return { post, ended, refused }
  }
  try {
    await run({ sdk, clock, issuer, verifier, route, receiver })
  } finally {
    await Promise.all(mounted.map(app => app.close()))
  }
}

async function readReply(response: Response) {
  const body = (await response.json()) as Record<string, unknown>
  return { status: response.status, headers: response.headers, body }
}

export function accepted(reply: Reply): Claims {
  same([reply.status, reply.body.code], [200, undefined])
  return reply.body.claims as Claims
}

export function refused(reply: Reply, code: ErrorCode) {
  same([reply.body.code, reply.status], [code, code === 'jwks_unavailable' ? 503 : 401])
  same(reply.body.status, reply.status)
  if (code === 'jwks_unavailable') {
    same(reply.challenge, null)
    ok(reply.retryAfter >= 1 && Number.isInteger(reply.retryAfter), `Retry-After ${reply.retryAfter}`)
  } else {
    const description = reply.body.error_description
    const error =
      code === 'token_missing' ? '' : `, error="invalid_token", error_description="${description}"`
    same([reply.challenge, reply.body.error], [`${REALM}${error}`, 'invalid_token'])
  }
}

/** Runs `body` as in Cloudflare Workers, which cancel the calls of a request when the request ends. */
export async function inWorkers(body: () => Promise<void>) {
  Object.assign(globalThis, { WebSocketPair: class {} })
  try {
    await body()
  } finally {
    Reflect.deleteProperty(globalThis, 'WebSocketPair')
  }
}

/** Delays an answer until `release` is called. */
export function held(answer?: () => Response) {
  let release = () => {}
  const gate = new Promise<void>(resolve => {
    release = resolve
  })
  return { release, intercept: () => gate.then(() => answer?.()) }
}

/** Answers with a body whose connection breaks. */
export const cut = () => new Response(new ReadableStream({ start: body => body.error(new Error('broken')) }))
export const dead = () => {
  throw new TypeError('connection refused')
}
export const answering =
  (status: number, body = '', headers: HeadersInit = {}) =>
  () =>
    new Response(body, { status, headers })
