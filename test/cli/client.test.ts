/**
 * Tests `gatehouse client create` while a server runs. The printed programs sign users in without a change.
 */
import { Database } from 'bun:sqlite'
import { afterAll, beforeAll, expect, test } from 'bun:test'
import { mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import * as openid from 'openid-client'
import { createVerifier } from '#src/resource-server/index.ts'
import type { Json } from '#test/support/app.ts'
import { openBrowser } from '#test/support/browser.ts'
import { closeChromium, openPage, testInChromium } from '#test/support/chromium.ts'
import { gatehouse, type Running, serveExecutable } from '#test/support/executable.ts'
import { freePort } from '#test/support/free-port.ts'
import { addUser, PASSWORD, signIn } from '#test/support/people.ts'
import { remote } from '#test/support/remote.ts'

const root = join(import.meta.dir, '../..')
const folder = mkdtempSync(join(tmpdir(), 'gatehouse-'))
symlinkSync(join(root, 'node_modules'), join(folder, 'node_modules'))
const paths = { '@gatehouse/resource-server/*': [join(root, 'src/resource-server/*.ts')] }
writeFileSync(join(folder, 'tsconfig.json'), JSON.stringify({ compilerOptions: { paths } }))

let server: Running & AsyncDisposable
let env: Record<string, string>

beforeAll(async () => {
  server = await serveExecutable()
  env = { GATEHOUSE_DATA_DIR: server.data_dir, GATEHOUSE_URL: server.url }
  await addUser(remote(server), 'alice')
  await server.admin('POST', '/organizations', { name: 'Acme', slug: 'acme' })
}, 30_000)
afterAll(async () => {
  await closeChromium()
  await server[Symbol.asyncDispose]()
  rmSync(folder, { recursive: true })
})

const createClient = (...args: string[]) => gatehouse(['client', 'create', ...args], env)
/** Runs `client create`. Returns the printed settings by name, and each printed program. */
const created = async (...args: string[]) => {
  const { code, stdout, stderr } = await createClient(...args)
  expect([code, stderr]).toEqual([0, ''])
  const settings = [...stdout.matchAll(/^(\S[\w ]+?) {2,}(.+)$/gm)].map(([, name = '', value = '']) => [
    name,
    value,
  ])
  const codes = [...stdout.matchAll(/:\n\n((?: {2}.*\n|\n)+)/g)].map(([, text = '']) =>
    text.replace(/^ {2}/gm, ''),
  )
  return { settings: Object.fromEntries(settings) as Record<string, string>, codes }
}
const secretOf = (settings: Record<string, string>): string => settings['Client secret']?.split(' ')[0] ?? ''
const total = async (list: string): Promise<number> => (await server.admin('GET', list)).body.pagination.total
/** Signs alice in, gives her consent if asked, and returns the URL of the last redirect. */
const comeBack = async (url: URL, browser = openBrowser(remote(server))): Promise<string> => {
  const page = await signIn(browser, await browser.get(url.pathname + url.search), 'alice')
  const answer = page.location ? page : await browser.submit(page, { decision: 'approve' })
  return (await browser.follow(answer)).location ?? ''
}

test('RUN-29 a web application: its settings are registered, and the openid-client code signs in', async () => {
  const redirect = 'http://localhost:4000/callback'
  const { settings, codes } = await created('shop', '--kind', 'web', '--redirect', redirect)
  const { url } = server
  expect(settings).toEqual({
    Issuer: url,
    'Discovery URL': `${url}/.well-known/openid-configuration`,
    'Client ID': 'shop',
    'Client secret': expect.stringMatching(/^[\w-]{43} {2}\(shown once: keep it now\)$/),
    'Redirect URL': redirect,
    'After logout': 'http://localhost:4000/',
    Scopes: 'openid profile email offline_access',
    'Authorize URL': `${url}/oauth/authorize`,
    'Token URL': `${url}/oauth/token`,
    'Userinfo URL': `${url}/oauth/userinfo`,
    'Logout URL': `${url}/oauth/logout`,
    PKCE: 'S256, required',
  })
  const discovery = (await (await fetch(settings['Discovery URL'] ?? '')).json()) as Json
  expect(discovery).toMatchObject({
    issuer: settings.Issuer,
    authorization_endpoint: settings['Authorize URL'],
    token_endpoint: settings['Token URL'],
    userinfo_endpoint: settings['Userinfo URL'],
    end_session_endpoint: settings['Logout URL'],
  })
  expect((await server.admin('GET', '/clients/shop')).body).toMatchObject({
    name: 'shop',
    type: 'confidential',
    kind: 'web',
    organization_id: 'org_default',
    redirect_uris: [redirect],
    post_logout_redirect_uris: ['http://localhost:4000/'],
    consent_required: true,
    web_origins: [],
    grant_types: ['authorization_code', 'refresh_token'],
    scopes: ['openid', 'profile', 'email', 'offline_access'],
  })
  expect((await server.admin('GET', '/events?target_id=shop')).body.data).toMatchObject([
    { type: 'client.created', actor_id: null },
  ])

  const program = join(folder, 'web.js')
  writeFileSync(program, codes[0] ?? '')
  process.env.CLIENT_SECRET = secretOf(settings)
  const { startLogin, finishLogin } = await import(program)
  delete process.env.CLIENT_SECRET
  const session = {}
  const { user } = await finishLogin(await comeBack(await startLogin(session)), session)
  expect(user).toMatchObject({ iss: url, aud: 'shop', preferred_username: 'alice' })
}, 60_000)

test('RUN-29 a web application: the server of the guide greets the user, and signs out, and names a wrong secret', async () => {
  const guide = readFileSync(join(root, 'templates/guide/connect.md'), 'utf8')
  const app = guide.match(/^import \{ createServer.*?(?=^```)/ms)?.[0] ?? ''
  const port = freePort()
  const origin = `http://localhost:${port}`
  const { settings, codes } = await created('guided', '--kind', 'web', '--redirect', `${origin}/callback`)
  writeFileSync(join(folder, 'login.mjs'), codes[0] ?? '')
  writeFileSync(join(folder, 'app.mjs'), app.replaceAll('3000', `${port}`))
  const greeting = async (CLIENT_SECRET: string) => {
    await using started = Bun.spawn([process.execPath, 'app.mjs'], {
      cwd: folder,
      env: { ...process.env, CLIENT_SECRET },
      stdout: 'pipe',
    })
    const { value } = await started.stdout.getReader().read()
    expect(new TextDecoder().decode(value)).toBe(`${origin}/\n`)
    const open = (url: string, from?: Response) => {
      const cookie = from?.headers.get('set-cookie')?.split(';')[0] ?? ''
      return fetch(url, { redirect: 'manual', headers: { cookie } })
    }
    expect((await open(`${origin}/favicon.ico`)).status).toBe(404)
    const strange = await open(`${origin}/callback?code=x`)
    expect([strange.status, await strange.text()]).toEqual([
      400,
      `This login was started elsewhere or before a restart: open ${origin}`,
    ])
    const left = await open(origin)
    const browser = openBrowser(remote(server))
    const back = await open(await comeBack(new URL(left.headers.get('location') ?? ''), browser), left)
    if (back.status !== 303) return [back.status, await back.text()]
    const greeted = await open(origin, back)
    const again = await open(`${origin}/callback?code=x`, back)
    expect([again.status, again.headers.get('location')]).toEqual([303, '/'])
    const logout = await open(`${origin}/logout`, back)
    const { pathname, search } = new URL(logout.headers.get('location') ?? '')
    const { location } = await browser.follow(await browser.get(pathname + search))
    return [greeted.status, await greeted.text(), greeted.headers.get('content-type'), location]
  }
  expect(await greeting(secretOf(settings))).toEqual([
    200,
    '<!doctype html><title>App</title><p>Hello alice</p><a href="/logout">Sign out</a>',
    'text/html; charset=utf-8',
    `${origin}/`,
  ])
  expect(await greeting('another')).toEqual([
    500,
    expect.stringMatching(
      /^invalid_client: .+\nCLIENT_SECRET is not the secret.*gatehouse client secret NAME/,
    ),
  ])
  await using started = Bun.spawn([process.execPath, 'app.mjs'], { cwd: folder, stderr: 'pipe' })
  expect(await started.exited).toBe(1)
  expect(await new Response(started.stderr).text()).toContain('Set CLIENT_SECRET to the secret.')
}, 60_000)

testInChromium(
  'RUN-29 a single-page application: its origin may call, and the code for oauth4webapi signs in',
  async () => {
    const entry = join(folder, 'app.js')
    let script = ''
    const html =
      '<!doctype html><title>App</title><button>In</button><script type="module" src="/app.js"></script>'
    using site = Bun.serve({
      hostname: 'localhost',
      port: 0,
      routes: {
        '/app.js': () => new Response(script, { headers: { 'content-type': 'text/javascript' } }),
        '/*': () => new Response(html, { headers: { 'content-type': 'text/html' } }),
      },
    })
    const { page, close } = await openPage()
    const origin = `http://localhost:${site.port}`
    const redirect = `${origin}/callback`
    const { settings, codes } = await created('spa', '--kind', 'spa', '--redirect', redirect)
    expect([settings['Web origin'], secretOf(settings)]).toEqual([origin, ''])
    writeFileSync(join(folder, 'spa.js'), codes[0] ?? '')
    writeFileSync(
      entry,
      `import { finishLogin, startLogin } from './spa.js'
if (location.pathname === '/callback') document.title = 'Hello ' + (await finishLogin()).claims.preferred_username
else document.querySelector('button').onclick = startLogin`,
    )
    const { outputs } = await Bun.build({ entrypoints: [entry], target: 'browser' })
    script = (await outputs[0]?.text()) ?? ''
    await page.goto(origin)
    await page.click('button')
    await page.fill('[name=username]', 'alice')
    await page.fill('[name=password]', PASSWORD)
    await page.press('[name=password]', 'Enter')
    await page.click('[name=decision][value=approve]')
    await page.waitForFunction(() => document.title === 'Hello alice')
    await close()
    expect((await server.admin('GET', '/clients/spa')).body).toMatchObject({
      type: 'public',
      kind: 'spa',
      web_origins: [origin],
    })
  },
  60_000,
)

test('RUN-29 a native application: the AppAuth settings sign in, on any port of the device', async () => {
  const redirects = ['com.example.app:/callback', 'http://127.0.0.1/callback']
  const { settings, codes } = await created(
    'phone',
    '--kind',
    'native',
    ...redirects.flatMap(redirect => ['--redirect', redirect]),
  )
  expect(secretOf(settings)).toBe('')
  const app = JSON.parse(codes[0] ?? '')
  expect(app).toEqual({
    issuer: server.url,
    clientId: 'phone',
    redirectUrl: redirects[0],
    scopes: ['openid', 'profile', 'email'],
    usePKCE: true,
  })
  const config = await openid.discovery(new URL(app.issuer), app.clientId, undefined, openid.None(), {
    execute: [openid.allowInsecureRequests],
  })
  for (const redirect_uri of [app.redirectUrl, 'http://127.0.0.1:51234/callback']) {
    const verifier = openid.randomPKCECodeVerifier()
    const url = openid.buildAuthorizationUrl(config, {
      redirect_uri,
      scope: app.scopes.join(' '),
      code_challenge: await openid.calculatePKCECodeChallenge(verifier),
      code_challenge_method: 'S256',
    })
    const tokens = await openid.authorizationCodeGrant(config, new URL(await comeBack(url)), {
      pkceCodeVerifier: verifier,
    })
    expect(tokens.claims()).toMatchObject({ aud: 'phone', email: 'alice@example.com' })
  }
}, 60_000)

test('RUN-29 a service: curl and the service package get its token', async () => {
  const { settings, codes } = await created(
    'orders',
    '--kind',
    'service',
    '--scope',
    'orders:read',
    'orders:write',
  )
  expect(Object.keys(settings)).toEqual([
    'Issuer',
    'Discovery URL',
    'Client ID',
    'Client secret',
    'Scopes',
    'Token URL',
  ])
  const [curl = '', program = ''] = codes
  const CLIENT_SECRET = secretOf(settings)
  const verifier = createVerifier({ issuer: server.url, audience: 'orders' })
  const answer = await Bun.$`sh -c ${curl}`.env({ PATH: process.env.PATH ?? '', CLIENT_SECRET }).json()
  expect(await verifier.verify(answer.access_token)).toMatchObject({
    sub: 'orders',
    scope: 'orders:read orders:write',
  })
  writeFileSync(join(folder, 'service.js'), program)
  process.env.CLIENT_SECRET = CLIENT_SECRET
  const { service } = await import(join(folder, 'service.js'))
  delete process.env.CLIENT_SECRET
  expect(await verifier.verify(await service.getToken())).toMatchObject({ sub: 'orders' })
}, 60_000)

test('RUN-29 --json prints one object, also in another organization', async () => {
  const { code, stdout, stderr } = await createClient(
    'wiki',
    '--kind',
    'web',
    '--redirect',
    'https://wiki.example/cb',
    '--post-logout-redirect',
    'https://wiki.example/out',
    '--no-consent',
    '--id-token-on-refresh',
    '--organization',
    'acme',
    '--json',
  )
  expect([code, stderr]).toEqual([0, ''])
  const answer = JSON.parse(stdout)
  expect(answer).toEqual({
    issuer: server.url,
    discovery_url: `${server.url}/.well-known/openid-configuration`,
    client_id: 'wiki',
    client_secret: expect.stringMatching(/^[\w-]{43}$/),
    kind: 'web',
    organization: 'acme',
    redirect_uris: ['https://wiki.example/cb'],
    post_logout_redirect_uris: ['https://wiki.example/out'],
    web_origins: [],
    scopes: ['openid', 'profile', 'email', 'offline_access'],
    authorization_endpoint: `${server.url}/oauth/authorize`,
    token_endpoint: `${server.url}/oauth/token`,
    userinfo_endpoint: `${server.url}/oauth/userinfo`,
    end_session_endpoint: `${server.url}/oauth/logout`,
    token_endpoint_auth_method: 'client_secret_basic',
  })
  const { organization_id, ...wiki } = (await server.admin('GET', '/clients/wiki')).body
  expect(wiki).toMatchObject({ consent_required: false, id_token_on_refresh: true })
  expect((await server.admin('GET', `/organizations/${organization_id}`)).body.slug).toBe('acme')
})

test('RUN-30 a wrong call creates nothing and says what to do', async () => {
  const web = ['--kind', 'web', '--redirect', 'https://app.example/cb']
  await createClient('taken', ...web)
  const before = [await total('/clients'), await total('/events')]
  const cases: [args: string[], code: number, text: RegExp][] = [
    [['taken', ...web], 1, /^gatehouse: taken: .* Choose another name; nothing was changed\.$/],
    [['ab', ...web], 2, /^gatehouse: name: 3 to 128 letters/],
    [['a b c', ...web], 2, /^gatehouse: name: /],
    [['default', ...web], 2, /^gatehouse: name: /],
    [['app', '--kind', 'desktop'], 2, /Allowed choices are web, spa, native, service/],
    [['app', '--redirect', 'https://app.example/cb'], 2, /--kind/],
    [['app', '--kind', 'web'], 2, /^gatehouse: --redirect: missing/],
    [['app', '--kind', 'web', '--redirect', 'app.example/cb'], 2, /: https:\/\/app\.example\/cb$/],
    [['app', '--kind', 'web', '--redirect', 'http://app.example/cb'], 2, /^gatehouse: --redirect: .*https/],
    [
      ['app', '--kind', 'web', '--redirect', 'localhost:3000/cb'],
      2,
      /^gatehouse: --redirect: .*: http:\/\/localhost:3000\/cb$/,
    ],
    [['app', ...web, '--post-logout-redirect', 'app'], 2, /^gatehouse: --post-logout-redirect: /],
    [
      ['app', '--kind', 'service', '--post-logout-redirect', 'https://a.example/'],
      2,
      /^gatehouse: --post-logout-redirect: /,
    ],
    [['app', '--kind', 'service', '--id-token-on-refresh'], 2, /^gatehouse: --id-token-on-refresh: /],
    [['app', '--kind', 'spa', '--redirect', 'com.example:/cb'], 2, /^gatehouse: --redirect: /],
    [['app', '--kind', 'service', '--redirect', 'https://app.example/cb'], 2, /^gatehouse: --redirect: /],
    [['app', '--kind', 'service', '--scope', '*'], 2, /^gatehouse: --scope: /],
    [['app', ...web, '--organization', 'nowhere'], 1, /"nowhere".*--organization/],
    [['app', ...web, '--colour', 'red'], 2, /unknown option '--colour'/],
    [web, 2, /missing required argument 'name'/],
  ]
  for (const [args, code, text] of cases) {
    const ended = await createClient(...args)
    expect([args, ended.code, ended.stdout]).toEqual([args, code, ''])
    expect(ended.stderr.trim()).toMatch(text)
    expect(
      ended.stderr
        .trim()
        .split('\n')
        .filter(line => !line.startsWith('`gatehouse')),
    ).toHaveLength(1)
  }
  expect([await total('/clients'), await total('/events')]).toEqual(before)
}, 60_000)

test('RUN-30 a database of another version is left unchanged', async () => {
  const data_dir = mkdtempSync(join(folder, 'data-'))
  {
    await using _ = await serveExecutable({}, data_dir)
  }
  const change = (statement: string) => {
    const db = new Database(join(data_dir, 'gatehouse.db'))
    db.run(statement)
    db.close()
  }
  const create = () =>
    gatehouse(['client', 'create', 'app', '--kind', 'service'], { GATEHOUSE_DATA_DIR: data_dir })
  change("INSERT INTO migrations (name, hash) VALUES ('9999_future.sql', 'x')")
  expect(await create()).toMatchObject({
    code: 78,
    stdout: '',
    stderr: expect.stringMatching(/newer version .*Use that version/),
  })
  change("DELETE FROM migrations WHERE name = '9999_future.sql'")
  expect((await create()).code).toBe(0)
}, 30_000)
