import { createPrivateKey, randomUUID, X509Certificate } from 'node:crypto'
import type { Core } from '#src/context.ts'
import { MINUTE } from '#src/lib/duration.ts'
import { buildXml, type XmlTree } from '#src/protocol/saml/build-xml.ts'
import { SamlError } from '#src/protocol/saml/error.ts'
import { BEARER, namespaces, REDIRECT_BINDING } from '#src/protocol/saml/names.ts'
import type { Requested } from '#src/protocol/saml/read-authn-request.ts'
import { formatTime } from '#src/protocol/saml/time.ts'
import { escapeHtml, hasWebScheme, hidden, html, postingPage } from './fake-openid.ts'

/**
 * A user from the form of the fake provider. Each non-empty field except the subject becomes an attribute of
 * the assertion.
 */
interface Person {
  name_id: string
  attributes: [name: string, value: string][]
}

const SAML = 'urn:oasis:names:tc:SAML:2.0'

const status = (code: string, inner?: XmlTree): XmlTree => ({
  'samlp:StatusCode': { '@Value': `${SAML}:status:${code}`, ...inner },
})

/**
 * Builds an assertion: https://docs.oasis-open.org/security/saml/v2.0/saml-profiles-2.0-os.pdf section
 * 4.1.4.2
 */
const assertionOf = (
  { name_id, attributes }: Person,
  { acs_url, audience, request_id }: Requested,
  issuer: string,
  now: number,
): XmlTree => {
  const until = formatTime(now + 5 * MINUTE)
  return {
    '@ID': `_${randomUUID()}`,
    '@Version': '2.0',
    '@IssueInstant': formatTime(now),
    'saml:Issuer': issuer,
    'saml:Subject': {
      'saml:NameID': { '@Format': `${SAML}:nameid-format:persistent`, '#text': name_id },
      'saml:SubjectConfirmation': {
        '@Method': BEARER,
        'saml:SubjectConfirmationData': {
          '@NotOnOrAfter': until,
          '@Recipient': acs_url,
          ...(request_id !== undefined && { '@InResponseTo': request_id }),
        },
      },
    },
    'saml:Conditions': {
      '@NotBefore': formatTime(now - MINUTE),
      '@NotOnOrAfter': until,
      'saml:AudienceRestriction': { 'saml:Audience': audience },
    },
    'saml:AuthnStatement': {
      '@AuthnInstant': formatTime(now),
      'saml:AuthnContext': {
        'saml:AuthnContextClassRef': `${SAML}:ac:classes:PasswordProtectedTransport`,
      },
    },
    'saml:AttributeStatement': {
      'saml:Attribute': attributes.map(([name, value]) => ({ '@Name': name, 'saml:AttributeValue': value })),
    },
  }
}

/**
 * Returns the response for a user. If `person` is undefined, the response is the refusal that a click on
 * Cancel causes.
 */
const renderResponse = (
  id: string,
  person: Person | undefined,
  requested: Requested,
  issuer: string,
  now: number,
): string =>
  buildXml({
    'samlp:Response': {
      '@xmlns:samlp': namespaces.samlp,
      '@xmlns:saml': namespaces.saml,
      '@ID': id,
      '@Version': '2.0',
      '@IssueInstant': formatTime(now),
      '@Destination': requested.acs_url,
      ...(requested.request_id !== undefined && { '@InResponseTo': requested.request_id }),
      'saml:Issuer': issuer,
      'samlp:Status': person ? status('Success') : status('Responder', status('AuthnFailed')),
      ...(person && { 'saml:Assertion': assertionOf(person, requested, issuer, now) }),
    },
  })

const algorithm = {
  name: 'RSASSA-PKCS1-v1_5',
  hash: 'SHA-256',
  publicExponent: new Uint8Array([1, 0, 1]),
  modulusLength: 2048,
}

/**
 * Generates a key, and a certificate that is valid at any time to which the server's clock may be set. The
 * certificate library is imported here and not at the start, because most servers never need it.
 */
const makeKey = async (): Promise<{ key: string; certificate: string }> => {
  await import('reflect-metadata')
  const { X509CertificateGenerator } = await import('@peculiar/x509')
  const keys = await crypto.subtle.generateKey(algorithm, true, ['sign', 'verify'])
  const certificate = await X509CertificateGenerator.createSelfSigned({
    name: 'CN=Fake provider',
    notBefore: new Date(0),
    notAfter: new Date('9999-12-31T23:59:59Z'),
    signingAlgorithm: algorithm,
    keys,
  })
  const pkcs8 = Buffer.from(await crypto.subtle.exportKey('pkcs8', keys.privateKey))
  return {
    key: createPrivateKey({ key: pkcs8, format: 'der', type: 'pkcs8' }).export({
      format: 'pem',
      type: 'pkcs8',
    }),
    certificate: certificate.toString('pem'),
  }
}

/**
 * Renders the metadata of the provider:
 * https://docs.oasis-open.org/security/saml/v2.0/saml-metadata-2.0-os.pdf section 2.4.3
 */
const renderMetadata = (entity_id: string, sso_url: string, certificate: string): string =>
  buildXml({
    'md:EntityDescriptor': {
      '@xmlns:md': namespaces.md,
      '@xmlns:ds': namespaces.ds,
      '@entityID': entity_id,
      'md:IDPSSODescriptor': {
        '@protocolSupportEnumeration': namespaces.samlp,
        'md:KeyDescriptor': {
          '@use': 'signing',
          'ds:KeyInfo': {
            'ds:X509Data': { 'ds:X509Certificate': new X509Certificate(certificate).raw.toString('base64') },
          },
        },
        'md:SingleSignOnService': { '@Binding': REDIRECT_BINDING, '@Location': sso_url },
      },
    },
  })

const ignoreSamlError = (error: unknown): undefined => {
  if (!(error instanceof SamlError)) throw error
}

const only = (form: URLSearchParams, ...names: string[]): [string, string][] =>
  [...form].filter(([name]) => names.includes(name))

const signInPage = (action: string, request: Iterable<[string, string]>): Response =>
  html(`<h1>Fake SAML provider</h1><p>Sign in as any user.</p>
<form method="post" action="${escapeHtml(action)}">${hidden(request)}
<p><label>Subject <input name="name_id" value="robin" required></label></p>
<p><label>Given name <input name="givenName" value="Robin"></label></p>
<p><label>Family name <input name="sn" value="Upstream"></label></p>
<p><label>Email <input name="mail" value="robin@upstream.example"></label></p>
<p><button name="decision" value="approve">Sign in</button> <button name="decision" value="deny">Cancel</button></p></form>`)

const personOf = (form: URLSearchParams): Person => ({
  name_id: form.get('name_id') ?? '',
  attributes: only(form, 'givenName', 'sn', 'mail').filter(([, value]) => value !== ''),
})

/** Path of the fake provider on a development server. The metadata is at `/dev/saml/metadata`. */
export const FAKE_SAML = '/dev/saml'

/**
 * Returns the SAML identity provider for development. Its login page accepts any identity and any service
 * provider. Its key is created at the first use and kept in memory. The times in its responses follow the
 * server's clock, so the responses are valid at any time to which that clock is set.
 */
export const fakeSamlOf = ({ config, clock, xml }: Core): ((request: Request) => Promise<Response>) => {
  const issuer = `${config.url}${FAKE_SAML}/metadata`
  const sso_url = `${config.url}${FAKE_SAML}/sso`
  let key_pair: ReturnType<typeof makeKey> | undefined
  const ownKey = () => {
    key_pair ??= makeKey()
    return key_pair
  }

  const respond = async (requested: Requested, form: URLSearchParams): Promise<string> => {
    const { key, certificate } = await ownKey()
    const id = `_${randomUUID()}`
    const person = form.get('decision') === 'deny' ? undefined : personOf(form)
    const response = renderResponse(id, person, requested, issuer, clock.now())
    return xml.run('', 'signature', { xml: response, id, key, certificate })
  }

  const signOn = async (request: Request): Promise<Response> => {
    const isForm = request.method === 'POST'
    const given = isForm ? new URLSearchParams(await request.text()) : new URL(request.url).searchParams
    const requested = await xml
      .run('', 'authn_request', given.get('SAMLRequest') ?? '')
      .catch(ignoreSamlError)
    if (!requested || !hasWebScheme(requested.acs_url))
      return new Response(
        'SAMLRequest is missing or unreadable, or its AssertionConsumerServiceURL is not http(s).',
        { status: 400 },
      )
    if (!isForm) return signInPage(sso_url, only(given, 'SAMLRequest', 'RelayState'))
    const response = Buffer.from(await respond(requested, given)).toString('base64')
    return postingPage(requested.acs_url, [['SAMLResponse', response], ...only(given, 'RelayState')])
  }

  return async request => {
    switch (new URL(request.url).pathname) {
      case `${FAKE_SAML}/metadata`: {
        const { certificate } = await ownKey()
        const headers = { 'content-type': 'application/samlmetadata+xml' }
        return new Response(renderMetadata(issuer, sso_url, certificate), { headers })
      }
      case `${FAKE_SAML}/sso`:
        return signOn(request)
      default:
        return new Response('Not found', { status: 404 })
    }
  }
}
