import { type App, type AppOptions, createApp } from '#src/app.ts'
import { type Config, loadConfig } from '#src/config.ts'
import type { Context, Core } from '#src/context.ts'
import { outboundFetch } from '#src/http/outbound.ts'
import { silentLog } from '#src/lib/log.ts'
import { masterKey } from '#src/lib/master-key.ts'
import { openCore } from '#src/operations/core.ts'
import { createInstance } from '#src/operations/first-start.ts'
import { adminCall } from './admin-calls.ts'
import { freshStore } from './store.ts'
import { xmlReader } from './xml-reader.ts'

export const BASE = 'http://localhost:8080'
export const ADMIN_SECRET = 'test-admin-secret-with-enough-entropy'
export const START = Date.UTC(2026, 0, 15, 12)

export interface TestClock {
  now(): number
  /** Moves the clock forward by `ms` milliseconds, or back if `ms` is negative. */
  advance(ms: number): void
}

const frozenClock = (): TestClock => {
  let now = START
  return {
    now: () => now,
    advance: ms => {
      now += ms
    },
  }
}

/** The clock of the machine, for programs that read it themselves. It cannot be moved. */
export const realClock: TestClock = { now: Date.now, advance: () => {} }

export interface TestApp extends App, Awaited<ReturnType<App['all']>> {
  clock: TestClock
  /**
   * Sends a request for a path or URL to the app, as the HTTP server does. The client address is 127.0.0.1 by
   * default.
   */
  call(path: string, init?: RequestInit & { ip?: string }): Promise<Response>
  /** Calls the admin API with a JSON body. By default, `token` is the token of the first admin client. */
  admin(
    method: string,
    path: string,
    body?: unknown,
    token?: string,
  ): Promise<{ status: number; body: Json; headers: Headers }>
  /** Returns an access token, requested with the client credentials grant. */
  tokenOf(client_id: string, client_secret: string, scope?: string): Promise<string>
  /**
   * Returns all audit events since the last call, oldest first. A test compares the whole list, so it fails
   * if another event occurs.
   */
  events(): Promise<RecordedEvent[]>
}

export interface RecordedEvent {
  type: string
  actor_id: string | null
  target_id: string
  target_type: string
  organization_id: string
  metadata: Record<string, unknown>
}

/** Body of a response, loosely typed: the tests assert its shape. */
export type Json = any

/** Rejects every call to another server. */
export const noCall = () => Promise.reject(new Error('a test calls no other server'))

/** Cheap hashes, because the tests do not depend on their cost. */
const cheapHashes = { argon2_memory: 64, argon2_time: 1 }

/**
 * Composes a server. The RSA key is generated at the first call that needs it. Otherwise it would be
 * generated in the background, and its write could meet any other work of the test.
 */
export const openApp = (core: Core, options: AppOptions = {}): Promise<App> =>
  createApp(core, { late_keys: true, ...options })

/** Starts a whole server with a fresh database and a frozen clock. Tests call the server through `fetch`. */
export const startApp = async (
  config: Partial<Config> = {},
  {
    store = undefined,
    clock = frozenClock(),
    ...parts
  }: Partial<Pick<Context, 'fetch' | 'log' | 'mail' | 'store' | 'xml'>> & { clock?: TestClock } = {},
): Promise<TestApp> => {
  store ??= await freshStore()
  const settings = {
    ...loadConfig({}).config,
    ...cheapHashes,
    url: BASE,
    admin_client_secret: ADMIN_SECRET,
    ...config,
  }
  const base = openCore({
    config: settings,
    store,
    clock,
    log: silentLog,
    fetch: outboundFetch(settings),
    xml: xmlReader,
    master: masterKey(Buffer.alloc(32, 7)),
    ...parts,
  })
  await createInstance(base)
  const created = await openApp(base)
  const app = { ...created, ...(await created.all()) }
  const seen = new Set<string>()

  const call: TestApp['call'] = async (path, { ip = '127.0.0.1', ...init } = {}) =>
    app.fetch(new Request(new URL(path, settings.url), { redirect: 'manual', ...init }), {
      requestIP: () => ({ address: ip, port: 40_000, family: ip.includes(':') ? 'IPv6' : 'IPv4' }),
    })

  const tokenOf: TestApp['tokenOf'] = async (client_id, client_secret, scope) => {
    const form = new URLSearchParams({
      grant_type: 'client_credentials',
      client_id,
      client_secret,
      ...(scope && { scope }),
    })
    const answer = await call('/oauth/token', { method: 'POST', body: form })
    if (answer.status !== 200)
      throw new Error(`no token for ${client_id}: ${answer.status} ${await answer.text()}`)
    return ((await answer.json()) as { access_token: string }).access_token
  }

  let adminToken = ''
  let issuedAt = Number.NEGATIVE_INFINITY
  const currentAdminToken = async (): Promise<string> => {
    const age = clock.now() - issuedAt
    if (age >= 30 * 60_000 || age < 0) {
      adminToken = await tokenOf(settings.admin_client_id, ADMIN_SECRET)
      issuedAt = clock.now()
    }
    return adminToken
  }
  const admin: TestApp['admin'] = async (method, path, body, token) =>
    adminCall(call, token ?? (await currentAdminToken()), method, path, body)

  const events: TestApp['events'] = async () => {
    const rows = await store.read(async q => q.select().from(q.tables.events).orderBy(q.tables.events.seq))
    // New events are found by id, because the `seq` of a deleted last row is used again.
    const fresh = rows.filter(row => !seen.has(row.id))
    for (const { id } of fresh) seen.add(id)
    return fresh.map(({ type, actor_id, target_id, target_type, organization_id, metadata }) => ({
      type,
      actor_id,
      target_id,
      target_type,
      organization_id,
      metadata,
    }))
  }

  return { ...app, clock, call, admin, tokenOf, events }
}
