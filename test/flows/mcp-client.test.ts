/**
 * Tests unmodified clients of the MCP TypeScript SDK at an MCP server that Gatehouse's SDK guards. The
 * clients sign in by themselves.
 */
import { describe, expect, test } from 'bun:test'
import * as v2 from '@modelcontextprotocol/client'
import { Client } from '@modelcontextprotocol/sdk/client/index.js'
import { StreamableHTTPClientTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js'
import { McpServer } from '@modelcontextprotocol/sdk/server/mcp.js'
import { WebStandardStreamableHTTPServerTransport } from '@modelcontextprotocol/sdk/server/webStandardStreamableHttp.js'
import { type Claims, createVerifier } from '#src/resource-server/index.ts'
import { protect, requireScopes } from '#src/resource-server/mcp.ts'
import { BASE, type Json, startApp } from '#test/support/app.ts'
import { answerOf, openBrowser } from '#test/support/browser.ts'
import { create } from '#test/support/callers.ts'
import { addUser, signIn } from '#test/support/people.ts'

const MCP = 'https://mcp.example/mcp'
const REDIRECT = 'http://localhost:6274/oauth/callback'
const DOCUMENT = 'https://claude.ai/oauth/claude-code-client-metadata'
const LOCAL = 'http://localhost:3118/callback'

const app = await startApp({}, { fetch: () => Promise.reject(new Error('There is no Internet.')) })
await app.admin('PUT', '/organizations/default', {
  settings: { client_registration: 'open', client_metadata_documents: 'allowlist' },
})
await addUser(app, 'alice')
await create(app, '/apis', {
  identifier: MCP,
  name: 'Tools',
  scopes: [{ name: 'tools.read' }, { name: 'tools.write' }],
  open_to_dynamic_clients: true,
})

/** An MCP server with two tools and without sessions. */
const serveTools = async (request: Request, claims: Claims | undefined): Promise<Response> => {
  if (!claims) throw new Error('not guarded')
  const { method, params } = request.method === 'POST' ? ((await request.clone().json()) as Json) : {}
  if (method === 'tools/call' && params.name === 'write') requireScopes(claims, ['tools.read', 'tools.write'])
  const server = new McpServer({ name: 'tools', version: '1.0.0' })
  const say = (text: string) => async () => ({ content: [{ type: 'text' as const, text }] })
  server.registerTool('read', { description: 'Reads' }, say(`read for ${claims.scope}`))
  server.registerTool('write', { description: 'Writes' }, say(`written for ${claims.scope}`))
  const transport = new WebStandardStreamableHTTPServerTransport({ enableJsonResponse: true })
  await server.connect(transport)
  return transport.handleRequest(request)
}

const verifier = createVerifier({
  issuer: BASE,
  resource: MCP,
  realm: 'default',
  fetch: input => app.call(String(input)),
  now: app.clock.now,
})
const guarded = protect(verifier, serveTools, {
  scopes: ['tools.read'],
  scopesSupported: ['tools.read', 'tools.write'],
})

/** Method and path of each request of the client, in order. */
let sent: string[] = []
const network = async (input: string | URL, init?: RequestInit): Promise<Response> => {
  const url = new URL(input)
  sent.push(`${init?.method ?? 'GET'} ${url.pathname}`)
  return url.origin === BASE
    ? app.call(`${url.pathname}${url.search}`, init)
    : guarded(new Request(url, init))
}

/** Returns a client that is not registered yet, and the values that the client stores. */
const newClient = (clientMetadataUrl?: string) => {
  const kept: { client?: Json; tokens?: Json; verifier?: string; url?: URL; discovery?: Json } = {}
  const provider = {
    ...(clientMetadataUrl && { clientMetadataUrl }),
    redirectUrl: clientMetadataUrl ? LOCAL : REDIRECT,
    clientMetadata: {
      client_name: 'Test client',
      redirect_uris: [REDIRECT],
      grant_types: ['authorization_code', 'refresh_token'],
      response_types: ['code'],
      token_endpoint_auth_method: 'none',
    },
    clientInformation: () => kept.client,
    saveClientInformation: (client: Json) => {
      kept.client = client
    },
    tokens: () => kept.tokens,
    saveTokens: (tokens: Json) => {
      kept.tokens = tokens
    },
    redirectToAuthorization: (url: URL) => {
      kept.url = url
    },
    saveCodeVerifier: (text: string) => {
      kept.verifier = text
    },
    invalidateCredentials: (scope: string) => {
      if (scope === 'all' || scope === 'client') kept.client = undefined
      if (scope === 'all' || scope === 'tokens') kept.tokens = undefined
    },
    saveDiscoveryState: (state: Json) => {
      kept.discovery = state
    },
    discoveryState: () => kept.discovery,
    codeVerifier: () => kept.verifier ?? '',
  }
  return { kept, provider }
}

const browser = openBrowser(app)
/** Opens the authorization request as the user's browser does. Returns the parameters of the answer. */
const allow = async (url: URL | undefined): Promise<Record<string, string>> => {
  const page = await browser.get(`${url?.pathname}${url?.search}`)
  const consent = page.html.includes('/oauth/login')
    ? await signIn(browser, page, 'alice')
    : await browser.follow(page)
  return answerOf(await browser.submit(consent, { decision: 'approve' }, '/oauth/consent'))
}

type Provider = ReturnType<typeof newClient>['provider']
const url = new URL(MCP)
const self = { name: 'test', version: '1.0.0' }

/**
 * For each version of the MCP SDK: a client with its transport. `finish` passes the authorization response to
 * the transport.
 */
const versions = [
  {
    name: '@modelcontextprotocol/sdk 1.x',
    // If this client has a refresh token, it cannot step up. It refreshes the token with the current scopes
    // and then gives up.
    stepsUpAlone: false,
    connect: (authProvider: Provider) => {
      const transport = new StreamableHTTPClientTransport(url, { authProvider, fetch: network })
      const client = new Client(self)
      return {
        client,
        open: () => client.connect(transport),
        finish: ({ code = '' }: Record<string, string>) => transport.finishAuth(code),
      }
    },
  },
  {
    name: '@modelcontextprotocol/client 2.x',
    stepsUpAlone: true,
    connect: (authProvider: Provider) => {
      const transport = new v2.StreamableHTTPClientTransport(url, { authProvider, fetch: network })
      const client = new v2.Client(self)
      return {
        client,
        open: () => client.connect(transport),
        finish: (answer: Record<string, string>) => transport.finishAuth(new URLSearchParams(answer)),
      }
    },
  },
]

describe.each(versions)('$name', ({ connect, stepsUpAlone }) => {
  test('SDK-55 it registers, signs in, calls a tool, steps up and refreshes', async () => {
    const { kept, provider } = newClient()
    sent = []
    const first = connect(provider)
    await expect(first.open()).rejects.toThrow('Unauthorized')
    expect(sent).toEqual([
      'POST /mcp',
      'GET /.well-known/oauth-protected-resource/mcp',
      'GET /.well-known/oauth-authorization-server',
      'POST /oauth/register',
    ])
    expect([kept.client.client_id.slice(0, 4), kept.client.scope]).toEqual(['dcr_', 'tools.read'])
    expect(kept.url?.searchParams.get('resource')).toBe(MCP)
    await first.finish(await allow(kept.url))
    expect(kept.tokens).toMatchObject({ token_type: 'Bearer', scope: 'tools.read', expires_in: 900 })

    const { client, open, finish } = connect(provider)
    await open()
    expect((await client.listTools()).tools.map(({ name }) => name)).toEqual(['read', 'write'])
    expect(await client.callTool({ name: 'read' })).toMatchObject({
      content: [{ text: 'read for tools.read' }],
    })

    if (!stepsUpAlone) kept.tokens = { ...kept.tokens, refresh_token: undefined }
    await expect(client.callTool({ name: 'write' })).rejects.toThrow('Unauthorized')
    expect(kept.url?.searchParams.get('scope')?.split(' ').sort()).toEqual(['tools.read', 'tools.write'])
    await finish(await allow(kept.url))
    expect(await client.callTool({ name: 'write' })).toMatchObject({
      content: [{ text: 'written for tools.read tools.write' }],
    })

    const before = kept.tokens.refresh_token
    app.clock.advance(20 * 60_000)
    sent = []
    expect((await client.callTool({ name: 'read' })).isError).toBeFalsy()
    expect(sent).toContain('POST /oauth/token')
    expect(kept.tokens.refresh_token).not.toBe(before)
    await client.close()
  })

  test('CMD-08 it signs in by its metadata document, and does not register', async () => {
    const { kept, provider } = newClient(DOCUMENT)
    sent = []
    const first = connect(provider)
    await expect(first.open()).rejects.toThrow('Unauthorized')
    expect([kept.client.client_id, kept.url?.searchParams.get('client_id')]).toEqual([DOCUMENT, DOCUMENT])
    expect(sent).not.toContain('POST /oauth/register')
    await first.finish(await allow(kept.url))
    const { client, open } = connect(provider)
    await open()
    expect(await client.callTool({ name: 'read' })).toMatchObject({
      content: [{ text: 'read for tools.read' }],
    })
    app.clock.advance(20 * 60_000)
    const before = kept.tokens.refresh_token
    expect((await client.callTool({ name: 'read' })).isError).toBeFalsy()
    expect(kept.tokens.refresh_token).not.toBe(before)
    await client.close()
  })

  test('SDK-55 a client that the server has forgotten registers again', async () => {
    const { kept, provider } = newClient()
    kept.client = { client_id: `dcr_${'x'.repeat(43)}`, redirect_uris: [REDIRECT], issuer: BASE }
    kept.tokens = { access_token: 'x', token_type: 'Bearer', refresh_token: 'x', issuer: BASE }
    sent = []
    const { open, finish } = connect(provider)
    await expect(open()).rejects.toThrow('Unauthorized')
    expect(sent.slice(-2)).toContain('POST /oauth/register')
    await finish(await allow(kept.url))
    const again = connect(provider)
    await again.open()
    expect((await again.client.callTool({ name: 'read' })).isError).toBeFalsy()
    await again.client.close()
  })
})
