import { type AssertedProfile, isSubject } from '#src/protocol/profile.ts'
import { SamlError } from './error.ts'
import { TRANSIENT_FORMAT } from './names.ts'
import type { Assertion } from './response.ts'

const WS = 'http://schemas.xmlsoap.org/ws/2005/05/identity/claims'
const MS = 'http://schemas.microsoft.com/identity/claims'
const MACE = 'urn:mace:dir:attribute-def'
const EDU = 'urn:oid:1.3.6.1.4.1.5923.1.1.1'

/**
 * Common attribute names in lower case: SAML's subject identifiers, plain names, LDAP object ids, MACE names,
 * eduPerson, Microsoft's claims.
 */
const usual = {
  subject: [
    ...['subject-id', 'pairwise-id'].map(name => `urn:oasis:names:tc:saml:attribute:${name}`),
    ...[`${EDU}.13`, `${EDU}.10`, `${MS}/objectidentifier`, 'edupersonuniqueid', 'edupersontargetedid'],
  ],
  username: [
    ...['username', 'preferred_username', 'uid', 'urn:oid:0.9.2342.19200300.100.1.1', `${MACE}:uid`],
    ...['samaccountname', 'edupersonprincipalname', `${EDU}.6`, `${MACE}:edupersonprincipalname`],
    ...[`${WS}/upn`, `${WS}/name`],
  ],
  email: [
    ...['email', 'mail', 'emailaddress', 'urn:oid:0.9.2342.19200300.100.1.3', 'urn:oid:1.2.840.113549.1.9.1'],
    ...[`${MACE}:mail`, `${WS}/emailaddress`],
  ],
  first_name: [
    ...['first_name', 'firstname', 'given_name', 'givenname', 'urn:oid:2.5.4.42', `${MACE}:givenname`],
    `${WS}/givenname`,
  ],
  last_name: [
    ...['last_name', 'lastname', 'family_name', 'surname', 'sn', 'urn:oid:2.5.4.4', `${MACE}:sn`],
    `${WS}/surname`,
  ],
}

const EMAIL_FORMAT = 'urn:oasis:names:tc:SAML:1.1:nameid-format:emailAddress'
/**
 * Prefix of a subject that is taken from an attribute (`attribute:NAME=VALUE`). The prefix and the name keep
 * the subject from being equal to a NameID or to the value of another attribute.
 */
const FROM_ATTRIBUTE = 'attribute:'

/**
 * Returns the user profile of an assertion. `mapping` names the attribute of each field. `email_verified` and
 * `roles` are read only from a mapped attribute. Without such a mapping, the email address counts as verified
 * and there are no roles. Any other field without a mapping is read from attributes with common names. When
 * no attribute contains the email address, the address is read from a NameID in email format. The subject is
 * the NameID, or `attribute:NAME=VALUE` in two cases: when the mapping names an attribute for the subject,
 * and when the NameID is absent or transient. A transient NameID differs at each login.
 *
 * @throws SamlError `no_subject` when there is no stable identifier, when the identifier is too long for
 * {@link isSubject}, or when the NameID is empty or begins with `attribute:`
 */
export const assertedProfileOf = (
  { name_id, attributes }: Pick<Assertion, 'name_id' | 'attributes'>,
  mapping: Readonly<Partial<Record<keyof AssertedProfile, string>>>,
): AssertedProfile => {
  const lower = new Map([...attributes].map(([name, values]) => [name.toLowerCase(), values]))
  const value = (field: keyof typeof usual): string | undefined => {
    const given = mapping[field]
    if (given !== undefined) return attributes.get(given)?.[0]?.trim()
    return usual[field].map(name => lower.get(name)?.[0]?.trim()).find(Boolean)
  }
  const attributeSubject = (): string | undefined => {
    const names = mapping.subject === undefined ? usual.subject : [mapping.subject]
    const known = mapping.subject === undefined ? lower : attributes
    const name = names.find(each => known.get(each)?.[0]?.trim())
    return name && `${FROM_ATTRIBUTE}${name}=${known.get(name)?.[0]?.trim()}`
  }
  if (name_id && (name_id.value.trim() === '' || name_id.value.startsWith(FROM_ATTRIBUTE)))
    throw new SamlError('no_subject')
  const stable = name_id && name_id.format !== TRANSIENT_FORMAT ? name_id.value : undefined
  const subject = mapping.subject === undefined && stable ? stable : attributeSubject()
  if (!subject)
    throw new SamlError(
      'no_subject',
      mapping.subject === undefined
        ? `${name_id ? 'transient' : 'no'} NameID, and attribute_mapping has no subject`
        : `no value in ${mapping.subject}, the attribute_mapping of subject`,
    )
  if (!isSubject(subject)) throw new SamlError('no_subject')
  const { email_verified, roles } = mapping
  return {
    subject,
    username: value('username'),
    email: value('email') ?? (name_id?.format === EMAIL_FORMAT ? name_id.value : undefined),
    email_verified:
      email_verified === undefined || /^(?:true|1)$/i.test(attributes.get(email_verified)?.[0] ?? ''),
    first_name: value('first_name'),
    last_name: value('last_name'),
    roles: roles === undefined ? [] : (attributes.get(roles) ?? []),
  }
}
