/** The unmodified client of the MCP TypeScript SDK logs in by itself at an MCP server that the SDK guards. */
import { expect, test } from 'bun:test'
import type { OAuthClientProvider } from '@modelcontextprotocol/sdk/client/auth.js'
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

const app = await startApp()
await app.admin('PUT', '/organizations/default', { settings: { client_registration: 'open' } })
await addUser(app, 'alice')
await create(app, '/apis', {
  identifier: MCP,
  name: 'Tools',
  scopes: [{ name: 'tools.read' }, { name: 'tools.write' }],
  open_to_dynamic_clients: true,
})

/** A server of two tools without sessions. */
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

/** Requests of the client, in order: method and path. */
let sent: string[] = []
const network = async (input: string | URL, init?: RequestInit): Promise<Response> => {
  const url = new URL(input)
  sent.push(`${init?.method ?? 'GET'} ${url.pathname}`)
  return url.origin === BASE
    ? app.call(`${url.pathname}${url.search}`, init)
    : guarded(new Request(url, init))
}

/** A client that has registered nowhere, and the values that it keeps. */
const newClient = () => {
  const kept: { client?: Json; tokens?: Json; verifier?: string; url?: URL } = {}
  const provider: OAuthClientProvider = {
    redirectUrl: REDIRECT,
    clientMetadata: {
      client_name: 'Test client',
      redirect_uris: [REDIRECT],
      grant_types: ['authorization_code', 'refresh_token'],
      response_types: ['code'],
      token_endpoint_auth_method: 'none',
    },
    clientInformation: () => kept.client,
    saveClientInformation: client => {
      kept.client = client
    },
    tokens: () => kept.tokens,
    saveTokens: tokens => {
      kept.tokens = tokens
    },
    redirectToAuthorization: url => {
      kept.url = url
    },
    saveCodeVerifier: text => {
      kept.verifier = text
    },
    invalidateCredentials: scope => {
      if (scope === 'all' || scope === 'client') kept.client = undefined
      if (scope === 'all' || scope === 'tokens') kept.tokens = undefined
    },
    codeVerifier: () => kept.verifier ?? '',
  }
  return { kept, provider }
}

const browser = openBrowser(app)
/** Opens the authorization request as the client's browser would; returns the code. */
const allow = async (url: URL | undefined): Promise<string> => {
  const page = await browser.get(`${url?.pathname}${url?.search}`)
  const consent = page.html.includes('/oauth/login')
    ? await signIn(browser, page, 'alice')
    : await browser.follow(page)
  return answerOf(await browser.submit(consent, { decision: 'approve' }, '/oauth/consent')).code ?? ''
}

const connect = async (provider: OAuthClientProvider) => {
  const transport = new StreamableHTTPClientTransport(new URL(MCP), {
    authProvider: provider,
    fetch: network,
  })
  const client = new Client({ name: 'test', version: '1.0.0' })
  return { transport, client }
}

test('SDK-55 it registers, logs in, calls a tool, steps up and refreshes', async () => {
  const { kept, provider } = newClient()
  const first = await connect(provider)
  await expect(first.client.connect(first.transport)).rejects.toThrow('Unauthorized')
  expect(sent).toEqual([
    'POST /mcp',
    'GET /.well-known/oauth-protected-resource/mcp',
    'GET /.well-known/oauth-authorization-server',
    'POST /oauth/register',
  ])
  expect([kept.client.client_id.slice(0, 4), kept.client.scope]).toEqual(['dcr_', 'tools.read'])
  expect(kept.url?.searchParams.get('resource')).toBe(MCP)
  await first.transport.finishAuth(await allow(kept.url))
  expect(kept.tokens).toMatchObject({ token_type: 'Bearer', scope: 'tools.read', expires_in: 900 })

  const { client, transport } = await connect(provider)
  await client.connect(transport)
  expect((await client.listTools()).tools.map(({ name }) => name)).toEqual(['read', 'write'])
  expect(await client.callTool({ name: 'read' })).toMatchObject({
    content: [{ text: 'read for tools.read' }],
  })

  // With a refresh token the client refreshes for the scopes that it has, and gives up.
  kept.tokens = { ...kept.tokens, refresh_token: undefined }
  await expect(client.callTool({ name: 'write' })).rejects.toThrow('Unauthorized')
  expect(kept.url?.searchParams.get('scope')?.split(' ').sort()).toEqual(['tools.read', 'tools.write'])
  await transport.finishAuth(await allow(kept.url))
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

test('SDK-55 a client that the server has forgotten registers anew', async () => {
  const { kept, provider } = newClient()
  kept.client = { client_id: `dcr_${'x'.repeat(43)}`, redirect_uris: [REDIRECT], issuer: BASE }
  kept.tokens = { access_token: 'x', token_type: 'Bearer', refresh_token: 'x', issuer: BASE }
  sent = []
  const { client, transport } = await connect(provider)
  await expect(client.connect(transport)).rejects.toThrow('Unauthorized')
  expect(sent.slice(-2)).toContain('POST /oauth/register')
  await transport.finishAuth(await allow(kept.url))
  const again = await connect(provider)
  await again.client.connect(again.transport)
  expect((await again.client.callTool({ name: 'read' })).isError).toBeFalsy()
  await again.client.close()
})
