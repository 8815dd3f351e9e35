import { describe, expect, test } from 'bun:test'
import { TRANSIENT_FORMAT } from '#src/protocol/saml/names.ts'
import { assertedProfileOf } from '#src/protocol/saml/profile.ts'

const persistent = { value: 'p-1', format: 'urn:oasis:names:tc:SAML:2.0:nameid-format:persistent' }
const transient = { value: 't-1', format: TRANSIENT_FORMAT }
const WS = 'http://schemas.xmlsoap.org/ws/2005/05/identity/claims'
const profile = (
  attributes: Record<string, string[]>,
  mapping = {},
  name_id: typeof persistent | undefined = persistent,
) => assertedProfileOf({ name_id, attributes: new Map(Object.entries(attributes)) }, mapping)

const ada = { username: 'ada', email: 'ada@example.com', first_name: 'Ada', last_name: 'Lovelace' }

describe('well-known attribute names', () => {
  const vocabularies = {
    plain: { username: ['ada'], email: ['ada@example.com'], firstName: ['Ada'], lastName: ['Lovelace'] },
    'LDAP names': { uid: ['ada'], mail: ['ada@example.com'], givenName: ['Ada'], sn: ['Lovelace'] },
    'LDAP object ids': {
      'urn:oid:0.9.2342.19200300.100.1.1': ['ada'],
      'urn:oid:0.9.2342.19200300.100.1.3': ['ada@example.com'],
      'urn:oid:2.5.4.42': ['Ada'],
      'urn:oid:2.5.4.4': ['Lovelace'],
    },
    MACE: {
      'urn:mace:dir:attribute-def:uid': ['ada'],
      'urn:mace:dir:attribute-def:mail': ['ada@example.com'],
      'urn:mace:dir:attribute-def:givenName': ['Ada'],
      'urn:mace:dir:attribute-def:sn': ['Lovelace'],
    },
    "Microsoft's claims": {
      [`${WS}/name`]: ['ada'],
      [`${WS}/emailaddress`]: ['ada@example.com'],
      [`${WS}/givenname`]: ['Ada'],
      [`${WS}/surname`]: ['Lovelace'],
    },
  }
  for (const [what, attributes] of Object.entries(vocabularies))
    test(what, () =>
      expect(profile(attributes)).toEqual({ subject: 'p-1', email_verified: true, roles: [], ...ada }),
    )
})

test('unknown attributes are ignored', () => {
  const nothing = { username: undefined, email: undefined, first_name: undefined, last_name: undefined }
  expect(profile({ x: ['y'], mail: [], sn: [' '] })).toEqual({
    subject: 'p-1',
    email_verified: true,
    roles: [],
    ...nothing,
  })
})

test('a mapping names the attribute exactly, with no fallback', () => {
  const attributes = { Mail: ['a@example.com'], mail: ['b@example.com'], groups: ['staff', 'ops'], id: ['7'] }
  const mapped = profile(attributes, { subject: 'id', email: 'Mail', username: 'none', roles: 'groups' })
  expect(mapped).toMatchObject({ subject: 'attribute:id=7', email: 'a@example.com', roles: ['staff', 'ops'] })
  expect(mapped.username).toBeUndefined()
})

describe('the subject', () => {
  const targeted = { 'urn:oid:1.3.6.1.4.1.5923.1.1.1.10': ['edu-1'] }
  test('is the NameID', () => expect(profile(targeted).subject).toBe('p-1'))
  test('is a persistent attribute when the NameID is transient', () => {
    expect(profile(targeted, {}, transient).subject).toBe('attribute:urn:oid:1.3.6.1.4.1.5923.1.1.1.10=edu-1')
    const microsoft = { 'http://schemas.microsoft.com/identity/claims/objectidentifier': ['oid-1'] }
    expect(profile(microsoft, {}, transient).subject).toMatch(/^attribute:http.*objectidentifier=oid-1$/)
  })
  test('H-35 from a NameID, an attribute and another attribute are three subjects', () => {
    const said = { id: ['p-1'], uid: ['p-1'] }
    const subjects = [{}, { subject: 'id' }, { subject: 'uid' }].map(
      mapping => profile(said, mapping).subject,
    )
    expect(subjects).toEqual(['p-1', 'attribute:id=p-1', 'attribute:uid=p-1'])
  })
  const refused = {
    'an empty NameID': () => profile({}, {}, { ...persistent, value: '' }),
    'H-35 a blank NameID beside an attribute': () => profile(targeted, {}, { ...persistent, value: ' \n' }),
    'H-35 a blank NameID where an attribute is mapped': () =>
      profile({ id: ['7'] }, { subject: 'id' }, { ...persistent, value: '' }),
    'H-35 a NameID in the form of an attribute': () =>
      profile({}, {}, { ...persistent, value: 'attribute:id=7' }),
    'longer than any': () => profile({}, {}, { ...persistent, value: 'x'.repeat(1025) }),
  }
  for (const [what, act] of Object.entries(refused))
    test(`is refused: ${what}`, () => expect(act).toThrow('no_subject'))

  const lacking: [string, () => unknown, string][] = [
    [
      'transient, nothing else',
      () => profile({ mail: ['a@example.com'] }, {}, transient),
      'transient NameID, and attribute_mapping has no subject',
    ],
    [
      'no NameID',
      () => assertedProfileOf({ name_id: undefined, attributes: new Map() }, {}),
      'no NameID, and attribute_mapping has no subject',
    ],
    [
      'a mapped attribute that is missing',
      () => profile({}, { subject: 'id' }),
      'no value in id, the attribute_mapping of subject',
    ],
  ]
  test.each(lacking)('is refused, with what is lacking: %s', (_, act, message) =>
    expect(act).toThrow(expect.objectContaining({ reason: 'no_subject', message })),
  )
})

test('a NameID in e-mail format is the address when no attribute has one', () => {
  const name_id = {
    value: 'ada@example.com',
    format: 'urn:oasis:names:tc:SAML:1.1:nameid-format:emailAddress',
  }
  expect(profile({}, {}, name_id).email).toBe('ada@example.com')
  expect(profile({ mail: ['other@example.com'] }, {}, name_id).email).toBe('other@example.com')
})

test('an address is verified as the setting says, unless a mapped attribute says otherwise', () => {
  const mapping = { email_verified: 'verified' }
  expect(profile({}).email_verified).toBe(true)
  expect(profile({ verified: ['TRUE'] }, mapping).email_verified).toBe(true)
  expect(profile({ verified: ['no'] }, mapping).email_verified).toBe(false)
  expect(profile({}, mapping).email_verified).toBe(false)
})
