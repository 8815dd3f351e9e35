import { describe, expect, spyOn, test } from 'bun:test'
import { createPublicKey, verify, X509Certificate } from 'node:crypto'
import { deflateRawSync } from 'node:zlib'
import { attributeOf, find, findAll, parseXml, textOf } from '#src/protocol/saml/xml.ts'
import { signingThread } from '#src/tokens/signing-thread.ts'
import { BASE, startApp } from '#test/support/app.ts'
import { openBrowser } from '#test/support/browser.ts'
import { addClient, addOrganization, authorizeUrl } from '#test/support/people.ts'
import { addSaml, arrive, certifiedProvider, ISSUER, SSO, setOut, type Trip } from './world.ts'

const app = await startApp()
const idp = await certifiedProvider()
const corp = await addSaml(app, idp, 'corp')
const tenant = await addOrganization(app, 'tenant')
const other = await addSaml(app, idp, 'other', { organization_id: tenant.id, sign_requests: false })
const off = await addSaml(app, idp, 'off', { enabled: false })
await addClient(app, 'web')

const metadata = async (alias: string, headers = {}) =>
  parseXml(await (await app.call(`/saml/${alias}/metadata`, { headers })).text())
const certificateOf = (root: Element) => {
  const key = find(find(root, 'md:SPSSODescriptor'), 'md:KeyDescriptor')
  return new X509Certificate(Buffer.from(textOf(key), 'base64'))
}

describe('GET /saml/providers', () => {
  const listed = async (query = '') => {
    const answer = await app.call(`/saml/providers${query}`)
    return [answer.status, await answer.json()]
  }
  const shown = ({ alias, name }: typeof corp) => ({
    ...{ alias, name },
    login_url: `${BASE}/saml/${alias}/login`,
    metadata_url: `${BASE}/saml/${alias}/metadata`,
  })

  test('H-44, FED-13 lists the enabled providers of an organization, the default one if unnamed, without authentication', async () => {
    expect(await listed()).toEqual([200, { data: [shown(corp)] }])
    expect(await listed('?organization_id=default')).toEqual([200, { data: [shown(corp)] }])
    expect(await listed('?organization_id=tenant')).toEqual([200, { data: [shown(other)] }])
    expect(await listed(`?organization_id=${tenant.id}`)).toEqual([200, { data: [shown(other)] }])
  })

  test('H-44 an unknown organization has an empty list', async () => {
    for (const reference of ['nobody', 'org_nobody', '', '*'])
      expect(await listed(`?organization_id=${reference}`)).toEqual([200, { data: [] }])
  })

  test('S-32 the providers of a deleted organization disappear at once', async () => {
    const doomed = await addOrganization(app, 'doomed')
    await addSaml(app, idp, 'doomed', { organization_id: doomed.id })
    await app.admin('DELETE', `/organizations/${doomed.id}`)
    for (const reference of ['doomed', doomed.id])
      expect(await listed(`?organization_id=${reference}`)).toEqual([200, { data: [] }])
    expect((await app.call('/saml/doomed/login')).status).toBe(404)
    expect((await app.call('/saml/doomed/acs', { method: 'POST' })).status).toBe(404)
  })
})

describe('GET /saml/{alias}/metadata', () => {
  test('FED-12 is XML that describes Gatehouse, with its URL as entity id', async () => {
    const answer = await app.call('/saml/corp/metadata')
    expect([answer.status, answer.headers.get('content-type')]).toEqual([200, 'application/xml'])
    const root = parseXml(await answer.text())
    expect(attributeOf(root, 'entityID')).toBe(`${BASE}/saml/corp/metadata`)
    const descriptor = find(root, 'md:SPSSODescriptor')
    expect(attributeOf(descriptor, 'AuthnRequestsSigned')).toBe('true')
    expect(
      findAll(descriptor, 'md:AssertionConsumerService').map(service => attributeOf(service, 'Location')),
    ).toEqual([`${BASE}/saml/corp/acs`])
    expect(attributeOf(find(await metadata('other'), 'md:SPSSODescriptor'), 'AuthnRequestsSigned')).toBe(
      'false',
    )
  })

  test('FED-10 has one long-lived RSA certificate for all providers, separate from the key set', async () => {
    const certificate = certificateOf(await metadata('corp'))
    expect(certificateOf(await metadata('other')).fingerprint256).toBe(certificate.fingerprint256)
    expect(certificate.publicKey.asymmetricKeyDetails?.modulusLength).toBe(3072)
    expect(certificate.checkIssued(certificate) && certificate.verify(certificate.publicKey)).toBe(true)
    expect(certificate.subject).toBe('CN=localhost')
    expect(Date.parse(certificate.validTo) - app.clock.now()).toBeGreaterThan(19 * 365 * 86_400_000)
    const { keys } = (await (await app.call('/.well-known/jwks.json')).json()) as { keys: JsonWebKey[] }
    const own = certificate.publicKey.export({ format: 'jwk' })
    expect(keys.length).toBeGreaterThan(0)
    expect(keys.map(({ n }) => n)).not.toContain(own.n)
  })

  test('O-62 the private key is sealed in the database', async () => {
    const rows = await app.context.store.read(async q => q.select().from(q.tables.settings))
    const stored = rows.find(({ name }) => name === 'saml_key')?.value as { private_key: string }
    expect(() =>
      createPublicKey({ key: Buffer.from(stored.private_key, 'base64'), format: 'der', type: 'pkcs1' }),
    ).toThrow()
    expect(
      app.context.master.open(Buffer.from(stored.private_key, 'base64'), 'saml_key').length,
    ).toBeGreaterThan(1_000)
  })

  test('is served for a provider that is not enabled yet, so that the other side can be set up', async () => {
    expect((await app.call('/saml/off/metadata')).status).toBe(200)
    expect(off.enabled).toBe(false)
  })

  test('O-67 spoofed hosts change nothing', async () => {
    const headers = {
      host: 'evil.example',
      'x-forwarded-host': 'evil.example',
      forwarded: 'host=evil.example',
    }
    expect(attributeOf(await metadata('corp', headers), 'entityID')).toBe(`${BASE}/saml/corp/metadata`)
  })

  test('unknown aliases, aliases of social providers and odd spellings are 404', async () => {
    for (const alias of ['nobody', 'CORP', 'corp%20', corp.id, '..%2fcorp', '__proto__'])
      expect([alias, (await app.call(`/saml/${alias}/metadata`)).status]).toEqual([alias, 404])
  })
})

describe('GET /saml/{alias}/login', () => {
  test('FED-11 redirects to the provider with a request signed by the key in the metadata', async () => {
    const answer = await app.call('/saml/corp/login')
    const location = answer.headers.get('location') ?? ''
    expect(answer.status).toBe(303)
    expect(location.startsWith(`${SSO}?SAMLRequest=`)).toBe(true)
    const [signed = '', signature = ''] = location.slice(SSO.length + 1).split('&Signature=')
    const { publicKey } = certificateOf(await metadata('corp'))
    expect(
      verify('sha256', Buffer.from(signed), publicKey, Buffer.from(decodeURIComponent(signature), 'base64')),
    ).toBe(true)
    const trip = await setOut(app, 'corp')
    expect(trip.party.request_id).toMatch(/^_[\w-]{43}$/)
    expect(trip.relay_state).toMatch(/^[\w-]{43}\.[\w-]{16}$/)
    expect(trip.relay_state).not.toBe((await setOut(app, 'corp')).relay_state)
  })

  test('H-20 repeated from one login page: one upstream request, signatures off the event loop, and a limit', async () => {
    const at = await startApp()
    const ip = '198.51.100.20'
    await addClient(at, 'web')
    await addSaml(at, idp, 'corp')
    await addSaml(at, idp, 'second')
    await at.events()
    const browser = openBrowser(at, { ip })
    const request = /request=([\w-]{43})/.exec((await browser.get(authorizeUrl('web'))).html)?.[1]
    const signed = spyOn(signingThread, 'sign')
    const stored = () =>
      at.context.store.read(async q => [
        await q.$count(q.tables.authorization_requests),
        await q.$count(q.tables.upstream_requests),
      ])
    const go = (alias: string) => browser.get(`/saml/${alias}/login?request=${request}`)
    const trips = [await setOut(at, 'corp', `?request=${request}`, browser), await go('second')]
    for (let i = 0; i < 998; i++) expect((await go('corp')).status).toBe(303)
    expect([await stored(), signed.mock.calls.length]).toEqual([[1, 2], 1_000])
    const refused = await go('corp')
    expect([refused.status, refused.headers.get('retry-after')]).toEqual([429, '1'])
    expect([await stored(), signed.mock.calls.length]).toEqual([[1, 2], 1_000])
    signed.mockRestore()
    const elsewhere = openBrowser(at, { ip: '203.0.113.20' })
    const last = await setOut(at, 'corp', '', elsewhere)
    expect(await at.events()).toEqual([])
    expect(
      new URL((await arrive(at, idp, trips[0] as Trip)).location ?? '').searchParams.get('code'),
    ).toBeString()
    expect((await arrive(at, idp, last)).url).toBe('/account')
  }, 60_000)

  test('goes unsigned when the provider wants no signature', async () => {
    const location = (await app.call('/saml/other/login')).headers.get('location') ?? ''
    expect([...new URL(location).searchParams.keys()]).toEqual(['SAMLRequest', 'RelayState'])
  })

  test('asks for reauthentication when the application does', async () => {
    const force = async (more: Record<string, string>) => {
      const location =
        (
          await app.call(authorizeUrl('web', more).replace('/oauth/authorize', '/saml/corp/login'))
        ).headers.get('location') ?? ''
      const { inflateRawSync } = await import('node:zlib')
      const message = inflateRawSync(
        Buffer.from(new URL(location).searchParams.get('SAMLRequest') ?? '', 'base64'),
      )
      return attributeOf(parseXml(message.toString()), 'ForceAuthn')
    }
    expect(await force({})).toBeUndefined()
    expect(await force({ prompt: 'login' })).toBe('true')
    expect(await force({ max_age: '60' })).toBe('true')
  })

  test('S-32 is 404 for a disabled or unknown provider', async () => {
    expect((await app.call('/saml/off/login')).status).toBe(404)
    expect((await app.call('/saml/nobody/login')).status).toBe(404)
  })

  test('M-03 is 404 within an authorization of another organization', async () => {
    const query = authorizeUrl('web').replace('/oauth/authorize', '')
    expect((await app.call(`/saml/other/login${query}`)).status).toBe(404)
    const browser = openBrowser(app)
    const page = await browser.get(authorizeUrl('web'))
    const request = /request=([\w-]{43})/.exec(page.html)?.[1]
    expect((await browser.get(`/saml/other/login?request=${request}`)).status).toBe(404)
    expect((await browser.get(`/saml/corp/login?request=${request}`)).location?.startsWith(SSO)).toBe(true)
  })

  test('O-46 prompt=none never redirects to a provider', async () => {
    const answer = await app.call(
      `/saml/corp/login${authorizeUrl('web', { prompt: 'none' }).replace('/oauth/authorize', '')}`,
    )
    expect(new URL(answer.headers.get('location') ?? '').searchParams.get('error')).toBe('login_required')
  })

  test('the login page has a button that links to it', async () => {
    const page = await openBrowser(app).get(authorizeUrl('web'))
    expect(page.html).toMatch(/href="\/saml\/corp\/login\?request=[\w-]{43}"/)
    expect(page.html).not.toContain('/saml/other/')
    expect(page.html).not.toContain('/saml/off/')
  })
})

test('S-26 a DEFLATE bomb through the redirect binding: no endpoint inflates anything', async () => {
  const bomb = deflateRawSync(Buffer.alloc(50 * 1024 * 1024)).toString('base64')
  for (const path of ['acs', 'login', 'metadata']) {
    const answer = await app.call(
      `/saml/corp/${path}?SAMLResponse=${encodeURIComponent(bomb)}&SAMLRequest=${encodeURIComponent(bomb)}`,
    )
    expect([path, answer.status]).toEqual([path, { acs: 405, login: 303, metadata: 200 }[path] ?? 0])
  }
})

test('the provider’s metadata can be imported', async () => {
  const app = await startApp()
  const document = (entity: string) =>
    `<md:EntityDescriptor xmlns:md="urn:oasis:names:tc:SAML:2.0:metadata" xmlns:ds="http://www.w3.org/2000/09/xmldsig#" entityID="${entity}"><md:IDPSSODescriptor protocolSupportEnumeration="urn:oasis:names:tc:SAML:2.0:protocol"><md:KeyDescriptor><ds:KeyInfo><ds:X509Data><ds:X509Certificate>${idp.certificate.replace(/-----[^-]+-----/g, '')}</ds:X509Certificate></ds:X509Data></ds:KeyInfo></md:KeyDescriptor><md:SingleSignOnService Binding="urn:oasis:names:tc:SAML:2.0:bindings:HTTP-Redirect" Location="${SSO}"/></md:IDPSSODescriptor></md:EntityDescriptor>`
  const body = { type: 'saml', alias: 'imported', name: 'Imported', metadata_xml: document(ISSUER) }
  const { status, body: made } = await app.admin('POST', '/identity-providers', body)
  expect(status).toBe(201)
  expect(made).toMatchObject({ entity_id: ISSUER, sso_url: SSO })
  expect(made.certificates[0].fingerprint).toBe(new X509Certificate(idp.certificate).fingerprint256)
  const broken = await app.admin('POST', '/identity-providers', {
    ...body,
    alias: 'broken',
    metadata_xml: '<!DOCTYPE x><x/>',
  })
  expect([broken.status, broken.body.details[0].field]).toEqual([422, 'metadata_xml'])
})
