import { expect, test } from 'bun:test'
import { LONG } from '#test/reliability/faults.ts'
import { startApp } from '#test/support/app.ts'
import { openBrowser } from '#test/support/browser.ts'
import { encode } from '#test/support/saml/identity-provider.ts'
import { dice, mutate } from '#test/support/saml/mutate.ts'
import { ordinary } from '#test/support/saml/response-parts.ts'
import { addSaml, certifiedProvider, comeBack, partyOf, post, rowsOf, setOut } from './world.ts'

const rounds = Number(process.env.FUZZ ?? (LONG ? 100_000 : 150))
const seed = process.env.FUZZ_SEED ?? String(Date.now())
const app = await startApp()
const idp = await certifiedProvider()
await addSaml(app, idp, 'corp')
await addSaml(app, idp, 'open', { allow_idp_initiated: true })

/** Each callback has its own IP address, so that the throttle does not apply. */
const addressOf = (round: number) =>
  `2001:db8:${(round >> 16).toString(16)}:${(round & 0xffff).toString(16)}::1`

test('R-22 S-29 a modified response to a pending request lets in only the subject that was signed, or is refused with one event', async () => {
  for (let round = 0; round < rounds; round++) {
    const roll = dice(`${seed} answer ${round}`)
    const ip = addressOf(round)
    const trip = await setOut(app, 'corp', '', openBrowser(app, { ip }))
    const xml = idp.respond(ordinary(trip.party), roll(2) ? 'response' : 'assertion')
    const state = roll(8) ? trip.relay_state : mutate(trip.relay_state, roll)
    const { external_accounts = 0, users } = await rowsOf(app)
    await app.events()
    const answer = await comeBack(app, { ...trip, relay_state: state }, encode(mutate(xml, roll)), ip)
    const events = (await app.events()).map(({ type }) => type)
    const after = await rowsOf(app)
    const what = `FUZZ_SEED=${seed}, round ${round}`
    if (answer.status === 200) {
      const [account, ...more] = await app.context.store.read(async q =>
        q.select().from(q.tables.external_accounts),
      )
      expect([what, account?.subject, more]).toEqual([what, 'ada-4711', []])
    } else {
      expect([what, answer.status]).toEqual([what, answer.status === 413 ? 413 : 400])
      expect([what, events, after.users, after.external_accounts]).toEqual([
        what,
        ['user.login_failed'],
        users,
        external_accounts,
      ])
    }
  }
}, 3_600_000)

test('R-22 S-29 arbitrary bodies are refused and break nothing', async () => {
  const names = ['SAMLResponse', 'RelayState', 'SAMLRequest', 'a', '', '%', '__proto__', 'SAMLResponse[]']
  for (let round = 0; round < rounds; round++) {
    const roll = dice(`${seed} body ${round}`)
    const values = [
      () => encode(mutate(idp.respond(ordinary(partyOf(app, 'open'))), roll)),
      () => Buffer.from(Array.from({ length: roll(200) }, () => roll(256))).toString('base64'),
      () => '%zz&'.repeat(roll(50)),
      () => 'x'.repeat(roll(1_000)),
      () => '',
    ]
    const body = Array.from({ length: roll(5) }, () => {
      const value = values[roll(values.length)]?.() ?? ''
      return `${names[roll(names.length)]}=${roll(2) ? value : encodeURIComponent(value)}`
    }).join('&')
    const alias = roll(2) ? 'open' : 'corp'
    const answer = await post(app, alias, body, addressOf(round))
    expect([`FUZZ_SEED=${seed}, round ${round}`, answer.status < 500]).toEqual([
      `FUZZ_SEED=${seed}, round ${round}`,
      true,
    ])
  }
}, 3_600_000)
