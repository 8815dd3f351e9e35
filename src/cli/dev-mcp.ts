import { readFileSync } from 'node:fs'
import { ConfigError } from '#src/config.ts'
import { MCP_SCOPES, mcpServer } from '#src/dev/mcp-server.ts'
import { createVerifier } from '#src/resource-server/index.ts'
import { type ReadSeed, readSeed } from '#src/seed/read.ts'
import type { Started } from '#src/testing/start.ts'

/** MCP server that `gatehouse dev --mcp` runs. */
export interface McpListener {
  /** URL that clients call. In the seed it identifies the API of the MCP server. */
  readonly url: string
  /** Starts to answer requests. */
  serve(started: Pick<Started, 'url' | 'local_url' | 'ca_file'>): void
  stop(): Promise<void>
}

/**
 * Opens the port of the MCP server. This happens before the development server starts, because the seed
 * contains the URL of the MCP server.
 *
 * @param port 0 means any free port
 * @throws ConfigError when the port is in use
 */
export const listenMcp = (port: number): McpListener => {
  const ready = Promise.withResolvers<(request: Request) => Promise<Response>>()
  const listener = listen(port, async request => (await ready.promise)(request))
  const url = `http://localhost:${listener.port}/mcp`
  return {
    url,
    serve: ({ url: issuer, local_url, ca_file }) => {
      const tls = ca_file ? { ca: readFileSync(ca_file, 'utf8') } : undefined
      const verifier = createVerifier({
        issuer,
        resource: url,
        realm: 'default',
        jwksUri: `${local_url}/.well-known/jwks.json`,
        fetch: (input, init) => fetch(input, { ...init, ...(tls && { tls }) }),
      })
      ready.resolve(mcpServer(verifier))
    },
    stop: () => listener.stop(true),
  }
}

const listen = (port: number, fetch: (request: Request) => Promise<Response>) => {
  try {
    return Bun.serve({ hostname: '127.0.0.1', port, fetch })
  } catch {
    throw new ConfigError(`--mcp: port ${port} is in use by another program: choose another --port, or 0.`)
  }
}

/** Settings that allow any dynamic client. */
const OPEN = { client_registration: 'open', client_metadata_documents: 'any' } as const

/** Adds the API of the MCP server to the seed, and policies that allow any dynamic client. */
export const withMcp = (seed: ReadSeed, url: string): ReadSeed => {
  const own = readSeed({
    organizations: [{ slug: 'default', name: 'Default', settings: OPEN }],
    apis: [
      {
        identifier: url,
        name: 'Development tools',
        open_to_dynamic_clients: true,
        scopes: [
          { name: MCP_SCOPES[0], texts: { en: 'Use the tools in your name' } },
          { name: MCP_SCOPES[1], texts: { en: 'Roll a die' } },
        ],
      },
    ],
  })
  const { organizations, apis } = seed.entries
  const given = organizations.find(({ value }) => value.slug === 'default')
  const opened = given && {
    ...given,
    given: new Set([...given.given, 'settings']),
    value: { ...given.value, settings: { ...given.value.settings, ...OPEN } },
  }
  return {
    ...seed,
    present: new Set([...seed.present, 'organizations', 'apis']),
    entries: {
      ...seed.entries,
      organizations: opened
        ? organizations.map(entry => (entry === given ? opened : entry))
        : [...organizations, ...own.entries.organizations],
      apis: [...apis, ...own.entries.apis],
    },
  }
}
