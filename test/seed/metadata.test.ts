import { expect, test } from 'bun:test'
import { OutboundError } from '#src/http/outbound.ts'
import { applySeed, type SeedOptions } from '#src/seed/apply.ts'
import { readSeed } from '#src/seed/read.ts'
import { startApp } from '#test/support/app.ts'
import { newCertificate } from '#test/support/certificate.ts'

const metadata = (certificate: string) =>
  `<md:EntityDescriptor xmlns:md="urn:oasis:names:tc:SAML:2.0:metadata" xmlns:ds="http://www.w3.org/2000/09/xmldsig#" entityID="https://idp.example/m"><md:IDPSSODescriptor protocolSupportEnumeration="urn:oasis:names:tc:SAML:2.0:protocol"><md:KeyDescriptor use="signing"><ds:KeyInfo><ds:X509Data><ds:X509Certificate>${certificate.replace(/-----.*-----|\s/g, '')}</ds:X509Certificate></ds:X509Data></ds:KeyInfo></md:KeyDescriptor><md:SingleSignOnService Binding="urn:oasis:names:tc:SAML:2.0:bindings:HTTP-Redirect" Location="https://idp.example/sso"/></md:IDPSSODescriptor></md:EntityDescriptor>`

const seed = readSeed({
  identity_providers: [
    { alias: 'corp', name: 'Corp', type: 'saml', metadata_url: 'https://idp.example/metadata' },
  ],
})

test('a start loads metadata_url of a new provider only; apply loads it each time', async () => {
  const [first, second] = await Promise.all(
    [2045, 2046].map(year => newCertificate('CN=Signing', 2025, year)),
  )
  let document: string | undefined = metadata(first ?? '')
  let loads = 0
  const fetch = async () => {
    loads++
    if (document === undefined) throw new OutboundError('The host does not answer.')
    return new Response(document)
  }
  const app = await startApp({}, { fetch })
  const apply = (options?: SeedOptions) => applySeed(app.context, seed, options)
  const expiry = async () =>
    (await app.admin('GET', '/identity-providers/corp')).body.certificates[0].expires_at.slice(0, 4)
  expect(await apply({ keep_metadata: true })).toMatchObject([{ action: 'create', name: 'corp' }])
  expect(loads).toBe(1)
  expect(await expiry()).toBe('2045')
  await app.events()

  document = metadata(second ?? '')
  expect(await apply({ keep_metadata: true })).toEqual([])
  document = undefined
  expect(await apply({ keep_metadata: true })).toEqual([])
  expect(loads).toBe(1)
  expect(await expiry()).toBe('2045')
  expect(await app.events()).toEqual([])

  await expect(apply()).rejects.toThrow(
    'identity_providers[0].metadata_url: The document could not be loaded.',
  )
  document = metadata(second ?? '')
  expect(await apply()).toMatchObject([{ action: 'update', fields: ['certificates'] }])
  expect(await expiry()).toBe('2046')
})
