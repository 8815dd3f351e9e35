/** Tests the connection check of an identity provider, which runs before users see the provider. */
import { beforeEach, expect, test } from 'bun:test'
import { readProvider, saveProvider } from '#src/directory/identity-providers/store.ts'
import { BASE, type Json, startApp, type TestApp } from '#test/support/app.ts'
import { callerOf, create } from '#test/support/callers.ts'
import { newCertificate, onUnknownCurve } from '#test/support/certificate.ts'
import { addOrganization } from '#test/support/people.ts'
import { addProvider, ISSUER, startFederated, type Upstream } from './upstream.ts'

let app: TestApp
let upstream: Upstream
beforeEach(async () => {
  const world = await startFederated()
  app = world.app
  upstream = world.upstream
})

const ask = (alias: string, query = '') => app.admin('GET', `/identity-providers/${alias}/connection${query}`)
const run = async (alias: string, query = ''): Promise<Json> => {
  const { status, body } = await ask(alias, query)
  expect(status).toBe(200)
  return body
}
const namesOf = ({ checks }: Json) => checks.map(({ name, status }: Json) => `${status} ${name}`)
const reply = (path: string, body: unknown, status = 200) => {
  upstream.intercept = ({ url }) =>
    new URL(url).pathname === path ? Response.json(body, { status }) : undefined
}
/** Changes members of the discovery document. */
const describeAs = (change: Json) => {
  upstream.intercept = async request => {
    if (!request.url.endsWith('/.well-known/openid-configuration')) return undefined
    const answer = await upstream.fetch(request)
    return Response.json({ ...((await answer.json()) as Json), ...change })
  }
}

const GOOD = ['good metadata', 'good issuer', 'good endpoints', 'good code_flow', 'good keys']

test('IDP-07 an OpenID provider is checked from its document to the redirect URI, also while it is off', async () => {
  await addProvider(app, 'upstream', { enabled: false })
  await app.events()
  reply('/token', { error: 'invalid_grant' }, 400)
  const body = await run('upstream')
  expect(namesOf(body)).toEqual([...GOOD, 'good credentials', 'info redirect_uri'])
  expect(body.ok).toBe(true)
  expect(body.checks[1].value).toBe(ISSUER)
  expect(body.checks.at(-1).value).toBe(`${BASE}/oauth/social/upstream/callback`)
  expect(await app.events()).toEqual([])
})

const tokens: [string, unknown, number][] = [
  ['bad', { error: 'invalid_client' }, 401],
  ['bad', { error: 'incorrect_client_credentials' }, 200],
  ['good', { error: 'bad_verification_code' }, 200],
  ['unknown', { error: 'server_error' }, 500],
  ['unknown', 'nonsense', 200],
]
test.each(tokens)(
  'IDP-07 the token endpoint tells about the client: %s for %p',
  async (status, body, code) => {
    await addProvider(app, 'upstream')
    reply('/token', body, code)
    const tested = await run('upstream')
    expect(namesOf(tested)).toEqual([...GOOD, `${status} credentials`, 'info redirect_uri'])
    expect(tested.ok).toBe(status !== 'bad')
  },
)

test('IDP-07 another issuer is named, a document that cannot be used is bad', async () => {
  await addProvider(app, 'upstream')
  describeAs({ issuer: 'https://other.example' })
  const { ok, checks } = await run('upstream')
  expect(ok).toBe(false)
  expect(checks[1]).toMatchObject({ name: 'issuer', status: 'bad', value: 'https://other.example' })
  describeAs({ issuer: `https://other.example/${'x'.repeat(300)}` })
  expect((await run('upstream')).checks[1].value).toBeUndefined()

  const path = '/.well-known/openid-configuration'
  for (const [body, status, text] of [
    [{}, 404, 'status 404'],
    ['text', 200, 'not a discovery document'],
    [[], 200, 'not a discovery document'],
  ] as const) {
    reply(path, body, status)
    const tested = await run('upstream')
    expect(namesOf(tested)).toEqual(['bad metadata', 'info redirect_uri'])
    expect(tested.checks[0].message).toContain(text)
  }
})

test('IDP-07 missing endpoints, another flow and a key set without keys are bad', async () => {
  await addProvider(app, 'upstream')
  describeAs({
    token_endpoint: undefined,
    response_types_supported: ['id_token'],
    jwks_uri: `${ISSUER}/none`,
  })
  expect(namesOf(await run('upstream'))).toEqual([
    ...['good metadata', 'good issuer', 'bad endpoints', 'bad code_flow', 'bad keys', 'info redirect_uri'],
  ])
  describeAs({ code_challenge_methods_supported: undefined, jwks_uri: undefined })
  expect(namesOf(await run('upstream')).slice(2, 5)).toEqual([
    ...['bad endpoints', 'warning code_flow', 'bad keys'],
  ])
  await addProvider(app, 'keyless')
  upstream.publish = () => [{ kty: 'RSA', use: 'enc' }, { kty: 'oct' }, 'nonsense' as unknown as Json]
  upstream.intercept = () => undefined
  expect(namesOf(await run('keyless'))[4]).toBe('bad keys')
})

test('IDP-07 an OAuth 2.0 provider is checked at its token and user endpoints', async () => {
  await addProvider(app, 'hub', { type: 'oauth2', issuer: undefined, preset: 'github' })
  upstream.intercept = ({ url }) =>
    url.includes('access_token')
      ? Response.json({ error: 'bad_verification_code' })
      : new Response('no', { status: 401 })
  const body = await run('hub')
  expect(namesOf(body)).toEqual(['good credentials', 'good userinfo', 'info redirect_uri'])
})

const saml = async (years: [number, number], alias: string, more: Json = {}) =>
  create(app, '/identity-providers', {
    type: 'saml',
    alias,
    name: 'Acme',
    entity_id: 'https://idp.example/metadata',
    sso_url: 'https://idp.example/sso',
    certificates: [await newCertificate('CN=idp', ...years)],
    ...more,
  })

test('IDP-08 a SAML provider is checked for its address and the dates of its certificates', async () => {
  upstream.intercept = () => new Response('a form', { status: 400 })
  const own = ['info own_metadata', 'info redirect_uri']
  await saml([2020, 2030], 'good')
  const { ok, checks } = await run('good')
  expect([ok, namesOf({ checks })]).toEqual([true, ['good sign_on', 'good certificate', ...own]])
  expect(checks.slice(-2).map(({ value }: Json) => value)).toEqual([
    `${BASE}/saml/good/metadata`,
    `${BASE}/saml/good/acs`,
  ])
  await saml([2019, 2025], 'expired')
  await saml([2027, 2030], 'early')
  for (const alias of ['expired', 'early'])
    expect(namesOf(await run(alias))).toEqual(['good sign_on', 'warning certificate', ...own])
  const provider = await app.context.store.read(q => readProvider(q, 'good'))
  if (provider?.type !== 'saml') throw new Error('not stored')
  const certificates = provider.settings.certificates.map(onUnknownCurve)
  await app.context.store.write(tx =>
    saveProvider(tx, { ...provider, settings: { ...provider.settings, certificates } }),
  )
  expect(namesOf(await run('good'))).toEqual(['good sign_on', 'bad certificate', ...own])
})

test('IDP-08 a metadata document is compared with what is stored', async () => {
  const provider = await saml([2020, 2030], 'acme')
  const [{ certificate }] = provider.certificates
  const body = (pem: string) => pem.replace(/-----.*-----|\s/g, '')
  const metadata = (entity: string, sso: string, pem: string) =>
    `<EntityDescriptor xmlns="urn:oasis:names:tc:SAML:2.0:metadata" entityID="${entity}"><IDPSSODescriptor protocolSupportEnumeration="urn:oasis:names:tc:SAML:2.0:protocol"><KeyDescriptor use="signing"><KeyInfo xmlns="http://www.w3.org/2000/09/xmldsig#"><X509Data><X509Certificate>${body(pem)}</X509Certificate></X509Data></KeyInfo></KeyDescriptor><SingleSignOnService Binding="urn:oasis:names:tc:SAML:2.0:bindings:HTTP-Redirect" Location="${sso}"/></IDPSSODescriptor></EntityDescriptor>`
  let document = metadata('https://idp.example/metadata', 'https://idp.example/sso', certificate)
  upstream.intercept = () => new Response(document)
  const query = `?metadata_url=${encodeURIComponent('https://idp.example/metadata')}`
  expect(namesOf(await run('acme', query)).slice(0, 3)).toEqual([
    ...['good metadata', 'good entity_id', 'good sign_on'],
  ])
  const other = await newCertificate('CN=new', 2025, 2031)
  document = metadata('https://new.example/metadata', 'https://new.example/sso', other)
  const { ok, checks } = await run('acme', query)
  expect([ok, namesOf({ checks }).slice(0, 4)]).toEqual([
    false,
    ['good metadata', 'bad entity_id', 'bad sign_on', 'bad certificate'],
  ])
  document = '<html/>'
  expect(namesOf(await run('acme', query))[0]).toBe('bad metadata')
})

test('IDP-09 private addresses are never called, and look like addresses that do not answer', async () => {
  let calls = 0
  await using server = Bun.serve({ port: 0, hostname: '127.0.0.1', fetch: () => new Response(`${++calls}`) })
  const real = await startApp()
  const hosts = [`127.0.0.1:${server.port}`, '10.0.0.1', '[::1]:9', 'nowhere.invalid']
  const seen: Json[] = []
  for (const [n, host] of hosts.entries()) {
    const [userinfo, token, authorization] = ['user', 'token', 'authorize'].map(
      name => `https://${host}/${name}`,
    )
    await addProvider(real, `hub-${n}`, {
      type: 'oauth2',
      issuer: undefined,
      userinfo_endpoint: userinfo,
      token_endpoint: token,
      authorization_endpoint: authorization,
    })
    const { body } = await real.admin('GET', `/identity-providers/hub-${n}/connection`)
    seen.push(body.checks.slice(0, 2).map(({ value: _, ...rest }: Json) => rest))
  }
  expect(seen.map(checks => checks.map(({ status }: Json) => status))).toEqual(Array(4).fill(['bad', 'bad']))
  expect(new Set(seen.map(each => JSON.stringify(each))).size).toBe(1)
  expect(calls).toBe(0)
})

test('IDP-09 each organization has 20 tests in 10 minutes; a refused test calls nobody', async () => {
  await addProvider(app, 'upstream')
  const acme = await addOrganization(app, 'acme')
  await addProvider(app, 'theirs', { organization_id: acme.id })
  const token = await callerOf(app, acme.id, ['identity_providers:update'])
  for (let i = 0; i < 20; i++) await run('upstream')
  const asked = upstream.asked.length
  const { status, body, headers } = await ask('upstream')
  expect([status, body.error, headers.get('retry-after')]).toEqual([429, 'rate_limited', '30'])
  expect(upstream.asked).toHaveLength(asked)
  expect((await app.admin('GET', '/identity-providers/theirs/connection', undefined, token)).status).toBe(200)
  expect((await app.admin('GET', '/identity-providers/upstream/connection', undefined, token)).status).toBe(
    404,
  )
  app.clock.advance(30_000)
  expect((await ask('upstream')).status).toBe(200)
})
