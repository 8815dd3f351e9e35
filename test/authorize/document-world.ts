/**
 * Starts a server with an API for dynamic clients, and a second server that publishes the metadata documents
 * of these clients.
 */
import { afterAll } from 'bun:test'
import type { Config } from '#src/config.ts'
import { outboundFetch } from '#src/http/outbound.ts'
import { type Json, startApp } from '#test/support/app.ts'
import { answerOf, openBrowser } from '#test/support/browser.ts'
import { create } from '#test/support/callers.ts'
import { addClient, addUser, authorizeUrl, signIn } from '#test/support/people.ts'
import { redeem } from '#test/support/tokens.ts'

export const TOOLS = 'https://mcp.example/mcp'
export const WEB = 'https://agent.example/callback'

type Answer = (request: Request) => Response | Promise<Response>

export const tools = {
  identifier: TOOLS,
  name: 'Tools',
  scopes: [{ name: 'tools.read', texts: { en: 'Read with the tools' }, role: null }],
  open_to_dynamic_clients: true,
}
export const json = (body: unknown, headers: Record<string, string> = {}): Answer => {
  const text = typeof body === 'string' ? body : JSON.stringify(body)
  return () => new Response(text, { headers: { 'content-type': 'application/json', ...headers } })
}

export const request = (client: Json, more: Record<string, string | undefined> = {}) =>
  authorizeUrl(client.client_id, { redirect_uri: WEB, scope: 'openid tools.read', resource: TOOLS, ...more })

/** Starts both servers, with a person, a registered client and an API. */
export const documentWorld = async (config: Partial<Config> = {}) => {
  /** The answers by URL. The publisher answers 404 for other URLs. */
  const published = new Map<string, Answer>()
  /** The requested URLs, in order. */
  const asked: string[] = []
  const publisher = Bun.serve({
    hostname: '127.0.0.1',
    port: 0,
    fetch: request => {
      const { pathname, search } = new URL(request.url)
      const url = `https:/${pathname}${search}`
      asked.push(url)
      return published.get(url)?.(request) ?? new Response(null, { status: 404 })
    },
  })
  afterAll(() => publisher.stop(true))

  /**
   * The publisher answers calls to hosts below .example and calls to published URLs. Other calls pass the
   * checks of production, but only the name `localhost` resolves.
   */
  const allowed = { outbound_allow: ['*=127.0.0.1:*'] }
  const call = outboundFetch(allowed)
  /** Ends the latest call to slow.example in place of its timeout. */
  let giveUp = new AbortController()
  const real = outboundFetch(
    { outbound_allow: [] },
    {
      resolve: async hostname => {
        if (hostname === 'localhost') return [{ address: '127.0.0.1', family: 4 }]
        throw new Error('There is no Internet.')
      },
    },
  )
  const app = await startApp(config, {
    fetch: (address, init) => {
      const { host, hostname, pathname, search } = new URL(address)
      if (hostname === 'slow.example') giveUp = new AbortController()
      const more = hostname === 'slow.example' ? { signal: giveUp.signal } : {}
      return hostname.endsWith('.example') || published.has(String(address))
        ? call(`http://127.0.0.1:${publisher.port}/${host}${pathname}${search}`, { ...init, ...more })
        : real(address, init)
    },
  })

  const configure = (settings: Json, organization = 'default') =>
    app.admin('PUT', `/organizations/${organization}`, { settings })
  await configure({ client_metadata_documents: 'any' })
  await addUser(app, 'alice', { roles: ['admin'] })
  await addClient(app, 'shop', { name: 'Shop' })
  await create(app, '/apis', tools)

  let count = 0
  /** Publishes a document at a new URL or at the given URL. Returns the client. */
  const publish = (
    more: Json = {},
    headers: Record<string, string> = {},
    client_id = `https://agent${++count}.example/client.json`,
  ): Json => {
    const document = {
      client_id,
      client_name: `Agent ${count}`,
      redirect_uris: [WEB],
      grant_types: ['authorization_code', 'refresh_token'],
      token_endpoint_auth_method: 'none',
      ...more,
    }
    published.set(client_id, json(document, headers))
    return document
  }

  /** Changes the answer for a URL. If `answer` is undefined, the answer is 404. */
  const answerWith = (client_id: string, answer?: Answer): void => {
    if (answer) published.set(client_id, answer)
    else published.delete(client_id)
  }

  /** Signs in and returns the consent page, or the page of a refusal. */
  const open = async (client: Json, more: Record<string, string | undefined> = {}, username = 'alice') => {
    const browser = openBrowser(app)
    return { browser, page: await signIn(browser, await browser.get(request(client, more)), username) }
  }

  /** Signs in and approves the consent. Returns the browser and the parameters that the client gets. */
  const logIn = async (client: Json, more: Record<string, string | undefined> = {}, username?: string) => {
    const { browser, page } = await open(client, more, username)
    const answer = await browser.submit(page, { decision: 'approve' }, '/oauth/consent')
    return { browser, page, answer: answerOf(answer) }
  }

  const grant = async (client: Json, more: Record<string, string | undefined> = {}, username?: string) => {
    const { answer } = await logIn(client, more, username)
    return redeem(app, client, answer.code ?? '', { redirect_uri: more.redirect_uri ?? WEB })
  }

  /** Returns the ids of the stored clients. */
  const stored = () =>
    app.context.store.read(async q =>
      (await q.select().from(q.tables.dynamic_clients)).map(({ client_id }) => client_id),
    )

  return {
    app,
    asked,
    giveUp: () => giveUp.abort(),
    configure,
    publish,
    answerWith,
    open,
    logIn,
    grant,
    stored,
  }
}
