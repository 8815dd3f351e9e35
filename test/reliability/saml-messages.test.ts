import { expect, test } from 'bun:test'
import { SamlError } from '#src/protocol/saml/error.ts'
import { readResponse } from '#src/protocol/saml/response.ts'
import { expecting, ourPair } from '#test/protocol/saml/expecting.ts'
import { party, readGenuine } from '#test/support/saml/genuine.ts'
import { encode, makeIdentityProvider } from '#test/support/saml/identity-provider.ts'
import { dice, mutate } from '#test/support/saml/mutate.ts'
import { ordinary } from '#test/support/saml/response-parts.ts'
import { figure, LONG } from './faults.ts'
import { LONGEST_HOLD, timed } from './hold.ts'

/** Number of messages. The long form sends a million messages, which takes about a quarter of an hour. */
const MESSAGES = Number(process.env.FUZZ ?? (LONG ? 1_000_000 : 2_000))
const SEED = process.env.FUZZ_SEED ?? String(Date.now())
/** Maximum growth of the process in MiB after the first tenth of the messages. */
const GROWTH = 64

test(`R-22 H-05 changed SAML messages: none blocks a thread, none yields an unsigned subject, memory stays flat`, async () => {
  const stored = readGenuine()
  const idp = makeIdentityProvider()
  const expected = expecting({ keys: [stored.certificate.publicKey, idp.public_key] })
  const encrypted = (how: 'assertion' | 'both') =>
    idp.respondEncrypted(ordinary(party), ourPair.publicKey, how)
  const genuine = [stored.assertion, stored.response, stored.both, encrypted('assertion'), encrypted('both')]
  for (const xml of genuine)
    expect(readResponse(encode(xml), expected, party.now).name_id?.value).toBe('ada-4711')

  let longest = 0
  let accepted = 0
  let before = 0
  for (let i = 0; i < MESSAGES; i++) {
    const encoded = encode(mutate(genuine[i % genuine.length] ?? '', dice(`${SEED} ${i}`)))
    const { result, spent } = await timed(async () => {
      try {
        return readResponse(encoded, expected, party.now)
      } catch (error) {
        if (error instanceof SamlError) return undefined
        throw new Error(`FUZZ_SEED=${SEED}, message ${i}`, { cause: error })
      }
    })
    longest = Math.max(longest, spent)
    if (spent > LONGEST_HOLD) throw new Error(`FUZZ_SEED=${SEED}, message ${i}: ${spent} ms`)
    if (result) accepted++
    if (result && result.name_id?.value !== 'ada-4711')
      throw new Error(`FUZZ_SEED=${SEED}, message ${i}: another person`)
    if (i === Math.floor(MESSAGES / 10)) before = resident()
  }
  const grown = resident() - before
  // The short form shares its process with other tests, whose memory varies.
  if (LONG) expect(grown).toBeLessThan(GROWTH)
  figure(
    'R-22',
    `${MESSAGES} changed SAML messages: ${accepted} say what was signed, the rest is refused; the longest took ${longest.toFixed(0)} ms, memory grew by ${grown.toFixed(0)} MiB`,
  )
}, 7_200_000)

const resident = (): number => {
  Bun.gc(true)
  return process.memoryUsage.rss() / 2 ** 20
}
