import { createPrivateKey, randomBytes } from 'node:crypto'
import type { Context } from '#src/context.ts'
import { MINUTE } from '#src/lib/duration.ts'
import { SamlError } from '#src/protocol/saml/error.ts'
import { escapeXml, x509Data } from '#src/protocol/saml/escape.ts'
import { BEARER, namespaces, REDIRECT_BINDING, SUCCESS } from '#src/protocol/saml/names.ts'
import type { Requested } from '#src/protocol/saml/read-authn-request.ts'
import { formatTime } from '#src/protocol/saml/time.ts'
import { escapeHtml, hidden, html, isWebUrl, postingPage } from './fake-openid.ts'

/**
 * All parts of a SAML response, which tests change. Undefined leaves an attribute out; times are strings, so
 * that tests can use invalid ones.
 */
export interface ResponseParts {
  response_id: string
  response_version: string
  response_issuer: string | undefined
  destination: string | undefined
  response_in_response_to: string | undefined
  issue_instant: string
  status: string
  extensions: string
  assertion_id: string
  issuer: string
  name_id: string
  name_format: string
  method: string
  recipient: string | undefined
  in_response_to: string | undefined
  confirmed_from: string | undefined
  confirmed_until: string | undefined
  valid_from: string | undefined
  valid_until: string | undefined
  /** A list of audiences for each restriction. */
  audiences: string[][]
  authn_instant: string
  session_until: string | undefined
  attributes: Record<string, string[]>
  assertion: 'plain' | 'none'
  /** Additional namespace declarations of the root element. */
  declarations: string
}

export interface Party {
  issuer: string
  audience: string
  acs_url: string
  request_id: string | undefined
  now: number
}

/** Returns the response of an ordinary login. */
export const defaultParts = (party: Party): ResponseParts => ({
  response_id: `_response-${randomBytes(8).toString('hex')}`,
  response_version: '2.0',
  response_issuer: party.issuer,
  destination: party.acs_url,
  response_in_response_to: party.request_id,
  issue_instant: formatTime(party.now),
  status: `<samlp:StatusCode Value="${SUCCESS}"/>`,
  extensions: '',
  assertion_id: `_assertion-${randomBytes(8).toString('hex')}`,
  issuer: party.issuer,
  name_id: 'ada-4711',
  name_format: 'urn:oasis:names:tc:SAML:2.0:nameid-format:persistent',
  method: BEARER,
  recipient: party.acs_url,
  in_response_to: party.request_id,
  confirmed_from: undefined,
  confirmed_until: formatTime(party.now + 5 * MINUTE),
  valid_from: formatTime(party.now - MINUTE),
  valid_until: formatTime(party.now + 5 * MINUTE),
  audiences: [[party.audience]],
  authn_instant: formatTime(party.now),
  session_until: undefined,
  attributes: { mail: ['ada@example.com'], givenName: ['Ada'], sn: ['Lovelace'] },
  assertion: 'plain',
  declarations: '',
})

const attr = (name: string, value: string | undefined): string =>
  value === undefined ? '' : ` ${name}="${escapeXml(value)}"`

export const renderAssertion = (said: ResponseParts): string =>
  `<saml:Assertion xmlns:saml="${namespaces.saml}" xmlns:xs="http://www.w3.org/2001/XMLSchema" xmlns:xsi="http://www.w3.org/2001/XMLSchema-instance"` +
  ` ID="${said.assertion_id}" Version="2.0" IssueInstant="${said.issue_instant}">` +
  `<saml:Issuer>${escapeXml(said.issuer)}</saml:Issuer>` +
  `<saml:Subject><saml:NameID Format="${said.name_format}">${escapeXml(said.name_id)}</saml:NameID>` +
  `<saml:SubjectConfirmation Method="${said.method}"><saml:SubjectConfirmationData` +
  attr('NotBefore', said.confirmed_from) +
  attr('NotOnOrAfter', said.confirmed_until) +
  attr('Recipient', said.recipient) +
  attr('InResponseTo', said.in_response_to) +
  `/></saml:SubjectConfirmation></saml:Subject>` +
  `<saml:Conditions${attr('NotBefore', said.valid_from)}${attr('NotOnOrAfter', said.valid_until)}>` +
  said.audiences
    .map(list => list.map(audience => `<saml:Audience>${escapeXml(audience)}</saml:Audience>`).join(''))
    .map(list => `<saml:AudienceRestriction>${list}</saml:AudienceRestriction>`)
    .join('') +
  `</saml:Conditions>` +
  `<saml:AuthnStatement AuthnInstant="${said.authn_instant}"${attr('SessionNotOnOrAfter', said.session_until)}>` +
  `<saml:AuthnContext><saml:AuthnContextClassRef>urn:oasis:names:tc:SAML:2.0:ac:classes:PasswordProtectedTransport` +
  `</saml:AuthnContextClassRef></saml:AuthnContext></saml:AuthnStatement><saml:AttributeStatement>` +
  Object.entries(said.attributes)
    .map(
      ([name, values]) =>
        `<saml:Attribute Name="${escapeXml(name)}">${values
          .map(value => `<saml:AttributeValue xsi:type="xs:string">${escapeXml(value)}</saml:AttributeValue>`)
          .join('')}</saml:Attribute>`,
    )
    .join('') +
  `</saml:AttributeStatement></saml:Assertion>`

export const renderResponse = (said: ResponseParts, assertion: string): string =>
  `<samlp:Response xmlns:samlp="${namespaces.samlp}" xmlns:saml="${namespaces.saml}"${said.declarations} ID="${said.response_id}"` +
  ` Version="${said.response_version}" IssueInstant="${said.issue_instant}"${attr('Destination', said.destination)}` +
  `${attr('InResponseTo', said.response_in_response_to)}>` +
  (said.response_issuer === undefined
    ? ''
    : `<saml:Issuer>${escapeXml(said.response_issuer)}</saml:Issuer>`) +
  said.extensions +
  `<samlp:Status>${said.status}</samlp:Status>${assertion}</samlp:Response>`

const algorithm = {
  name: 'RSASSA-PKCS1-v1_5',
  hash: 'SHA-256',
  publicExponent: new Uint8Array([1, 0, 1]),
  modulusLength: 2048,
}

/** Valid for any time that the server's clock may be set to. The library is imported only here. */
const makeKey = async (): Promise<{ key: string; certificate: string }> => {
  await import('reflect-metadata')
  const { X509CertificateGenerator } = await import('@peculiar/x509')
  const keys = await crypto.subtle.generateKey(algorithm, true, ['sign', 'verify'])
  const certificate = await X509CertificateGenerator.createSelfSigned({
    name: 'CN=Fake provider',
    notBefore: new Date('2000-01-01'),
    notAfter: new Date('2100-01-01'),
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

/** IdP metadata: https://docs.oasis-open.org/security/saml/v2.0/saml-metadata-2.0-os.pdf section 2.4.3 */
const renderMetadata = (entity_id: string, sso_url: string, certificate: string): string =>
  `<md:EntityDescriptor xmlns:md="${namespaces.md}" xmlns:ds="${namespaces.ds}" entityID="${escapeXml(entity_id)}">` +
  `<md:IDPSSODescriptor protocolSupportEnumeration="${namespaces.samlp}">` +
  `<md:KeyDescriptor use="signing"><ds:KeyInfo>${x509Data(certificate)}</ds:KeyInfo></md:KeyDescriptor>` +
  `<md:SingleSignOnService Binding="${REDIRECT_BINDING}" Location="${escapeXml(sso_url)}"/>` +
  `</md:IDPSSODescriptor></md:EntityDescriptor>`

const ignoreSamlError = (error: unknown): undefined => {
  if (!(error instanceof SamlError)) throw error
}

const only = (form: URLSearchParams, ...names: string[]): [string, string][] =>
  [...form].filter(([name]) => names.includes(name))

const signInPage = (action: string, request: Iterable<[string, string]>): Response =>
  html(`<h1>Fake SAML provider</h1><p>Be whoever you like.</p>
<form method="post" action="${escapeHtml(action)}">${hidden(request)}
<p><label>Subject <input name="name_id" value="robin" required></label></p>
<p><label>Given name <input name="givenName" value="Robin"></label></p>
<p><label>Family name <input name="sn" value="Upstream"></label></p>
<p><label>Email <input name="mail" value="robin@upstream.example"></label></p>
<p><button name="decision" value="approve">Sign in</button> <button name="decision" value="deny">Cancel</button></p></form>`)

const DENIED =
  '<samlp:StatusCode Value="urn:oasis:names:tc:SAML:2.0:status:Responder">' +
  '<samlp:StatusCode Value="urn:oasis:names:tc:SAML:2.0:status:AuthnFailed"/></samlp:StatusCode>'

/** Returns the identity that the form states, with an attribute for each non-empty field. */
const personOf = (form: URLSearchParams): Pick<ResponseParts, 'name_id' | 'attributes'> => ({
  name_id: form.get('name_id') ?? '',
  attributes: Object.fromEntries(
    ['givenName', 'sn', 'mail'].flatMap(name => {
      const value = form.get(name)
      return value ? [[name, [value]]] : []
    }),
  ),
})

/** Path of the fake provider on a development server; its metadata is at /metadata below it. */
export const FAKE_SAML = '/dev/saml'

/**
 * SAML identity provider for development. Its login page accepts any identity and any service provider; its
 * key is kept in memory and created at the first use. It uses the server's clock, so that a changed clock
 * still accepts its responses.
 */
export const fakeSamlOf = ({
  config,
  clock,
  xml,
}: Pick<Context, 'config' | 'clock' | 'xml'>): ((request: Request) => Promise<Response>) => {
  const issuer = `${config.url}${FAKE_SAML}/metadata`
  const sso_url = `${config.url}${FAKE_SAML}/sso`
  let key_pair: ReturnType<typeof makeKey> | undefined
  const ownKey = () => {
    key_pair ??= makeKey()
    return key_pair
  }

  const respond = async (requested: Requested, form: URLSearchParams): Promise<string> => {
    const { key, certificate } = await ownKey()
    const sign = (xml_text: string, id: string) =>
      xml.run('', 'signature', { xml: xml_text, id, key, certificate })
    const said: ResponseParts = {
      ...defaultParts({ ...requested, issuer, now: clock.now() }),
      ...personOf(form),
    }
    if (form.get('decision') === 'deny')
      return sign(renderResponse({ ...said, status: DENIED }, ''), said.response_id)
    return renderResponse(said, await sign(renderAssertion(said), said.assertion_id))
  }

  const signOn = async (request: Request): Promise<Response> => {
    const isForm = request.method === 'POST'
    const given = isForm ? new URLSearchParams(await request.text()) : new URL(request.url).searchParams
    const requested = await xml
      .run('', 'authn_request', given.get('SAMLRequest') ?? '')
      .catch(ignoreSamlError)
    if (!requested || !isWebUrl(requested.acs_url))
      return new Response('No request by the redirect binding', { status: 400 })
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
