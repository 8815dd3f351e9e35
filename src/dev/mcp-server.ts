import type { Claims } from '#src/resource-server/claims.ts'
import { protect, type ResourceVerifier, requireScopes } from '#src/resource-server/mcp.ts'

/**
 * Scopes of the MCP server. Each request needs the first scope. The tool `roll` also needs the second scope.
 */
export const MCP_SCOPES = ['tools.read', 'tools.roll'] as const

const PROTOCOL = '2025-11-25'

/** A request or notification of JSON-RPC 2.0. */
interface Message {
  id?: string | number
  method: string
  params?: { protocolVersion?: unknown; name?: unknown }
}

const inputSchema = { type: 'object', properties: {} }
const tools = [
  { name: 'whoami', description: 'Says who is signed in, and with which scopes.', inputSchema },
  { name: 'roll', description: `Rolls a die. It needs the scope ${MCP_SCOPES[1]}.`, inputSchema },
]

/** CORS headers that let pages of other origins use the server. */
const cors = {
  'access-control-allow-origin': '*',
  'access-control-allow-methods': 'GET, POST, DELETE',
  'access-control-allow-headers': 'authorization, content-type, mcp-protocol-version, mcp-session-id',
  'access-control-expose-headers': 'www-authenticate',
}

/**
 * Returns an MCP server with two tools and without sessions. `verifier` checks the access token of each
 * request. Streamable HTTP: https://modelcontextprotocol.io/specification/2025-11-25/basic/transports
 */
export const mcpServer = (verifier: ResourceVerifier) => {
  const guarded = protect(verifier, answer, {
    scopes: [MCP_SCOPES[0]],
    scopesSupported: MCP_SCOPES,
    name: 'Gatehouse development tools',
  })
  return async (request: Request): Promise<Response> => {
    if (request.method === 'OPTIONS') return new Response(null, { status: 204, headers: cors })
    const response = await guarded(request)
    for (const [name, value] of Object.entries(cors)) response.headers.set(name, value)
    return response
  }
}

const answer = async (request: Request, claims: Claims | undefined): Promise<Response> => {
  if (!claims || request.method !== 'POST')
    return new Response(null, { status: 405, headers: { allow: 'POST' } })
  const message: Partial<Message> | null = await request.json().catch(() => null)
  if (typeof message?.method !== 'string') return rpc(null, { error: [-32600, 'The body is not a request.'] })
  if (message.id === undefined) return new Response(null, { status: 202 })
  return rpc(message.id, call(message as Message, claims))
}

type Outcome = { result: object } | { error: [code: number, message: string] }

const call = ({ method, params }: Message, claims: Claims): Outcome => {
  if (method === 'initialize') {
    const { protocolVersion } = params ?? {}
    return {
      result: {
        protocolVersion: typeof protocolVersion === 'string' ? protocolVersion : PROTOCOL,
        capabilities: { tools: {} },
        serverInfo: { name: 'gatehouse-dev', version: '1.0.0' },
      },
    }
  }
  if (method === 'ping') return { result: {} }
  if (method === 'tools/list') return { result: { tools } }
  if (method !== 'tools/call') return { error: [-32601, 'The method is unknown.'] }
  if (params?.name === 'whoami') {
    return said(`${claims.name ?? claims.sub} is signed in with the scopes ${claims.scope}.`)
  }
  if (params?.name !== 'roll') return { error: [-32602, 'The tool is unknown.'] }
  requireScopes(claims, MCP_SCOPES)
  return said(`The die shows ${1 + ((crypto.getRandomValues(new Uint32Array(1))[0] ?? 0) % 6)}.`)
}

const said = (text: string): Outcome => ({ result: { content: [{ type: 'text', text }] } })

const rpc = (id: string | number | null, outcome: Outcome): Response =>
  Response.json({
    jsonrpc: '2.0',
    id,
    ...('error' in outcome ? { error: { code: outcome.error[0], message: outcome.error[1] } } : outcome),
  })
