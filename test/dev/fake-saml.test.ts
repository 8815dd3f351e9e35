import { expect, test } from 'bun:test'
import { randomBytes, X509Certificate } from 'node:crypto'
import type { Server } from 'bun'
import { DEV_ADMIN_SECRET } from '#src/dev/default-seed.ts'
import { redirectUrl } from '#src/protocol/saml/authn-request.ts'
import { readMetadata } from '#src/protocol/saml/metadata.ts'
import { start } from '#src/testing/start.ts'
import { adminAt } from '#test/support/admin-calls.ts'
import { BASE, startApp, type TestApp } from '#test/support/app.ts'
import { answerOf, formOf, openBrowser, type Page } from '#test/support/browser.ts'
import { create } from '#test/support/callers.ts'
import { developmentOf } from '#test/support/development.ts'
import { addClient, authorizeUrl, REDIRECT, VERIFIER } from '#test/support/people.ts'
import { basic } from '#test/support/tokens.ts'

const METADATA = `${BASE}/dev/saml/metadata`
const SSO = `${BASE}/dev/saml/sso`

const production = await startApp({ outbound_allow: ['*=localhost:*'] })
const answer = developmentOf(production.context, production.fetch)
const loopback = {
  requestIP: () => ({ address: '127.0.0.1', port: 40_000, family: 'IPv4' }),
} as unknown as Server<unknown>
/** The same server with the development controls. */
const app: TestApp = {
  ...production,
  call: async (path, { ip: _, ...init } = {}) =>
    answer(new Request(new URL(path, BASE), { redirect: 'manual', ...init }), loopback),
}

const metadata_xml = await (await app.call(METADATA)).text()
await create(app, '/identity-providers', { type: 'saml', alias: 'fake', name: 'Fake', metadata_xml })
const { client_secret } = await addClient(app, 'web')
const entry = authorizeUrl('web').replace('/oauth/authorize', '/saml/fake/login')

/**
 * Starts a login of an application, fills in the provider's page, and posts the provider's answer as the
 * button of that page does.
 */
const logIn = async (fields: Record<string, string>): Promise<{ posting: Page; end: Page }> => {
  await app.events()
  const browser = openBrowser(app)
  const page = await browser.get((await browser.get(entry)).location ?? '')
  expect([page.status, page.heading]).toEqual([200, 'Fake SAML provider'])
  const posting = await browser.submit(page, fields)
  return { posting, end: await browser.follow(await browser.submit(posting, {})) }
}

const ada = { name_id: 'ada', givenName: 'Ada', sn: 'Love<lace', mail: 'ada@upstream.example' }

test('publishes the metadata that service providers need', () => {
  const { entity_id, sso_url, certificates } = readMetadata(metadata_xml)
  expect([entity_id, sso_url, certificates.length]).toEqual([METADATA, SSO, 1])
  const { publicKey, validFrom, validTo } = new X509Certificate(certificates[0] ?? '')
  expect(publicKey.asymmetricKeyDetails?.modulusLength).toBe(2048)
  // The controls set the clock to times from 1970 to 9999.
  expect([validFrom, validTo].map(time => new Date(time).toISOString())).toEqual([
    '1970-01-01T00:00:00.000Z',
    '9999-12-31T23:59:59.000Z',
  ])
})

test('the user picks an account, and the application gets a code', async () => {
  const { posting, end } = await logIn({ ...ada, decision: 'approve' })
  expect(formOf(posting).action).toBe(`${BASE}/saml/fake/acs`)
  expect(posting.html).toContain('<button>Continue</button>')
  const { code = '', state } = answerOf(end)
  expect(state).toBe('xyz')
  const [created, ...others] = await app.events()
  expect([created?.type, others.map(({ type }) => type)]).toEqual(['user.created', ['user.updated']])

  const body = { grant_type: 'authorization_code', code, redirect_uri: REDIRECT, code_verifier: VERIFIER }
  const tokens = await app.call('/oauth/token', {
    method: 'POST',
    body: new URLSearchParams(body),
    headers: basic('web', client_secret),
  })
  expect(tokens.status).toBe(200)
  const { body: user } = await app.admin('GET', `/users/${created?.target_id}`)
  expect(user).toMatchObject({ first_name: 'Ada', last_name: 'Love<lace', email: 'ada@upstream.example' })
})

test('the same account maps to the same user, whatever the server’s clock says', async () => {
  const first = { ...ada, name_id: 'grace', mail: 'grace@upstream.example', decision: 'approve' }
  await logIn(first)
  app.clock.advance(400 * 86_400_000)
  const { end } = await logIn(first)
  expect(answerOf(end).code).toBeString()
  expect(await app.events()).toEqual([])
})

test('the user declines', async () => {
  const { end } = await logIn({ ...ada, decision: 'deny' })
  expect([end.status, end.location]).toEqual([400, undefined])
  const events = await app.events()
  expect(events.map(({ type, metadata }) => [type, metadata.failure_reason])).toEqual([
    ['user.login_failed', 'saml_status'],
  ])
})

test('a malformed request is refused, and its content is never run in a page', async () => {
  const asked = (acs_url: string, id = '_1') =>
    redirectUrl(
      { id, issued_at: app.clock.now(), issuer: 'sp', acs_url, destination: SSO, force: false },
      '"><script>',
      undefined,
    )
  const acs_url = 'https://sp.example/acs'
  const right = await app.call(await asked(acs_url))
  expect([right.status, await right.text()]).toEqual([200, expect.not.stringContaining('<script>')])
  const large = await asked(acs_url, `_${randomBytes(10_000).toString('hex')}`)
  for (const url of [large, await asked('javascript:alert(1)'), SSO, `${SSO}?SAMLRequest=AAAA`])
    expect((await app.call(url)).status).toBe(400)
  expect((await app.call('/dev/saml/other')).status).toBe(404)
})

test('a production server has none', async () => {
  for (const url of [METADATA, SSO]) expect((await production.call(url)).status).toBe(404)
})

test('a development server loads its own metadata by URL', async () => {
  const server = await start()
  try {
    const made = await adminAt(server.url, DEV_ADMIN_SECRET)('POST', '/identity-providers', {
      type: 'saml',
      alias: 'fake',
      name: 'Fake provider',
      metadata_url: `${server.url}/dev/saml/metadata`,
    })
    expect(made).toMatchObject({ status: 201, body: { sso_url: `${server.url}/dev/saml/sso` } })
    const page = await fetch(`${server.url}/saml/fake/login`)
    expect(await page.text()).toContain('<h1>Fake SAML provider</h1>')
  } finally {
    await server.stop()
  }
})
