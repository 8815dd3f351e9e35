import { describe, expect, test } from 'bun:test'
import { readResponse } from '#src/protocol/saml/response.ts'
import { forgeries } from '#test/support/saml/forgeries.ts'
import { type Genuine, party, readGenuine } from '#test/support/saml/genuine.ts'
import { encode, makeIdentityProvider } from '#test/support/saml/identity-provider.ts'
import { ordinary } from '#test/support/saml/response-parts.ts'
import { expecting, refusal } from './expecting.ts'

const stored = readGenuine()
const idp = makeIdentityProvider()
const failed = {
  status: '<samlp:StatusCode Value="urn:oasis:names:tc:SAML:2.0:status:Responder"/>',
  assertion: 'none',
} as const
const ours: Genuine = {
  response: idp.respond(ordinary(party), 'response'),
  assertion: idp.respond(ordinary(party), 'assertion'),
  both: idp.respond(ordinary(party), 'both'),
  error: idp.respond({ ...ordinary(party), ...failed }, 'response'),
}

const makers = {
  xmlsec1: { genuine: stored, key: stored.certificate.publicKey },
  'our own signer': { genuine: ours, key: idp.public_key },
}

for (const [maker, { genuine, key }] of Object.entries(makers))
  describe(`signed by ${maker}`, () => {
    const expected = expecting({ keys: [key] })
    const isGood = () => {
      for (const how of ['response', 'assertion', 'both'] as const)
        expect(readResponse(encode(genuine[how]), expected, party.now).name_id?.value).toBe('ada-4711')
    }

    test('S-18 response signed, assertion unsigned: read from the signed bytes', isGood)
    test('S-09 a genuine error status is a refusal', () =>
      expect(refusal(encode(genuine.error), expected)).toBe('status'))

    for (const { name, reason, make } of forgeries)
      test(name, () => {
        isGood()
        expect(refusal(encode(make(genuine)), expected)).toBe(reason)
      })
  })
