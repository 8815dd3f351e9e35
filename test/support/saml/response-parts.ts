import { randomBytes } from 'node:crypto'
import { BEARER, namespaces, SUCCESS } from '#src/protocol/saml/names.ts'
import { formatTime } from '#src/protocol/saml/time.ts'

const MINUTE = 60_000

/**
 * All parts of a SAML response. An attribute with the value undefined is left out. Times are strings, so that
 * tests can use invalid times.
 */
export interface ResponseContent {
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
export const ordinary = (party: Party): ResponseContent => ({
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
  value === undefined ? '' : ` ${name}="${Bun.escapeHTML(value)}"`

export const renderAssertion = (said: ResponseContent): string =>
  `<saml:Assertion xmlns:saml="${namespaces.saml}" xmlns:xs="http://www.w3.org/2001/XMLSchema" xmlns:xsi="http://www.w3.org/2001/XMLSchema-instance"` +
  ` ID="${said.assertion_id}" Version="2.0" IssueInstant="${said.issue_instant}">` +
  `<saml:Issuer>${Bun.escapeHTML(said.issuer)}</saml:Issuer>` +
  `<saml:Subject><saml:NameID Format="${said.name_format}">${Bun.escapeHTML(said.name_id)}</saml:NameID>` +
  `<saml:SubjectConfirmation Method="${said.method}"><saml:SubjectConfirmationData` +
  attr('NotBefore', said.confirmed_from) +
  attr('NotOnOrAfter', said.confirmed_until) +
  attr('Recipient', said.recipient) +
  attr('InResponseTo', said.in_response_to) +
  `/></saml:SubjectConfirmation></saml:Subject>` +
  `<saml:Conditions${attr('NotBefore', said.valid_from)}${attr('NotOnOrAfter', said.valid_until)}>` +
  said.audiences
    .map(list => list.map(audience => `<saml:Audience>${Bun.escapeHTML(audience)}</saml:Audience>`).join(''))
    .map(list => `<saml:AudienceRestriction>${list}</saml:AudienceRestriction>`)
    .join('') +
  `</saml:Conditions>` +
  `<saml:AuthnStatement AuthnInstant="${said.authn_instant}"${attr('SessionNotOnOrAfter', said.session_until)}>` +
  `<saml:AuthnContext><saml:AuthnContextClassRef>urn:oasis:names:tc:SAML:2.0:ac:classes:PasswordProtectedTransport` +
  `</saml:AuthnContextClassRef></saml:AuthnContext></saml:AuthnStatement><saml:AttributeStatement>` +
  Object.entries(said.attributes)
    .map(
      ([name, values]) =>
        `<saml:Attribute Name="${Bun.escapeHTML(name)}">${values
          .map(value => `<saml:AttributeValue xsi:type="xs:string">${Bun.escapeHTML(value)}</saml:AttributeValue>`)
          .join('')}</saml:Attribute>`,
    )
    .join('') +
  `</saml:AttributeStatement></saml:Assertion>`

export const renderResponse = (said: ResponseContent, assertion: string): string =>
  `<samlp:Response xmlns:samlp="${namespaces.samlp}" xmlns:saml="${namespaces.saml}"${said.declarations} ID="${said.response_id}"` +
  ` Version="${said.response_version}" IssueInstant="${said.issue_instant}"${attr('Destination', said.destination)}` +
  `${attr('InResponseTo', said.response_in_response_to)}>` +
  (said.response_issuer === undefined
    ? ''
    : `<saml:Issuer>${Bun.escapeHTML(said.response_issuer)}</saml:Issuer>`) +
  said.extensions +
  `<samlp:Status>${said.status}</samlp:Status>${assertion}</samlp:Response>`
