import { beforeAll, beforeEach, describe, expect, test } from 'bun:test'
import { generateKeyPairSync } from 'node:crypto'
import type { Outbound } from '#src/context.ts'
import { readProvider, saveProvider } from '#src/directory/identity-providers/store.ts'
import { OutboundError } from '#src/http/outbound.ts'
import { type Json, startApp, type TestApp } from '#test/support/app.ts'
import { create, refused } from '#test/support/callers.ts'
import { newCertificate, onUnknownCurve } from '#test/support/certificate.ts'
import { addOrganization } from '#test/support/people.ts'

const PATH = '/identity-providers'
const SECRET = 'the-secret-of-our-client-there'

let app: TestApp
let documents: Record<string, () => Response | Promise<Response>>
let current: string

const calledFor: string[] = []
const fetch: Outbound = async (url, { organization }) => {
  calledFor.push(organization.slug)
  const document = documents[String(url)]
  if (!document) throw new OutboundError('The address is a private one.')
  return document()
}

beforeAll(async () => {
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

describe('IDP-01 422 names the field', () => {
  const cases: [string, Json, string[]][] = [
    ['an unknown type', { ...oidc, type: 'ldap' }, ['type']],
    ['no issuer', { ...oidc, issuer: undefined }, ['issuer']],
    ['an issuer that is no address', { ...oidc, issuer: 'corp' }, ['issuer']],
    ['an issuer with a password in it', { ...oidc, issuer: 'https://a:b@corp.example' }, ['issuer']],
    ['a script for an issuer', { ...oidc, issuer: 'javascript:alert(1)' }, ['issuer']],
    ['an issuer with a space', { ...oidc, issuer: 'https://corp.example/a b' }, ['issuer']],
    ['an issuer with an empty fragment', { ...oidc, issuer: 'https://corp.example/#' }, ['issuer']],
    ['plain http', { ...oidc, issuer: 'http://id.corp.example' }, ['issuer']],
    ['an alias with an underscore', { ...oidc, alias: 'idp_x' }, ['alias']],
    ['an alias that is an id', { ...oidc, alias: '019bc186-de00-734a-b826-7e57c99aaa0c' }, ['alias']],
    ['a field of another type', { ...oidc, entity_id: 'x' }, ['entity_id']],
    ['a preset of another type', { ...oidc, preset: 'github' }, ['preset']],
    ['a role that is not there', { ...oidc, default_roles: ['nobody'] }, ['default_roles']],
    [
      'a mapping of an unknown field',
      { ...oidc, attribute_mapping: { phone: 'tel' } },
      ['attribute_mapping.phone'],
    ],
    [
      'no endpoints',
      { ...oidc, type: 'oauth2', issuer: undefined },
      ['authorization_endpoint', 'token_endpoint', 'userinfo_endpoint'],
    ],
    [
      'no secret',
      { type: 'oauth2', alias: 'gh', name: 'GH', preset: 'github', client_id: 'x' },
      ['client_secret'],
    ],
    ['another organization', { ...oidc, organization_id: 'org_nowhere' }, ['organization_id']],
  ]
  test.each(cases)('%s', async (_, body, fields) => {
    expect(refused(await app.admin('POST', PATH, body))).toEqual(fields)
    expect(await app.events()).toEqual([])
  })

  test('certificates', async () => {
    for (const certificates of [[], ['no certificate'], [{ certificate: 'x' }]])
      expect(refused(await app.admin('POST', PATH, { ...saml(), certificates }))[0]).toStartWith(
        'certificates',
      )
  })

  test('FED-25 a certificate with whose key no signature can be verified', async () => {
    const unusable = [onUnknownCurve(current), await newCertificate('CN=Ed25519', 2025, 2045, 'Ed25519')]
    for (const other of unusable) {
      const certificates = [current, other]
      expect(refused(await app.admin('POST', PATH, { ...saml(), certificates }))).toEqual(['certificates.1'])
    }
    expect(await app.events()).toEqual([])
    const { id } = await create(app, PATH, saml())
    expect(refused(await app.admin('PUT', `${PATH}/${id}`, { certificates: [unusable[0]] }))).toEqual([
      'certificates.0',
    ])
    const stored = await app.context.store.read(q => readProvider(q, id))
    if (stored?.type !== 'saml') throw new Error('not stored')
    const settings = { ...stored.settings, certificates: unusable.map(pem => pem.trim()) }
    await app.context.store.write(tx => saveProvider(tx, { ...stored, settings }))
    expect((await app.admin('PUT', `${PATH}/${id}`, { enabled: false })).status).toBe(200)
  })

  test('plain http is allowed only for the configured hosts', async () => {
    await create(app, PATH, { ...oidc, issuer: 'http://idp.internal' })
    expect(refused(await app.admin('PUT', `${PATH}/corp`, { issuer: 'http://other.internal' }))).toEqual([
      'client_secret',
      'issuer',
    ])
  })

  test('a stored http address is kept when outbound_allow no longer names it', async () => {
    await create(app, PATH, { ...oidc, issuer: 'http://idp.internal' })
    await app.events()
    Object.assign(app.context.config, { outbound_allow: [] })
    const put = (body: Json) => app.admin('PUT', `${PATH}/corp`, { client_secret: SECRET, ...body })
    expect(refused(await put({ enabled: false, issuer: 'http://idp.internal/new' }))).toEqual(['issuer'])
    expect(await put({ enabled: false })).toMatchObject({
      status: 200,
      body: { enabled: false, issuer: 'http://idp.internal' },
    })
    expect((await app.admin('GET', `${PATH}/corp`)).body.enabled).toBe(false)
    expect((await app.events()).map(({ type, metadata }) => [type, metadata.fields])).toEqual([
      ['identity_provider.updated', ['enabled']],
    ])
  })

  test('H-15 plain http and private addresses are allowed only for the configured organization', async () => {
    const { id } = await addOrganization(app, 'acme')
    const theirs = { ...oidc, organization_id: id, issuer: 'http://idp.internal' }
    expect(refused(await app.admin('POST', PATH, theirs))).toEqual(['issuer'])
    const { entity_id: _, sso_url: __, certificates: ___, ...rest } = saml()
    const metadata_url = 'https://idp.internal:8443/metadata'
    calledFor.length = 0
    expect(refused(await app.admin('POST', PATH, { ...rest, organization_id: id, metadata_url }))).toEqual([
      'metadata_url',
    ])
    await create(app, PATH, { ...saml(), organization_id: id })
    expect(refused(await app.admin('PUT', `${PATH}/northwind`, { metadata_url }))).toEqual(['metadata_url'])
    expect(calledFor).toEqual(['acme', 'acme'])
  })

  test('immutable fields, and fields of another type, in a PUT', async () => {
    await create(app, PATH, oidc)
    const put = async (body: Json) => refused(await app.admin('PUT', `${PATH}/corp`, body))
    expect(await put({ type: 'saml' })).toEqual(['type'])
    expect(await put({ organization_id: 'org_x', id: 'idp_x' })).toEqual(['id', 'organization_id'])
    expect(await put({ sso_url: 'https://x.example', metadata_xml: '<a/>' })).toEqual([
      'metadata_xml',
      'sso_url',
    ])
    expect(await put({ preset: 'github' })).toEqual(['preset'])
  })

  describe('IDP-12 the private key for Apple', () => {
    const pemOf = (namedCurve: string) =>
      generateKeyPairSync('ec', { namedCurve }).privateKey.export({ format: 'pem', type: 'pkcs8' }).toString()
    const key = pemOf('P-256')
    const apple = { type: 'oidc', alias: 'apple', name: 'Apple', preset: 'apple', client_id: 'x' }
    const ids = { team_id: 'TEAM123456', key_id: 'KEY1234567' }
    test.each([
      ['without ids', { client_secret: key }, ['team_id', 'key_id']],
      ['without key_id', { client_secret: key, team_id: 'T' }, ['key_id']],
      ['without team_id', { client_secret: 'a.signed.token', key_id: 'K' }, ['team_id']],
      ['that is no key', { ...ids, client_secret: 'not a key' }, ['client_secret']],
      ['on another curve', { ...ids, client_secret: pemOf('P-384') }, ['client_secret']],
    ])('%s is refused', async (_, more, fields) => {
      expect(refused(await app.admin('POST', PATH, { ...apple, ...more })).sort()).toEqual(fields.sort())
      expect(await app.events()).toEqual([])
    })

    test('is checked when one of its three values changes', async () => {
      await create(app, PATH, { ...apple, ...ids })
      const put = (body: Json) => app.admin('PUT', `${PATH}/apple`, body)
      expect(refused(await put({ client_secret: 'not a key' }))).toEqual(['client_secret'])
      expect((await put({ client_secret: key })).status).toBe(200)
      expect(refused(await put({ team_id: '', key_id: '' })).sort()).toEqual(['key_id', 'team_id'])
      expect((await put({ team_id: 'TEAM654321' })).status).toBe(200)
      expect((await put({ team_id: '', key_id: '', client_secret: 'a.signed.token' })).status).toBe(200)
    })

    test('that was stored earlier does not prevent other changes', async () => {
      const { id } = await create(app, PATH, { ...apple, client_secret: 'a.signed.token' })
      const stored = await app.context.store.read(q => readProvider(q, id))
      if (stored?.type !== 'oidc') throw new Error('not stored')
      const settings = { ...stored.settings, team_id: 'T' }
      await app.context.store.write(tx => saveProvider(tx, { ...stored, settings }))
      expect((await app.admin('PUT', `${PATH}/${id}`, { enabled: false })).status).toBe(200)
    })
  })

  test('no secret of an OAuth 2.0 provider in a PUT', async () => {
    const github = { type: 'oauth2', alias: 'gh', name: 'GitHub', preset: 'github', client_id: 'x' }
    await create(app, PATH, { ...github, client_secret: SECRET })
    expect(refused(await app.admin('PUT', `${PATH}/gh`, { client_secret: '' }))).toEqual(['client_secret'])
  })
})
