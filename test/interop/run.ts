/**
 * Tests unmodified clients of the Model Context Protocol at `gatehouse dev --mcp` and at `gatehouse serve`.
 * Each client signs in by itself and calls a tool. Chromium acts as the person. Prints what each client sent.
 * npm installs the clients into a temporary folder.
 */
import assert from 'node:assert/strict'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { Readable } from 'node:stream'
import * as v2 from '@modelcontextprotocol/client'
import { Client } from '@modelcontextprotocol/sdk/client/index.js'
import { StdioClientTransport } from '@modelcontextprotocol/sdk/client/stdio.js'
import { StreamableHTTPClientTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js'
import { $ } from 'bun'
import { listenMcp } from '#src/cli/dev-mcp.ts'
import { MCP_SCOPES } from '#src/dev/mcp-server.ts'
import type { Json } from '#test/support/app.ts'
import { closeChromium, openPage } from '#test/support/chromium.ts'
import { startDev } from '#test/support/development.ts'
import { EXECUTABLE } from '#test/support/executable.ts'

/** Name of the package that has Node 22, which the clients need. */
const NODE = `node-${process.platform}-${process.arch}`
const PACKAGES = [
  'mcp-remote@0.15.1',
  '@modelcontextprotocol/inspector@2.12.0',
  '@modelcontextprotocol/conformance@0.2.0-alpha.12',
  `${NODE}@22.23.3`,
]
/** Gatehouse contains a copy of this document, in case the document cannot be fetched. */
const DOCUMENT = 'https://claude.ai/oauth/claude-code-client-metadata'

const PASSWORD = 'Correct-Horse-Battery-7'

const folder = mkdtempSync(join(tmpdir(), 'gatehouse-interop-'))
const at = (path: string) => join(folder, 'node_modules', path)
console.log(`npm install ${PACKAGES.join(' ')} …`)
await $`npm init -y && npm install --no-audit --no-fund ${PACKAGES}`.cwd(folder).quiet()
const node = at(`${NODE}/bin/node`)

interface Target extends AsyncDisposable {
  name: string
  url: string
  mcp_url: string
  /**
   * Returns the requests since the last call, each with method, path, status and names of parameters. The
   * list is always empty for `gatehouse serve`.
   */
  asked(): Promise<string[]>
}

const development = async (): Promise<Target> => {
  const server = await startDev(['--mcp'])
  const { url, mcp_url, control_token } = server.ready
  const headers = { authorization: `Bearer ${control_token}` }
  return {
    name: 'gatehouse dev --mcp',
    url,
    mcp_url,
    asked: async () => {
      const { data } = (await (await fetch(`${url}/dev/requests`, { headers })).json()) as Json
      await fetch(`${url}/dev/requests`, { method: 'DELETE', headers })
      return data
        .filter(({ path }: Json) => !path.startsWith('/assets/'))
        .map((each: Json) => [each.method, each.path, each.status, ...Object.keys(each.parameters)].join(' '))
    },
    [Symbol.asyncDispose]: () => server[Symbol.asyncDispose](),
  }
}

/** Starts `gatehouse serve`, which allows one metadata document and clients that register themselves. */
const production = async (): Promise<Target> => {
  const mcp = listenMcp(0)
  const data_dir = join(folder, 'data')
  const seed_file = join(folder, 'seed.json')
  const settings = {
    client_registration: 'open',
    client_metadata_documents: 'allowlist',
    allowed_metadata_documents: [DOCUMENT],
  }
  const users = [{ username: 'alice', email: 'alice@example.com', first_name: 'Alice', password: PASSWORD }]
  writeFileSync(
    seed_file,
    JSON.stringify({
      organizations: [{ slug: 'default', name: 'Default', settings }],
      apis: [
        {
          identifier: mcp.url,
          name: 'Tools',
          open_to_dynamic_clients: true,
          scopes: MCP_SCOPES.map(name => ({ name })),
        },
      ],
      users: users.map(user => ({ ...user, last_name: 'Example', email_verified: true })),
    }),
  )
  const child = Bun.spawn([EXECUTABLE, 'serve'], {
    env: {
      PATH: process.env.PATH ?? '',
      GATEHOUSE_PORT: '0',
      GATEHOUSE_DATA_DIR: data_dir,
      GATEHOUSE_SEED_FILE: seed_file,
    },
    stdout: 'pipe',
    stderr: 'inherit',
  })
  const ready = Promise.withResolvers<Json>()
  const collect = async () => {
    let output = ''
    for await (const bytes of child.stdout) {
      output += new TextDecoder().decode(bytes)
      const [line] = output.match(/^\{"event":"ready".*$/m) ?? []
      if (line) ready.resolve(JSON.parse(line))
    }
  }
  void collect()
  const { url, port } = await ready.promise
  mcp.serve({ url, local_url: `http://127.0.0.1:${port}`, ca_file: null })
  return {
    name: 'gatehouse serve, registration open, documents by allowlist',
    url,
    mcp_url: mcp.url,
    asked: async () => [],
    [Symbol.asyncDispose]: async () => {
      child.kill()
      await child.exited
      await mcp.stop()
    },
  }
}

/** Signs in as alice in a fresh browser, approves the consent, and waits until the client has its answer. */
const authorize = async (address: string): Promise<void> => {
  const { page, close } = await openPage()
  page.setDefaultTimeout(10_000)
  await page.goto(address)
  const { origin } = new URL(address)
  while (new URL(page.url()).origin === origin) {
    const before = page.url()
    const [alice, password] = [page.getByTestId('user-alice'), page.locator('input[name=password]')]
    if ((await password.count()) > 0) {
      await page.locator('input[name=username]').fill('alice')
      await password.fill(PASSWORD)
    }
    const next = (await alice.count()) > 0 ? alice : page.getByRole('button', { name: /^(Allow|Sign in)$/ })
    await Promise.all([page.waitForURL(now => String(now) !== before), next.click()])
  }
  await close()
}

const environment = (home: string, more: Record<string, string> = {}) => ({
  PATH: process.env.PATH ?? '',
  HOME: join(folder, home),
  BROWSER: 'true',
  ...more,
})

/**
 * Reads the output of a client and approves each authorization request in the output. Resolves when the
 * client ends.
 */
const loginsIn = async (...streams: ReadableStream<Uint8Array>[]) => {
  let output = ''
  const logins: Promise<void>[] = []
  const read = async (stream: ReadableStream<Uint8Array>) => {
    const decoder = new TextDecoder()
    for await (const bytes of stream) {
      output += decoder.decode(bytes, { stream: true })
      const requests = output.match(/http:\/\/localhost:\d+\/oauth\/authorize\?\S+(?=\s)/g) ?? []
      for (const request of requests.slice(logins.length)) logins.push(authorize(request))
    }
  }
  await Promise.all(streams.map(read))
  await Promise.all(logins)
  return { output, logins: logins.length }
}

const run = async (command: string[], home: string, more?: Record<string, string>) => {
  const env = environment(home, more)
  const child = Bun.spawn(command, { env, stdin: 'ignore', stdout: 'pipe', stderr: 'pipe' })
  return { ...(await loginsIn(child.stdout, child.stderr)), code: await child.exited }
}

const stored = { MCP_AUTO_OPEN_ENABLED: 'true', MCP_INSPECTOR_SECRET_STORE: 'file' }
const WHO = /Alice Example is signed in with the scopes/

/**
 * Returns a provider of the TypeScript SDK, and a listener for the answers. The provider signs in through
 * Chromium.
 */
const openProvider = (clientMetadataUrl?: string) => {
  let answer = Promise.withResolvers<URLSearchParams>()
  const listener = Bun.serve({
    port: 0,
    hostname: '127.0.0.1',
    fetch: request => {
      const { pathname, searchParams } = new URL(request.url)
      if (pathname === '/callback') answer.resolve(searchParams)
      return new Response('Done')
    },
  })
  const redirectUrl = `http://127.0.0.1:${listener.port}/callback`
  const kept: { client?: Json; tokens?: Json; verifier?: string; discovery?: Json } = {}
  const provider = {
    ...(clientMetadataUrl && { clientMetadataUrl }),
    redirectUrl,
    clientMetadata: {
      client_name: 'Test client',
      redirect_uris: [redirectUrl],
      grant_types: ['authorization_code', 'refresh_token'],
      response_types: ['code'],
      token_endpoint_auth_method: 'none',
    },
    clientInformation: () => kept.client,
    saveClientInformation: (client: Json) => void Object.assign(kept, { client }),
    tokens: () => kept.tokens,
    saveTokens: (tokens: Json) => void Object.assign(kept, { tokens }),
    redirectToAuthorization: (url: URL) => authorize(url.href),
    saveCodeVerifier: (text: string) => void Object.assign(kept, { verifier: text }),
    codeVerifier: () => kept.verifier ?? '',
    saveDiscoveryState: (state: Json) => void Object.assign(kept, { discovery: state }),
    discoveryState: () => kept.discovery,
  }
  const nextAnswer = async () => {
    const parameters = await answer.promise
    answer = Promise.withResolvers()
    return parameters
  }
  return { provider, kept, nextAnswer, stop: () => listener.stop(true) }
}

type Provider = ReturnType<typeof openProvider>['provider']

const self = { name: 'test', version: '1.0.0' }

/** The versions of the SDK. `open` connects the client. `finish` passes the answer of an authorization. */
const versions = {
  '@modelcontextprotocol/sdk 1.x': {
    // If this client has a refresh token, it cannot step up. It refreshes the token with the current scopes
    // and then gives up.
    stepsUpAlone: false,
    connect: (mcp_url: string, authProvider: Provider) => {
      const transport = new StreamableHTTPClientTransport(new URL(mcp_url), { authProvider })
      const client = new Client(self)
      const finish = (answer: URLSearchParams) => transport.finishAuth(answer.get('code') ?? '')
      return { client, open: () => client.connect(transport), finish }
    },
  },
  '@modelcontextprotocol/client 2.x': {
    stepsUpAlone: true,
    connect: (mcp_url: string, authProvider: Provider) => {
      const transport = new v2.StreamableHTTPClientTransport(new URL(mcp_url), { authProvider })
      const client = new v2.Client(self)
      const finish = (answer: URLSearchParams) => transport.finishAuth(answer)
      return { client, open: () => client.connect(transport), finish }
    },
  },
}

/** Signs in, calls one tool, steps up to call the other tool, and refreshes the tokens. */
const useSdk = async (
  { stepsUpAlone, connect }: (typeof versions)[keyof typeof versions],
  mcp_url: string,
  clientMetadataUrl?: string,
): Promise<void> => {
  const { provider, kept, nextAnswer, stop } = openProvider(clientMetadataUrl)
  const first = connect(mcp_url, provider)
  await assert.rejects(first.open(), /Unauthorized/)
  await first.finish(await nextAnswer())
  assert.equal(kept.client?.client_id === clientMetadataUrl, clientMetadataUrl !== undefined)
  const { client, open, finish } = connect(mcp_url, provider)
  await open()
  const use = async (name: string) => ((await client.callTool({ name })) as Json).content[0].text
  assert.match(await use('whoami'), WHO)

  if (!stepsUpAlone) kept.tokens = { ...kept.tokens, refresh_token: undefined }
  await assert.rejects(use('roll'), /Unauthorized/)
  await finish(await nextAnswer())
  assert.match(await use('roll'), /The die shows/)
  assert.deepEqual(kept.tokens?.scope.split(' ').sort(), [...MCP_SCOPES].sort())

  const before = kept.tokens?.refresh_token
  assert.ok(before)
  kept.tokens = { ...kept.tokens, access_token: 'no token' }
  assert.match(await use('whoami'), WHO)
  assert.notEqual(kept.tokens?.refresh_token, before)
  await client.close()
  await stop()
}

const clientsOf = ({ url, mcp_url, name: home }: Target): Record<string, () => Promise<void>> => {
  const inspector = (tool: string, ...args: string[]) => [
    ...[node, at('@modelcontextprotocol/inspector/clients/launcher/build/index.js'), '--cli'],
    ...[
      '--server-url',
      mcp_url,
      '--transport',
      'http',
      '--method',
      'tools/call',
      '--tool-name',
      tool,
      ...args,
    ],
  ]
  return {
    ...Object.fromEntries(
      Object.entries(versions).flatMap(([name, version]) => [
        [`${name}, by registration, with step-up and refresh`, () => useSdk(version, mcp_url)],
        [
          `${name}, by the metadata document of Claude Code, with step-up and refresh`,
          () => useSdk(version, mcp_url, DOCUMENT),
        ],
      ]),
    ),
    'mcp-remote, by registration': async () => {
      const transport = new StdioClientTransport({
        command: node,
        args: [at('mcp-remote/dist/proxy.js'), mcp_url],
        env: environment(`${home} remote`),
        stderr: 'pipe',
      })
      const person = loginsIn(
        Readable.toWeb(transport.stderr as Readable) as unknown as ReadableStream<Uint8Array>,
      )
      const client = new Client(self)
      await client.connect(transport)
      const { content } = (await client.callTool({ name: 'whoami' })) as Json
      assert.match(content[0].text, WHO)
      await client.close()
      assert.equal((await person).logins, 1)
    },
    'Inspector, by registration': async () => {
      const { output, logins } = await run(inspector('whoami'), `${home} inspector`, stored)
      assert.match(output, WHO)
      assert.equal(logins, 1)
    },
    'Inspector, two calls at once with its stored login': async () => {
      const call = () =>
        run(inspector('whoami', '--use-stored-auth', '--stored-auth-only'), `${home} inspector`, stored)
      for (const { output, logins } of await Promise.all([call(), call()])) {
        assert.match(output, WHO)
        assert.equal(logins, 0)
      }
    },
    'Inspector, by the metadata document of Claude Code': async () => {
      const callback = ['--callback-url', 'http://127.0.0.1:6277/callback']
      const command = inspector('roll', '--client-metadata-url', DOCUMENT, ...callback)
      const { output, logins } = await run(command, `${home} document`, stored)
      assert.match(output, /The die shows/)
      assert.ok(output.includes(`client_id=${encodeURIComponent(DOCUMENT)}`))
      assert.equal(logins, 1)
    },
    'conformance, authorization': async () => {
      const redirect_uri = 'http://127.0.0.1:3456/callback'
      const answer = await fetch(`${url}/oauth/register`, {
        method: 'POST',
        headers: { 'content-type': 'application/json' },
        body: JSON.stringify({
          client_name: 'Conformance',
          redirect_uris: [redirect_uri],
          token_endpoint_auth_method: 'none',
          grant_types: ['authorization_code', 'refresh_token'],
        }),
      })
      const { client_id } = (await answer.json()) as Json
      const program = at('@modelcontextprotocol/conformance/dist/index.js')
      const command = [node, program, 'authorization', '--url', url, '--client-id', client_id]
      const { output, code } = await run(
        [...command, '--resource', mcp_url, '--port', '3456'],
        `${home} conformance`,
      )
      assert.match(output, /Total: \d+ passed, 0 failed/)
      assert.equal(code, 0)
    },
  }
}

let failed = 0
for (const open of [development, production]) {
  await using target = await open()
  console.log(`\n${target.name}`)
  for (const [name, logIn] of Object.entries(clientsOf(target))) {
    const error = await logIn().then(
      () => undefined,
      error => error,
    )
    if (error) failed++
    console.log(`  ${error ? 'FAILED' : 'ok    '} ${name}`)
    if (error) console.log(error)
    for (const line of await target.asked()) console.log(`           ${line}`)
  }
}
await closeChromium()
rmSync(folder, { recursive: true, force: true })
process.exit(failed ? 1 : 0)
