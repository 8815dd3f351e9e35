import type { Outbound } from '#src/context.ts'
import { type Draft, fakeOpenId } from '#src/dev/fake-openid.ts'
import type { Json, TestApp } from '#test/support/app.ts'
import { startApp } from '#test/support/app.ts'
import type { Browser, Page } from '#test/support/browser.ts'
import { create } from '#test/support/callers.ts'

export const ISSUER = 'https://upstream.example'

/** Hooks by which a test alters the answers of the upstream provider. */
export interface Upstream {
  twist: (draft: Draft) => void
  publish: (keys: Record<string, unknown>[]) => Record<string, unknown>[]
  /** Answers a request in place of the provider. If the result is undefined, the provider answers. */
  intercept: (request: Request) => Response | Promise<Response | undefined> | undefined
  /** Paths that the server requested. */
  asked: string[]
  fetch(request: Request): Promise<Response>
}

const straight = {
  twist: () => {},
  publish: (keys: Record<string, unknown>[]) => keys,
  intercept: () => undefined,
}

/** Starts a server whose outbound calls go to a fake provider in the same process. */
export const startFederated = async (
  options: Parameters<typeof startApp>[1] = {},
): Promise<{ app: TestApp; upstream: Upstream; honest(): void }> => {
  const upstream: Upstream = { ...straight, asked: [], fetch: async () => new Response() }
  const fake = await fakeOpenId({
    issuer: ISSUER,
    alter: draft => upstream.twist(draft),
    publish: keys => upstream.publish(keys),
  })
  upstream.fetch = fake.fetch
  const fetch: Outbound = async (url, init) => {
    const request = new Request(url, init as RequestInit)
    upstream.asked.push(new URL(request.url).pathname)
    return (await upstream.intercept(request)) ?? fake.fetch(request)
  }
  const app = await startApp({}, { ...options, fetch })
  return { app, upstream, honest: () => Object.assign(upstream, straight) }
}

export const addProvider = (app: TestApp, alias: string, more: Json = {}): Promise<Json> =>
  create(app, '/identity-providers', {
    type: 'oidc',
    alias,
    name: `The ${alias}`,
    issuer: ISSUER,
    client_id: 'gatehouse-at-upstream',
    client_secret: 'the-upstream-secret',
    ...more,
  })

export interface UpstreamUser {
  sub?: string
  name?: string
  email?: string
  email_verified?: string
}

/** Signs the user in at the provider. Returns the callback URL to which the provider redirects. */
export const atUpstream = async (
  upstream: Upstream,
  location: string,
  who: UpstreamUser = {},
): Promise<string> => {
  const asked = new URL(location)
  const form = new URLSearchParams({
    request: asked.searchParams.toString(),
    sub: 'robin',
    name: 'Robin Upstream',
    email: 'robin@example.com',
    email_verified: 'true',
    decision: 'approve',
    ...who,
  })
  const answer = await upstream.fetch(new Request(`${ISSUER}/authorize`, { method: 'POST', body: form }))
  const back = answer.headers.get('location')
  if (back === null) throw new Error(`the upstream answered ${answer.status}`)
  return back
}

/**
 * Opens `entry`, which redirects to the provider. Signs in at the provider as `who`. Returns the last page or
 * the redirect to the client.
 */
export const goThrough = async (
  browser: Browser,
  upstream: Upstream,
  entry: string,
  who: UpstreamUser = {},
): Promise<Page> => {
  const away = await browser.get(entry)
  if (!away.location?.startsWith(ISSUER))
    throw new Error(`${entry}: ${away.status} ${away.heading || away.location}`)
  return browser.follow(await browser.get(pathOf(await atUpstream(upstream, away.location, who))))
}

export const pathOf = (url: string): string => {
  const { pathname, search } = new URL(url)
  return pathname + search
}
