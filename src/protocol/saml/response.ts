import { SamlError } from './error.ts'
import { BEARER, ENTITY_FORMAT } from './names.ts'
import { openResponse, type ResponseTrust } from './signed-response.ts'
import { parseTime } from './time.ts'
import { attributeOf, find, findAll, textOf } from './xml.ts'

/**
 * Values that a response must match, and the keys and options with which it is verified. Times are in
 * milliseconds.
 */
export interface Expected extends ResponseTrust {
  /** Entity ID of the provider. */
  readonly issuer: string
  /** Gatehouse's own entity ID. */
  readonly audience: string
  /** URL of Gatehouse's own assertion consumer service. */
  readonly acs_url: string
  /** The request that the response has to answer. Undefined when an unsolicited response is expected. */
  readonly request: { readonly id: string; readonly sent_at: number; readonly force: boolean } | undefined
  readonly clock_tolerance: number
}

/** The NameID of a subject: SAML Core section 2.2.3. */
export interface NameId {
  readonly value: string
  readonly format: string
}

/** Content of a valid assertion. Times are in milliseconds. */
export interface Assertion {
  readonly id: string
  readonly name_id: NameId | undefined
  /** Non-empty values of each attribute in document order, by attribute name. */
  readonly attributes: ReadonlyMap<string, readonly string[]>
  readonly authn_instant: number
  /** Time by which the session must end (SessionNotOnOrAfter), plus the tolerance. */
  readonly session_ends_at: number | undefined
  /**
   * Time from which the assertion is refused, even with the maximum tolerance. The ID of the assertion is
   * remembered until this time, so that a replay is refused.
   */
  readonly expires_at: number
}

/**
 * Maximum validity of an assertion, in milliseconds. The limit bounds how long the assertion's ID is
 * remembered.
 */
const MAX_VALIDITY = 24 * 3600 * 1000
/**
 * Maximum clock tolerance of a provider, in milliseconds. The ID of an assertion is remembered as if the
 * tolerance had this value, because an administrator may raise the tolerance after the assertion was used.
 */
const MAX_TOLERANCE = 10 * 60 * 1000

/**
 * Validates a response by the rules of the Web Browser SSO profile, section 4.1.4 of
 * https://docs.oasis-open.org/security/saml/v2.0/saml-profiles-2.0-os.pdf. The caller detects replays.
 *
 * @param encoded the form field `SAMLResponse`
 * @throws SamlError
 */
export const readResponse = (encoded: string, expected: Expected, now: number): Assertion => {
  const { response, assertion } = openResponse(encoded, expected)
  checkResponse(response, expected)
  const id = attributeOf(assertion, 'ID')
  if (attributeOf(assertion, 'Version') !== '2.0' || !id) throw new SamlError('bad_shape', 'version or ID')
  checkIssuer(find(assertion, 'saml:Issuer'), expected)
  const clock = { now, tolerance: expected.clock_tolerance }
  notBefore(assertion, 'IssueInstant', clock)
  const subject = find(assertion, 'saml:Subject')
  const ends_at = checkConditions(find(assertion, 'saml:Conditions'), expected, clock)
  checkConfirmation(findAll(subject, 'saml:SubjectConfirmation'), expected, clock)
  return {
    id,
    name_id: nameIdOf(find(subject, 'saml:NameID')),
    attributes: attributesOf(assertion),
    ...checkAuthentication(findAll(assertion, 'saml:AuthnStatement'), expected, clock),
    expires_at: ends_at + MAX_TOLERANCE,
  }
}

interface Now {
  readonly now: number
  readonly tolerance: number
}

/**
 * Checks the response. The response may be unsigned, so its values can only cause a refusal. All values that
 * make an assertion acceptable are read from the assertion itself.
 */
const checkResponse = (response: Element, { acs_url, request, ...expected }: Expected): void => {
  if (attributeOf(response, 'Version') !== '2.0') throw new SamlError('bad_shape', 'version')
  parseTime(attributeOf(response, 'IssueInstant') ?? '')
  const issuer = find(response, 'saml:Issuer')
  if (issuer) checkIssuer(issuer, expected)
  if (attributeOf(response, 'Destination') !== acs_url) throw new SamlError('wrong_destination')
  checkRequest(attributeOf(response, 'InResponseTo'), request)
}

const checkIssuer = (element: Element | undefined, { issuer }: Pick<Expected, 'issuer'>): void => {
  const format = attributeOf(element, 'Format') ?? ENTITY_FORMAT
  if (textOf(element) !== issuer || format !== ENTITY_FORMAT) throw new SamlError('wrong_issuer')
}

/**
 * Checks that the message answers the request of this browser, or answers no request when an unsolicited
 * response is expected. Without the check an attacker could sign another person in to the attacker's account.
 */
const checkRequest = (in_response_to: string | undefined, request: Expected['request']): void => {
  if (in_response_to === request?.id) return
  throw new SamlError(in_response_to === undefined ? 'unsolicited' : 'wrong_request')
}

/**
 * Checks that there is an audience restriction, that each restriction names this audience, and that the
 * current time is within the conditions. Returns the time at which the conditions expire.
 */
const checkConditions = (conditions: Element | undefined, { audience }: Expected, clock: Now): number => {
  const restrictions = findAll(conditions, 'saml:AudienceRestriction')
  const namesUs = (restriction: Element) =>
    findAll(restriction, 'saml:Audience').some(element => textOf(element) === audience)
  if (restrictions.length === 0 || !restrictions.every(namesUs)) throw new SamlError('wrong_audience')
  notBefore(conditions, 'NotBefore', clock)
  return notOnOrAfter(conditions, clock)
}

/** Checks that at least one bearer confirmation fulfils the profile. */
const checkConfirmation = (confirmations: Element[], expected: Expected, clock: Now): void => {
  let refusal = new SamlError('no_subject', 'no bearer confirmation')
  for (const confirmation of confirmations) {
    if (attributeOf(confirmation, 'Method') !== BEARER) continue
    try {
      const data = find(confirmation, 'saml:SubjectConfirmationData')
      if (attributeOf(data, 'Recipient') !== expected.acs_url) throw new SamlError('wrong_recipient')
      checkRequest(attributeOf(data, 'InResponseTo'), expected.request)
      notBefore(data, 'NotBefore', clock)
      notOnOrAfter(data, clock)
      return
    } catch (error) {
      if (!(error instanceof SamlError)) throw error
      refusal = error
    }
  }
  throw refusal
}

/**
 * Checks the first authentication statement. Returns the time of the authentication and the time by which the
 * session must end.
 */
const checkAuthentication = (
  statements: Element[],
  { request }: Expected,
  clock: Now,
): Pick<Assertion, 'authn_instant' | 'session_ends_at'> => {
  const [statement] = statements
  if (!statement) throw new SamlError('no_subject', 'no authentication')
  const ends = attributeOf(statement, 'SessionNotOnOrAfter')
  const session_ends_at = ends === undefined ? undefined : parseTime(ends) + clock.tolerance
  if (session_ends_at !== undefined && clock.now >= session_ends_at) throw new SamlError('expired')
  const authn_instant = notBefore(statement, 'AuthnInstant', clock) ?? parseTime('')
  if (request?.force && authn_instant < request.sent_at - clock.tolerance)
    throw new SamlError('old_authentication')
  return { authn_instant, session_ends_at }
}

const notBefore = (
  element: Element | undefined,
  name: string,
  { now, tolerance }: Now,
): number | undefined => {
  const text = attributeOf(element, name)
  if (text === undefined) return undefined
  const time = parseTime(text)
  if (now < time - tolerance) throw new SamlError('not_yet_valid', name)
  return time
}

const notOnOrAfter = (element: Element | undefined, { now, tolerance }: Now): number => {
  const time = parseTime(attributeOf(element, 'NotOnOrAfter') ?? '')
  if (now >= time + tolerance) throw new SamlError('expired')
  if (time > now + MAX_VALIDITY)
    throw new SamlError('bad_time', 'the assertion is valid for longer than a day')
  return time
}

const nameIdOf = (element: Element | undefined): NameId | undefined =>
  element && { value: textOf(element), format: attributeOf(element, 'Format') ?? '' }

const attributesOf = (assertion: Element): Map<string, string[]> => {
  const attributes = new Map<string, string[]>()
  for (const statement of findAll(assertion, 'saml:AttributeStatement'))
    for (const attribute of findAll(statement, 'saml:Attribute')) {
      const name = attributeOf(attribute, 'Name') ?? ''
      const values = findAll(attribute, 'saml:AttributeValue')
        .map(textOf)
        .filter(text => text !== '')
      attributes.set(name, [...(attributes.get(name) ?? []), ...values])
    }
  return attributes
}
