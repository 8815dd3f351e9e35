/** Tests `gatehouse dev --mcp` with the unmodified client of the MCP TypeScript SDK. */
import { expect, test } from 'bun:test'
import type { OAuthClientProvider } from '@modelcontextprotocol/sdk/client/auth.js'
import { Client } from '@modelcontextprotocol/sdk/client/index.js'
import { StreamableHTTPClientTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js'
import { readSeed } from '#src/seed/read.ts'
import type { Json } from '#test/support/app.ts'
import { openBrowser } from '#test/support/browser.ts'
import { startDev } from '#test/support/development.ts'

const REDIRECT = 'http://127.0.0.1:6276/oauth/callback'

/** A client that keeps only the values that this login needs. */
const newProvider = () => {
  const kept: { client?: Json; tokens?: Json; verifier?: string; url?: URL } = {}
  const provider: OAuthClientProvider = {
    redirectUrl: REDIRECT,
    clientMetadata: {
      client_name: 'Inspector',
      redirect_uris: [REDIRECT],
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
    codeVerifier: () => kept.verifier ?? '',
  }
  return { kept, provider }
}

/** Signs in as alice and approves the consent. */
const openPerson = (issuer: string) => {
  const call = (path: string, init?: RequestInit) =>
    fetch(new URL(path, issuer), { ...init, redirect: 'manual' })
  const browser = openBrowser({ call, context: { config: { url: issuer } } } as never)
  return async (url: URL | undefined): Promise<string> => {
    const page = await browser.get(`${url?.pathname}${url?.search}&login_hint=alice`)
    const consent = await browser.follow(page)
    const answer = await browser.submit(consent, { decision: 'approve' }, '/oauth/consent')
    return new URL(answer.location ?? '').searchParams.get('code') ?? ''
  }
}

test('MCP-05 a client signs in with no set-up, calls a tool and steps up', async () => {
  await using server = await startDev(['--mcp', '--auto-login'])
  const { url, mcp_url } = server.ready
  expect(mcp_url).toMatch(/^http:\/\/localhost:\d+\/mcp$/)
  const allow = openPerson(url)
  const { kept, provider } = newProvider()
  const connect = async () => {
    const transport = new StreamableHTTPClientTransport(new URL(mcp_url), { authProvider: provider })
    return { transport, client: new Client({ name: 'test', version: '1.0.0' }) }
  }
  const first = await connect()
  await expect(first.client.connect(first.transport)).rejects.toThrow('Unauthorized')
  await first.transport.finishAuth(await allow(kept.url))

  const { client, transport } = await connect()
  await client.connect(transport)
  expect((await client.listTools()).tools.map(({ name }) => name)).toEqual(['whoami', 'roll'])
  const said = async (name: string) => ((await client.callTool({ name })) as Json).content[0].text
  expect(await said('whoami')).toContain('with the scopes tools.read.')
  await expect(client.callTool({ name: 'roll' })).rejects.toThrow('Unauthorized')
  await transport.finishAuth(await allow(kept.url))
  expect(await said('roll')).toMatch(/^The die shows [1-6]\.$/)
  await expect(client.callTool({ name: 'none' })).rejects.toThrow('The tool is unknown.')
  await client.close()
}, 30_000)

test('MCP-05 without --mcp no client registers, and there is no MCP server', async () => {
  await using server = await startDev()
  expect(server.ready.mcp_url).toBeUndefined()
  const metadata: Json = await (
    await fetch(`${server.ready.url}/.well-known/oauth-authorization-server`)
  ).json()
  expect(metadata.registration_endpoint).toBeUndefined()
})

test('MCP-05 a seed file keeps its own settings of the default organization', async () => {
  const { withMcp } = await import('#src/cli/dev-mcp.ts')
  const organizations = [{ slug: 'default', name: 'Ours', settings: { session_ttl: '12h' } }]
  const { entries, mistakes } = withMcp(readSeed({ organizations }), 'http://localhost:8081/mcp')
  expect(mistakes).toEqual([])
  expect(entries.organizations.map(({ value }) => [value.name, value.settings])).toEqual([
    ['Ours', { session_ttl: '12h', client_registration: 'open', client_metadata_documents: 'any' }],
  ])
  expect(entries.apis.map(({ value }) => value.identifier)).toEqual(['http://localhost:8081/mcp'])
})
