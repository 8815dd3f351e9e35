import { describe, expect, test } from 'bun:test'
import { sign as signBytes, verify } from 'node:crypto'
import { inflateRawSync } from 'node:zlib'
import { type AuthnRequest, redirectUrl } from '#src/protocol/saml/authn-request.ts'
import { attributeOf, elementName, find, parseXml, textOf } from '#src/protocol/saml/xml.ts'
import { newPair } from '#test/support/saml/identity-provider.ts'

const { privateKey, publicKey } = newPair()
const sign = (input: string) => signBytes('sha256', Buffer.from(input), privateKey).toString('base64')
const request: AuthnRequest = {
  id: '_abc',
  issued_at: Date.UTC(2026, 0, 15, 12),
  issuer: 'https://id.example/saml/corp/metadata',
  acs_url: 'https://id.example/saml/corp/acs',
  destination: 'https://idp.example/sso?tenant=a&b=c',
  force: false,
}
const read = (url: string) => {
  const parameters = new URL(url).searchParams
  const deflated = Buffer.from(parameters.get('SAMLRequest') ?? '', 'base64')
  return { parameters, root: parseXml(inflateRawSync(deflated).toString()) }
}

describe('an authentication request by the redirect binding', () => {
  test('names its issuer, its destination and the assertion consumer service', async () => {
    const { root } = read(await redirectUrl(request, 'relay', sign))
    expect(elementName(root)).toBe('samlp:AuthnRequest')
    const attributes = Object.fromEntries(
      Array.from(root.attributes)
        .filter(({ name }) => !name.startsWith('xmlns'))
        .map(({ name, value }) => [name, value]),
    )
    expect(attributes).toEqual({
      ID: '_abc',
      Version: '2.0',
      IssueInstant: '2026-01-15T12:00:00Z',
      Destination: request.destination,
      AssertionConsumerServiceURL: request.acs_url,
      ProtocolBinding: 'urn:oasis:names:tc:SAML:2.0:bindings:HTTP-POST',
    })
    expect(textOf(find(root, 'saml:Issuer'))).toBe(request.issuer)
  })

  test('is signed with RSA-SHA256 over the query exactly as sent', async () => {
    const url = await redirectUrl(request, 'a b&c=d/é', sign)
    const query = url.slice(url.indexOf('SAMLRequest='))
    const [signed = '', signature = ''] = query.split('&Signature=')
    expect(signed.split('&').map(pair => pair.split('=')[0])).toEqual(['SAMLRequest', 'RelayState', 'SigAlg'])
    const value = Buffer.from(decodeURIComponent(signature), 'base64')
    expect(verify('sha256', Buffer.from(signed), publicKey, value)).toBe(true)
    expect(
      verify('sha256', Buffer.from(signed.replace('RelayState=a', 'RelayState=b')), publicKey, value),
    ).toBe(false)
    const { parameters } = read(url)
    expect(parameters.get('RelayState')).toBe('a b&c=d/é')
    expect(parameters.get('SigAlg')).toBe('http://www.w3.org/2001/04/xmldsig-more#rsa-sha256')
    expect([parameters.get('tenant'), parameters.get('b')]).toEqual(['a', 'c'])
  })

  test('goes unsigned when the provider wants no signature, to an address without its fragment', async () => {
    const url = await redirectUrl(
      { ...request, destination: 'https://idp.example/sso#x' },
      'relay',
      undefined,
    )
    expect(url.startsWith('https://idp.example/sso?SAMLRequest=')).toBe(true)
    expect([...new URL(url).searchParams.keys()]).toEqual(['SAMLRequest', 'RelayState'])
  })

  test('sets ForceAuthn only when reauthentication is requested', async () => {
    expect(attributeOf(read(await redirectUrl(request, '', sign)).root, 'ForceAuthn')).toBeUndefined()
    expect(
      attributeOf(read(await redirectUrl({ ...request, force: true }, '', sign)).root, 'ForceAuthn'),
    ).toBe('true')
  })

  test('escapes its values', async () => {
    const issuer = `https://x/?a=1&b="<>'`
    expect(textOf(find(read(await redirectUrl({ ...request, issuer }, '', sign)).root, 'saml:Issuer'))).toBe(
      issuer,
    )
  })
})
