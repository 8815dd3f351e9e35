import { beforeAll, beforeEach, describe, expect, test } from 'bun:test'
import type { Outbound } from '#src/context.ts'
import { OutboundError } from '#src/http/outbound.ts'
import { purge } from '#src/operations/purge.ts'
import { type Json, startApp, type TestApp } from '#test/support/app.ts'
import { callerOf, create, listAll, refused } from '#test/support/callers.ts'
import { newCertificate } from '#test/support/certificate.ts'
import { addOrganization, addUser } from '#test/support/people.ts'

const PATH = '/identity-providers'
const SECRET = 'the-secret-of-our-client-there'

let app: TestApp
let documents: Record<string, () => Response | Promise<Response>>
let current: string
let old: string

const calledFor: string[] = []
const fetch: Outbound = async (url, { organization }) => {
  calledFor.push(organization.slug)
  const document = documents[String(url)]
  if (!document) throw new OutboundError('The address is a private one.')
  return document()
}

beforeAll(async () => {
  old = await newCertificate('CN=Old signing,O=Northwind', 2020, 2021)
  current = await newCertificate('CN=New signing', 2025, 2045)
})

beforeEach(async () => {
  documents = {}
  app = await startApp({ outbound_allow: ['idp.internal:80'] }, { fetch })
  await app.admin('GET', '/roles')
  await app.events()
})

const oidc = {
  type: 'oidc',
  alias: 'corp',
  name: 'Corp',
  issuer: 'https://id.corp.example',
  client_id: 'gatehouse',
  client_secret: SECRET,
}
const saml = () => ({
  type: 'saml',
  alias: 'northwind',
  name: 'Northwind',
  entity_id: 'https://idp.northwind.example/metadata',
  sso_url: 'https://idp.northwind.example/sso',
  certificates: [current],
})

const event = (type: string, { id, ...provider }: Json, more: Record<string, unknown> = {}) => ({
  type: `identity_provider.${type}`,
  actor_id: 'gatehouse-admin',
  target_id: id,
  target_type: 'identity_provider',
  organization_id: provider.organization_id,
  metadata: { alias: provider.alias, name: provider.name, type: provider.type, ...more },
})

const common = {
  organization_id: 'org_default',
  enabled: true,
  allow_registration: true,
  trust_email: false,
  default_roles: ['user'],
  attribute_mapping: {},
  created_at: '2026-01-15T12:00:00.000Z',
  updated_at: '2026-01-15T12:00:00.000Z',
}

describe('an OpenID provider', () => {
  test('IDP-05 is added with its defaults; the secret is never shown, and stored sealed', async () => {
    const { status, body } = await app.admin('POST', PATH, oidc)
    expect(status).toBe(201)
    const { client_secret: _, ...given } = oidc
    expect(body).toEqual({
      id: expect.stringMatching(/^idp_[0-9a-f-]{36}$/),
      ...given,
      ...common,
      preset: '',
      scopes: ['openid', 'profile', 'email'],
      response_mode: 'query',
      team_id: '',
      key_id: '',
    })
    expect((await app.admin('GET', `${PATH}/${body.id}`)).body).toEqual(body)
    expect((await app.admin('GET', `${PATH}/corp`)).body).toEqual(body)
    expect((await app.admin('GET', PATH)).body).toEqual({
      data: [body],
      pagination: { total: 1, limit: 20, has_more: false },
    })
    const rows = await app.context.store.read(async q => q.select().from(q.tables.identity_providers))
    expect(Buffer.from(rows[0]?.client_secret ?? []).includes(SECRET)).toBe(false)
    expect(JSON.stringify(rows)).not.toContain(SECRET)
    expect(await app.events()).toEqual([event('created', body)])
  })

  test('IDP-06 takes fixed fields from its preset', async () => {
    const preset = async (body: Json) => create(app, PATH, { client_id: 'id', client_secret: 's', ...body })
    expect(await preset({ type: 'oidc', alias: 'google', name: 'Google', preset: 'google' })).toMatchObject({
      issuer: 'https://accounts.google.com',
      scopes: ['openid', 'profile', 'email'],
    })
    expect(await preset({ type: 'oidc', alias: 'apple', name: 'Apple', preset: 'apple' })).toMatchObject({
      issuer: 'https://appleid.apple.com',
      response_mode: 'form_post',
      scopes: ['openid', 'name', 'email'],
    })
    const tenant = 'https://login.microsoftonline.com/8f7c-tenant/v2.0'
    expect(
      await preset({ type: 'oidc', alias: 'ms', name: 'MS', preset: 'microsoft', issuer: tenant }),
    ).toMatchObject({ issuer: tenant })
    expect(await preset({ type: 'oauth2', alias: 'github', name: 'GitHub', preset: 'github' })).toMatchObject(
      {
        token_endpoint: 'https://github.com/login/oauth/access_token',
        emails_endpoint: 'https://api.github.com/user/emails',
      },
    )
    for (const name of ['gitlab', 'discord'])
      expect(await preset({ type: 'oauth2', alias: name, name, preset: name })).toMatchObject({
        preset: name,
        emails_endpoint: '',
      })
  })
})

describe('a SAML provider', () => {
  const metadata = (certificate: string) =>
    `<md:EntityDescriptor xmlns:md="urn:oasis:names:tc:SAML:2.0:metadata" xmlns:ds="http://www.w3.org/2000/09/xmldsig#" entityID="https://idp.example/m"><md:IDPSSODescriptor protocolSupportEnumeration="urn:oasis:names:tc:SAML:2.0:protocol"><md:KeyDescriptor use="signing"><ds:KeyInfo><ds:X509Data><ds:X509Certificate>${certificate.replace(/-----.*-----|\s/g, '')}</ds:X509Certificate></ds:X509Data></ds:KeyInfo></md:KeyDescriptor><md:SingleSignOnService Binding="urn:oasis:names:tc:SAML:2.0:bindings:HTTP-Redirect" Location="https://idp.example/sso"/></md:IDPSSODescriptor></md:EntityDescriptor>`

  test('shows subject, fingerprint and expiry of each certificate, and marks an expired one', async () => {
    const body = await create(app, PATH, { ...saml(), certificates: [current, old] })
    expect(body).toMatchObject({
      ...common,
      ...saml(),
      certificates: [
        { subject: 'CN=New signing', expires_at: '2045-01-01T00:00:00.000Z', expired: false },
        { subject: expect.stringContaining('O=Northwind'), expired: true },
      ],
      sign_requests: true,
      allow_idp_initiated: false,
      allow_sha1: false,
      allow_cbc: false,
      clock_tolerance: 60,
    })
    expect(body.certificates[0].fingerprint).toMatch(/^([0-9A-F]{2}:){31}[0-9A-F]{2}$/)
    expect(body.certificates[0].certificate).toBe(current.trim())
  })

  test('can be read, changed and sent back complete with certificates', async () => {
    const { id, ...body } = await create(app, PATH, { ...saml(), certificates: [current, old] })
    await app.events()
    const again = await app.admin('PUT', `${PATH}/northwind`, { id, ...body })
    expect([again.status, again.body]).toEqual([200, { id, ...body }])
    expect(await app.events()).toEqual([])
    const [kept] = body.certificates
    const rolled = await app.admin('PUT', `${PATH}/northwind`, { ...body, certificates: [kept] })
    expect(rolled.body.certificates).toEqual([kept])
    expect(await app.events()).toEqual([event('updated', { id, ...body }, { fields: ['certificates'] })])
  })

  test('IDP-04 is configured from a metadata document, sent or loaded, with a byte order mark, and updated from a later document', async () => {
    const { entity_id: _, sso_url: __, certificates: ___, ...bare } = saml()
    const sent = await create(app, PATH, { ...bare, metadata_xml: `\ufeff${metadata(current)}` })
    expect((await app.admin('GET', `${PATH}/northwind`)).body).toEqual(sent)
    expect(await app.events()).toEqual([event('created', sent)])
    const found = { entity_id: 'https://idp.example/m', sso_url: 'https://idp.example/sso' }
    expect(sent).toMatchObject(found)
    expect(sent.certificates).toHaveLength(1)
    documents['https://idp.example/metadata'] = () => new Response(`\ufeff${metadata(old)}`)
    const loaded = await app.admin('PUT', `${PATH}/northwind`, {
      metadata_url: 'https://idp.example/metadata',
    })
    expect(loaded.body.certificates).toMatchObject([{ expired: true }])
    const other = { ...bare, alias: 'other', metadata_url: 'https://idp.example/metadata' }
    expect(await create(app, PATH, other)).toMatchObject(found)
  })

  test('an unreadable document is a 422 of its field, and nothing is stored', async () => {
    const { entity_id: _, sso_url: __, certificates: ___, ...bare } = saml()
    const broken = ['', 'no xml', '<a>', '<!DOCTYPE a><a/>', '<a/>', metadata('AAAA')]
    for (const metadata_xml of broken)
      expect(refused(await app.admin('POST', PATH, { ...bare, metadata_xml }))).toEqual(['metadata_xml'])
    documents['https://idp.example/gone'] = () => new Response('', { status: 404 })
    for (const metadata_url of ['https://idp.example/gone', 'https://10.0.0.1/metadata'])
      expect(refused(await app.admin('POST', PATH, { ...bare, metadata_url }))).toEqual(['metadata_url'])
    expect((await app.admin('GET', PATH)).body.data).toEqual([])
    expect(await app.events()).toEqual([])
  })
})

test('IDP-02 a PUT changes the given fields, by id or alias, the secret included; no change records nothing', async () => {
  const body = await create(app, PATH, oidc)
  await app.events()
  app.clock.advance(1000)
  const change = { name: 'Corporation', trust_email: true, scopes: ['openid'], client_secret: 'another' }
  const { client_secret: _, ...shown } = change
  const changed = await app.admin('PUT', `${PATH}/${body.id}`, change)
  expect(changed.body).toEqual({ ...body, ...shown, updated_at: '2026-01-15T12:00:01.000Z' })
  expect(await app.events()).toEqual([
    event('updated', changed.body, { fields: ['name', 'trust_email', 'scopes', 'client_secret'] }),
  ])
  app.clock.advance(1000)
  expect(
    (await app.admin('PUT', `${PATH}/corp`, { ...changed.body, client_secret: 'another' })).body,
  ).toEqual(changed.body)
  expect(await app.events()).toEqual([])
})

test('IDP-02 the event of a new preset names each field that the preset changes', async () => {
  const google = {
    type: 'oidc',
    alias: 'goo',
    name: 'G',
    preset: 'google',
    client_id: 'x',
    client_secret: 'y',
  }
  const before = await create(app, PATH, google)
  await app.events()
  const change = { preset: 'apple', client_secret: 'z' }
  const { status, body } = await app.admin('PUT', `${PATH}/goo`, change)
  expect([status, body.issuer]).toEqual([200, 'https://appleid.apple.com'])
  const changed = Object.keys(body).filter(name => !Bun.deepEquals(body[name], before[name]))
  const [{ type, metadata } = {}, ...others] = (await app.events()) as Json[]
  expect([type, others]).toEqual(['identity_provider.updated', []])
  expect(metadata.fields.toSorted()).toEqual([...changed, 'client_secret'].toSorted())
})

test('O-70 the secret cannot be obtained by pointing the provider at another server', async () => {
  const body = await create(app, PATH, oidc)
  const elsewhere = { ...body, issuer: 'https://elsewhere.example' }
  expect(refused(await app.admin('PUT', `${PATH}/corp`, elsewhere))).toEqual(['client_secret'])
  expect((await app.admin('GET', `${PATH}/corp`)).body).toEqual(body)
  const again = await app.admin('PUT', `${PATH}/corp`, { ...elsewhere, client_secret: SECRET })
  expect([again.status, again.body.issuer]).toEqual([200, elsewhere.issuer])
})

describe('H-14 the secret must be sent again when its destination changes', () => {
  const github = { type: 'oauth2', alias: 'gh', name: 'GitHub', preset: 'github', client_id: 'x' }

  test.each([
    ['token_endpoint', 'https://elsewhere.example/token'],
    ['userinfo_endpoint', 'https://elsewhere.example/user'],
    ['emails_endpoint', 'https://elsewhere.example/emails'],
    ['preset', 'gitlab'],
  ])('by %s', async (name, value) => {
    const body = await create(app, PATH, { ...github, client_secret: SECRET })
    await app.events()
    expect(refused(await app.admin('PUT', `${PATH}/gh`, { [name]: value }))).toEqual(['client_secret'])
    expect((await app.admin('GET', `${PATH}/gh`)).body).toEqual(body)
    expect(await app.events()).toEqual([])
    const again = await app.admin('PUT', `${PATH}/gh`, { [name]: value, client_secret: SECRET })
    expect([again.status, again.body[name]]).toEqual([200, value])
  })

  test('removing an endpoint does not count as another server', async () => {
    await create(app, PATH, { ...github, client_secret: SECRET })
    expect((await app.admin('PUT', `${PATH}/gh`, { emails_endpoint: '' })).status).toBe(200)
  })
})

test('IDP-03 a taken alias is 409, also across organizations and in a change', async () => {
  const { id } = await addOrganization(app, 'acme')
  await create(app, PATH, { ...oidc, organization_id: id })
  expect((await app.admin('POST', PATH, oidc)).status).toBe(409)
  await create(app, PATH, { ...oidc, alias: 'second' })
  expect((await app.admin('PUT', `${PATH}/second`, { alias: 'corp' })).status).toBe(409)
})

test('lists are read page by page, filtered by type and organization', async () => {
  const { id } = await addOrganization(app, 'acme')
  await create(app, PATH, oidc)
  await create(app, PATH, saml())
  await create(app, PATH, { ...oidc, alias: 'acme-corp', organization_id: id })
  const aliases = async (query: string) => (await listAll(app, PATH + query)).map(({ alias }) => alias)
  expect(await aliases('?order=asc')).toEqual(['corp', 'northwind', 'acme-corp'])
  expect(await aliases('?type=saml')).toEqual(['northwind'])
  expect(await aliases(`?organization_id=${id}`)).toEqual(['acme-corp'])
  expect((await app.admin('GET', `${PATH}?type=saml`)).body.pagination.total).toBe(1)
})

describe('O-70 a caller cannot grant or obtain rights that they lack', () => {
  const rights = [
    'identity_providers:read',
    'identity_providers:create',
    'identity_providers:update',
    'identity_providers:delete',
  ]
  let caller: string
  const as = (method: string, path: string, body?: Json) => app.admin(method, path, body, caller)

  beforeEach(async () => {
    caller = await callerOf(app, 'org_default', rights)
    await create(app, '/roles', { name: 'auditor', permissions: ['events:read'] })
  })

  test('through default roles and roles in the mapping', async () => {
    expect((await as('POST', PATH, { ...oidc, default_roles: ['auditor'] })).status).toBe(403)
    expect((await as('POST', PATH, { ...oidc, default_roles: ['admin'] })).status).toBe(403)
    expect((await as('POST', PATH, { ...oidc, attribute_mapping: { roles: 'groups' } })).status).toBe(403)
    expect((await as('POST', PATH, oidc)).status).toBe(201)
    expect((await as('PUT', `${PATH}/corp`, { default_roles: ['auditor'] })).status).toBe(403)
    expect((await as('PUT', `${PATH}/corp`, { attribute_mapping: { roles: 'groups' } })).status).toBe(403)
  })

  test('through a provider whose new users get more', async () => {
    await create(app, PATH, { ...oidc, default_roles: ['auditor'] })
    await create(app, PATH, { ...oidc, alias: 'mapped', attribute_mapping: { roles: 'groups' } })
    for (const alias of ['corp', 'mapped']) {
      expect((await as('PUT', `${PATH}/${alias}`, { issuer: 'https://evil.example' })).status).toBe(403)
      expect((await as('DELETE', `${PATH}/${alias}`)).status).toBe(403)
    }
  })

  test('through a provider whose users have more, directly or by a group', async () => {
    const provider = await create(app, PATH, oidc)
    const link = (user_id: string) =>
      app.context.store.write(async tx => {
        await tx.insert(tx.tables.external_accounts).values({
          provider_id: provider.id,
          subject: user_id,
          user_id: user_id as `usr_${string}`,
          organization_id: 'org_default',
          label: '',
          created_at: 0,
        })
      })
    const plain = await addUser(app, 'plain')
    await link(plain.id)
    expect((await as('PUT', `${PATH}/corp`, { name: 'Fine' })).status).toBe(200)
    const group = await create(app, '/groups', { name: 'Auditors', roles: ['auditor'] })
    expect((await app.admin('PUT', `/groups/${group.id}/members/${plain.id}`)).status).toBe(204)
    expect((await as('PUT', `${PATH}/corp`, { issuer: 'https://evil.example' })).status).toBe(403)
    await app.admin('DELETE', `/groups/${group.id}/members/${plain.id}`)
    expect((await as('PUT', `${PATH}/corp`, { name: 'Fine again' })).status).toBe(200)
    await link((await addUser(app, 'boss', { roles: ['admin'] })).id)
    expect((await as('DELETE', `${PATH}/corp`)).status).toBe(403)
    expect((await app.admin('DELETE', `${PATH}/corp`)).status).toBe(204)
  })
})

test('M-12 a role of another organization is unknown', async () => {
  const { id } = await addOrganization(app, 'acme')
  await create(app, '/roles', { name: 'elsewhere', permissions: [], organization_id: id })
  expect(refused(await app.admin('POST', PATH, { ...oidc, default_roles: ['elsewhere'] }))).toEqual([
    'default_roles',
  ])
})

test('a deleted role is no longer a default role, even if its name is used again', async () => {
  const { id } = await create(app, '/roles', { name: 'crew', permissions: [] })
  await create(app, PATH, { ...oidc, default_roles: ['crew', 'user'] })
  await app.admin('DELETE', `/roles/${id}`)
  await create(app, '/roles', { name: 'crew', permissions: ['users:delete'] })
  expect((await app.admin('GET', `${PATH}/corp`)).body.default_roles).toEqual(['user'])
})

test('a deleted provider is gone at once; its linked accounts are removed in batches', async () => {
  const provider = await create(app, PATH, oidc)
  const user = await addUser(app, 'ada')
  await app.context.store.write(async tx => {
    for (let n = 0; n < 300; n++)
      await tx.insert(tx.tables.external_accounts).values({
        provider_id: provider.id,
        subject: `subject-${n}`,
        user_id: user.id,
        organization_id: 'org_default',
        label: '',
        created_at: 0,
      })
  })
  await app.events()
  expect((await app.admin('DELETE', `${PATH}/corp`)).status).toBe(204)
  expect((await app.admin('DELETE', `${PATH}/corp`)).status).toBe(404)
  expect((await app.admin('GET', `${PATH}/${provider.id}`)).status).toBe(404)
  expect(await app.events()).toEqual([event('deleted', provider)])
  expect(await purge(app.context)).toBe(300)
  const rows = await app.context.store.read(async q => [
    ...(await q.select().from(q.tables.external_accounts)),
    ...(await q.select().from(q.tables.purges)),
  ])
  expect(rows).toEqual([])
})

test('M-10 deleting an organization deletes its providers and frees their aliases', async () => {
  const { id } = await addOrganization(app, 'acme')
  await create(app, PATH, { ...oidc, organization_id: id })
  expect((await app.call('/oauth/social/corp')).status).not.toBe(404)
  expect((await app.admin('DELETE', `/organizations/${id}`)).status).toBe(204)
  expect((await app.call('/oauth/social/corp')).status).toBe(404)
  await create(app, PATH, oidc)
})
