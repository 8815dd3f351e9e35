import { expect, test } from 'bun:test'
import { SamlError } from '#src/protocol/saml/error.ts'
import { readResponse } from '#src/protocol/saml/response.ts'
import { LONG } from '#test/reliability/faults.ts'
import { party, readGenuine } from '#test/support/saml/genuine.ts'
import { encode } from '#test/support/saml/identity-provider.ts'
import { dice, mutate } from '#test/support/saml/mutate.ts'
import { expecting } from './expecting.ts'

const genuine = readGenuine()
const expected = expecting({ keys: [genuine.certificate.publicKey] })
const said = readResponse(encode(genuine.assertion), expected, party.now)
const rounds = Number(process.env.FUZZ ?? (LONG ? 100_000 : 1_000))
const seed = process.env.FUZZ_SEED ?? String(Date.now())

for (const how of ['response', 'assertion', 'both'] as const)
  test(`R-22 S-01 changed ${how} signed messages yield the signed content, or nothing`, () => {
    const whole = readResponse(encode(genuine[how]), expected, party.now)
    expect({ ...whole, id: '' }).toEqual({ ...said, id: '' })
    for (let round = 0; round < rounds; round++) {
      const changed = mutate(genuine[how], dice(`${seed} ${how} ${round}`))
      try {
        const read = readResponse(encode(changed), expected, party.now)
        if (!Bun.deepEquals(read, whole)) throw new Error(`another person: ${changed}`)
      } catch (error) {
        if (!(error instanceof SamlError))
          throw new Error(`FUZZ_SEED=${seed}, round ${round}`, { cause: error })
      }
    }
  }, 3_600_000)
