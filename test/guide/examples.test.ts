/** Checks the commands and examples of the guide. */
import { expect, test } from 'bun:test'
import { mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { program } from '#src/cli/program.ts'
import { serverProgramFor } from '#src/console/app/server-program.ts'
import { applicationOf, snippets } from '#src/directory/clients/snippets.ts'
import { guideSections } from '#src/guide/pages.ts'
import { parseClientAuth } from '#src/protocol/oauth/client-auth.ts'
import type { Json } from '#test/support/app.ts'
import { openBrowser } from '#test/support/browser.ts'
import { EXECUTABLE, gatehouse, SECRET, serveExecutable } from '#test/support/executable.ts'
import { addUser, signIn } from '#test/support/people.ts'
import { remote } from '#test/support/remote.ts'

const scriptsOf = (language: string) =>
  guideSections
    .flatMap(({ pages }) => pages)
    .flatMap(({ subject, blocks }) =>
      blocks.flatMap(block =>
        block.type === 'code' && block.language === language ? [{ subject, text: block.text }] : [],
      ),
    )
const scripts = scriptsOf('sh')

test('every script named in the guide exists', async () => {
  expect(scripts.length).toBeGreaterThan(15)
  for (const { subject, text } of scripts) {
    const { exitCode, stderr } = await Bun.$`sh -n -c ${text}`.nothrow().quiet()
    expect([subject, exitCode, stderr.toString()]).toEqual([subject, 0, ''])
  }
})

test('every command in a script exists, with the options used', () => {
  const lines = scripts.flatMap(({ text }) =>
    text
      .replaceAll('\\\n', ' ')
      .split('\n')
      .map(line => line.replace(/\s+#.*| -- .*/g, ''))
      .filter(line => line.startsWith('gatehouse ')),
  )
  expect(lines.length).toBeGreaterThan(20)
  for (const line of lines) {
    let command = program()
    for (const word of line.split(' ').slice(1)) {
      const next = command.commands.find(each => each.name() === word)
      if (!next) break
      command = next
    }
    const known = command.options.map(({ long }) => long)
    expect([line, command.commands.length]).toEqual([line, 0])
    for (const [option] of line.matchAll(/--[a-z-]+/g))
      expect([line, known]).toEqual([line, expect.arrayContaining([option])])
  }
})

test('the programs of "Connect an application" equal those that the command prints', () => {
  const shop = {
    kind: 'web' as const,
    client_id: 'shop',
    redirect_uris: ['http://localhost:3000/callback'],
    post_logout_redirect_uris: ['http://localhost:3000/'],
    web_origins: [],
    scopes: ['openid', 'profile', 'email'],
    token_endpoint_auth_method: 'client_secret_basic',
  }
  const orders = { ...shop, kind: 'service' as const, client_id: 'orders', scopes: ['orders:read'] }
  const codeFor = (client: typeof shop | typeof orders) =>
    snippets(applicationOf('https://id.example.com', client, 'default'))[0]?.code
  const { blocks = [] } =
    guideSections.flatMap(({ pages }) => pages).find(({ subject }) => subject === 'connect') ?? {}
  const text = blocks.flatMap(block => (block.type === 'code' ? [block.text] : []))
  expect(text).toContain(codeFor(shop) ?? '')
  expect(text.some(script => script.endsWith(codeFor(orders) ?? '-'))).toBe(true)
})

test('the shell command of a service passes each scope as it is, with quotes and other special characters', async () => {
  const scopes = ["it's&$(id)", 'orders:read']
  const orders = {
    kind: 'service' as const,
    client_id: 'orders',
    redirect_uris: [],
    post_logout_redirect_uris: [],
    web_origins: [],
    scopes,
    token_endpoint_auth_method: 'client_secret_basic',
  }
  await using server = Bun.serve({ port: 0, fetch: async request => new Response(await request.text()) })
  const [curl] = snippets(applicationOf(server.url.origin, orders, 'default'))
  const sent = await Bun.$`sh -c ${curl?.code}`.env({ ...process.env, CLIENT_SECRET: SECRET }).text()
  expect(new URLSearchParams(sent).get('scope')).toBe(scopes.join(' '))
})

test.each([
  ['orders', SECRET],
  ['https://orders.example.com:8443/~id', 'mB3+x/9kQ2Zt:50%-"$HOME" of 100%25'],
])('the shell command of a service authenticates %s with the secret %s', async (client_id, CLIENT_SECRET) => {
  const token_endpoint_auth_method = 'client_secret_basic'
  const client = { client_id, token_endpoint_auth_method, kind: 'service' as const, scopes: [] }
  const lists = { redirect_uris: [], post_logout_redirect_uris: [], web_origins: [] }
  await using server = Bun.serve({
    port: 0,
    fetch: async request => {
      const form = new Map(new URLSearchParams(await request.text()))
      return Response.json(parseClientAuth(request.headers.get('authorization'), form))
    },
  })
  const [curl] = snippets(applicationOf(server.url.origin, { ...client, ...lists }, 'default'))
  const sent = await Bun.$`sh -c ${curl?.code}`.env({ ...process.env, CLIENT_SECRET }).json()
  expect(sent).toEqual({ method: 'client_secret_post', client_id, client_secret: CLIENT_SECRET })
})

test('the server program takes origin and path of a redirect URI as texts, with quotes', () => {
  const uri = new URL("http://localhost:8080/a'+stolen()+'$'")
  const program = scriptsOf('js').find(({ text }) => text.startsWith('import { createServer'))?.text ?? ''
  const code = serverProgramFor(program, uri)
  const [, path = ''] = /url\.pathname === (.*)\) \{/.exec(code.replace("=== '/'", '')) ?? []
  expect(new Function('stolen', `return ${path}`)(() => 'stolen')).toBe(uri.pathname)
  expect(code).toContain(`new URL('${uri.origin}')`)
})

test('each client of "Connect an application" is registered by its command', async () => {
  await using server = await serveExecutable()
  const env = { GATEHOUSE_DATA_DIR: server.data_dir, GATEHOUSE_URL: server.url }
  const lines = scripts
    .filter(({ subject }) => subject === 'connect')
    .flatMap(({ text }) => text.replaceAll('\\\n', ' ').split('\n'))
    .filter(line => line.startsWith('gatehouse client create'))
  expect(lines).toHaveLength(8)
  for (const line of lines)
    expect(await gatehouse([...line.split(/\s+/).slice(1), '--json'], env)).toMatchObject({
      code: 0,
      stderr: '',
    })
  const { data } = (await server.admin('GET', '/clients')).body
  expect(data.map(({ client_id, kind }: Json) => [client_id, kind])).toEqual(
    expect.arrayContaining([
      ['grafana', 'web'],
      ['shop', 'web'],
      ['board', 'spa'],
      ['phone', 'native'],
      ['orders', 'service'],
      ['wiki', 'web'],
      ['kubernetes', 'native'],
      ['desk', 'spa'],
    ]),
  )
}, 30_000)

test('the first call and the script of the admin API run unchanged, and then the code flow by hand', async () => {
  await using server = await serveExecutable()
  const folder = mkdtempSync(join(tmpdir(), 'gatehouse-'))
  symlinkSync(EXECUTABLE, join(folder, 'gatehouse'))
  mkdirSync(join(folder, 'data'))
  writeFileSync(
    join(folder, 'data/admin-client.json'),
    JSON.stringify({ client_id: 'gatehouse-admin', client_secret: SECRET }, null, 2),
  )
  const [first = '', script = ''] = scripts.flatMap(({ subject, text }) => (subject === 'api' ? [text] : []))
  await addUser(remote(server), 'root', { roles: ['admin'] })
  const call = first.replace('http://localhost:8080', server.url).replace('NAME', 'root')
  const env = { PATH: `${folder}:${process.env.PATH}`, GATEHOUSE_DATA_DIR: server.data_dir }
  expect((await Bun.$`sh -c ${call}`.env(env).json()).data).toMatchObject([{ username: 'root' }])
  const asked = script.replace('http://localhost:8080', server.url)
  const answers = (await Bun.$`sh -c ${asked}`.cwd(folder).text()).trim().split('\n')
  const [organization, role, user, client, users, events] = answers.map(line => JSON.parse(line))
  expect(organization).toMatchObject({ slug: 'acme', settings: { session_ttl: '12h' } })
  expect(role).toMatchObject({ name: 'editor', permissions: ['users:read'] })
  expect(user).toMatchObject({ username: 'alice', roles: ['editor', 'user'] })
  expect(client).toMatchObject({ client_id: 'kiosk', type: 'public' })
  expect(users.data.map(({ username }: { username: string }) => username)).toEqual(['alice'])
  expect(events.data).toHaveLength(2)
  const [flow = ''] = scripts.flatMap(({ subject, text }) => (subject === 'clients' ? [text] : []))
  const [before = '', after = ''] = flow.split(/^# Open it.*\n(?:#.*\n)+/m)
  const started = `${before}echo $VERIFIER`
  const [url = '', verifier = ''] = (await Bun.$`sh -c ${started}`.env({ ...env, BASE: server.url }).text())
    .trim()
    .split('\n')
  const browser = openBrowser(remote(server))
  const page = await signIn(
    browser,
    await browser.get(url.replace(server.url, '')),
    'alice',
    'Correct-Horse-7',
  )
  const allowed = await browser.follow(await browser.submit(page, { decision: 'approve' }))
  const code = new URL(allowed.location ?? '').searchParams.get('code') ?? ''
  const redeemed = await Bun.$`sh -c ${after}`
    .env({ ...env, BASE: server.url, CODE: code, VERIFIER: verifier })
    .json()
  expect(redeemed).toMatchObject({ token_type: 'Bearer', scope: 'openid profile' })
  rmSync(folder, { recursive: true })
})
